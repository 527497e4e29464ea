"""``n_components="auto"``: moves that raise the ELBO find the number of components, whatever the start."""

import functools
import logging
import pickle
from itertools import pairwise

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.cluster import KMeans
from sklearn.datasets import load_iris
from sklearn.exceptions import ConvergenceWarning
from sklearn.metrics import adjusted_rand_score

import caviar as cv
from caviar.estimators.automatic import search
from caviar.estimators.automatic.problem import Problem
from caviar.estimators.automatic.proposals import Proposal, applied, deletions, halves

FAITHFUL = cv.datasets.load_faithful().values
GALAXIES = cv.datasets.load_galaxies().values
STRUCTURES = ("full", "tied", "diag", "spherical", "unit")
FORMS = [(structure, "joint") for structure in STRUCTURES]
FORMS += [(structure, "independent") for structure in ("full", "tied", "unit")]


def simulated(n_components, n_features, distance, seed, rows_each=100):
    """Return rows of round clusters of standard deviation 1, centres at least so far apart, and their labels."""
    rng = np.random.default_rng(seed)
    centres = []
    while len(centres) < n_components:
        centre = rng.uniform(-1, 1, n_features) * distance * n_components ** (1 / n_features)
        if all(np.linalg.norm(centre - other) > distance for other in centres):
            centres.append(centre)
    labels = rng.permutation(np.repeat(np.arange(n_components), rows_each))
    return np.array(centres)[labels] + rng.normal(size=(len(labels), n_features)), labels


def found(X, sample_weight=None, **arguments):
    return cv.BayesianGaussianMixture("auto", **{"random_state": 0, **arguments}).fit(
        X, sample_weight=sample_weight
    )


def best_of_restarts(X, numbers, n_init=8, **arguments):
    """Return the highest ELBO that restarts with given numbers of components end with, under the same prior."""
    return max(
        cv.BayesianGaussianMixture(
            k, weight_concentration_prior=1.0, n_init=n_init, random_state=1, **arguments
        )
        .fit(X)
        .elbo_
        for k in numbers
    )


@functools.cache
def found_in_simulated(n_components, n_features, distance):
    """Return simulated rows, their labels, and the mixture that is found in them."""
    X, labels = simulated(n_components, n_features, distance, seed=n_components * n_features, rows_each=60)
    return X, labels, found(X)


@pytest.fixture(scope="module")
def faithful():
    return found(FAITHFUL)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("X", "numbers", "scale"),
    [
        (FAITHFUL, {2}, 1.0),
        (GALAXIES, {3, 4}, 1 / 64),
        (load_iris().data, {2, 3}, 1.0),
    ],
    ids=["faithful", "galaxies", "iris"],
)
def test_data_have_as_many_components_as_restarts_find(X, numbers, scale):
    """No number of components from 1 to 6 has a higher ELBO under the same prior, by restarts.

    Published: faithful 2; galaxies 3 to 6, by the scale of the prior; iris 2 (BIC) or 3 (the species).
    """
    prior = np.atleast_2d(np.cov(X.T, bias=True)) * scale
    mixture = found(X, covariance_prior=prior)
    assert mixture.n_components_ in numbers
    assert mixture.n_components_ == len(mixture.weights_) == len(mixture.means_)
    # restarts begin elsewhere each time, and one may end a little higher than the moves do: 0.01 nats a row
    assert mixture.elbo_ >= best_of_restarts(X, range(1, 7), 4, covariance_prior=prior) - 0.01 * len(X)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("n_components", "n_features", "distance"),
    [
        (5, 2, 8.0),
        (5, 5, 4.0),
        (10, 5, 5.0),
    ],
)
def test_simulated_clusters_are_found(n_components, n_features, distance):
    X, labels, mixture = found_in_simulated(n_components, n_features, distance)
    assert mixture.n_components_ == n_components
    assert adjusted_rand_score(labels, mixture.predict(X)) > 0.9
    assert mixture.elbo_ >= best_of_restarts(X, [n_components], 4) - 0.01


@pytest.mark.slow
def test_stripes_are_told_apart():
    """Three long parallel stripes, which k-means would cut across."""
    rng = np.random.default_rng(0)
    labels = np.repeat(np.arange(3), 80)
    along, across = rng.normal(scale=10, size=240), rng.normal(scale=0.3, size=240) + 3 * labels
    mixture = found(np.column_stack([along + across, along - across]))
    assert mixture.n_components_ == 3
    assert (
        adjusted_rand_score(labels, mixture.predict(np.column_stack([along + across, along - across]))) > 0.99
    )


@pytest.mark.slow
@pytest.mark.parametrize("n_features", [1, 3])
def test_one_gaussian_is_one_component(n_features):
    mixture = found(np.random.default_rng(1).normal(size=(300, n_features)))
    assert mixture.n_components_ == 1
    assert not any(move.accepted for move in mixture.moves_)


@pytest.mark.slow
def test_uniform_noise_gets_no_more_than_its_elbo_bears():
    X = np.random.default_rng(0).uniform(size=(200, 2))
    assert found(X).elbo_ >= best_of_restarts(X, range(1, 5), 3) - 0.05


@pytest.mark.slow
@pytest.mark.parametrize("start", [10, 2])
def test_starts_that_are_far_off_end_as_high(start):
    X, _ = simulated(4, 2, 10.0, seed=5, rows_each=20)
    mixture = found(X, init_params=KMeans(start, n_init=1, random_state=0).fit_predict(X))
    assert mixture.n_components_ == 4
    np.testing.assert_allclose(mixture.elbo_, found(X).elbo_, atol=0.01)


@pytest.mark.slow
def test_superfluous_components_go_before_others_are_split():
    """Each merge was followed by splits of all components: of 2,000 cells, searches ended 26 and 38 nats lower."""
    rng = np.random.default_rng(2)
    cluster, part = np.arange(200) % 3, rng.integers(3, size=200)
    X = rng.normal(size=(200, 2)) + 8 * np.array([[0, 0], [1, 0], [0, 1]])[cluster]
    mixture = found(X, init_params=np.eye(9)[3 * cluster + part])
    assert mixture.n_components_ == 3
    kinds = [move.kind for move in mixture.moves_ if move.accepted]
    assert "split" not in kinds
    shrunk = [place for place, move in enumerate(mixture.moves_) if move.accepted]
    assert sum(move.kind == "split" for move in mixture.moves_[: shrunk[-1]]) <= len(shrunk)


@pytest.mark.slow
def test_a_start_of_responsibilities_goes_on_from_them(faithful):
    again = found(FAITHFUL, init_params=faithful.predict_proba(FAITHFUL))
    assert not any(move.accepted for move in again.moves_)
    np.testing.assert_allclose(again.elbo_, faithful.elbo_, atol=0.001)


@pytest.mark.thinned(16)
@pytest.mark.parametrize(("structure", "form"), FORMS)
@pytest.mark.parametrize("weights", ["dirichlet_distribution", "dirichlet_process"])
def test_every_structure_form_and_weight_prior_finds_three_clusters(structure, form, weights):
    X, labels = simulated(3, 2, 8.0, seed=2, rows_each=30)
    mixture = found(
        X, covariance_type=structure, mean_precision_family=form, weight_concentration_prior_type=weights
    )
    assert mixture.n_components_ == 3
    assert adjusted_rand_score(labels, mixture.predict(X)) > 0.95
    np.testing.assert_allclose(mixture.posterior_.elbo_at({}, {"x": X}), mixture.elbo_, rtol=1e-9)


@pytest.mark.slow
def test_missing_entries_are_left_out():
    X, _ = simulated(3, 3, 8.0, seed=3, rows_each=40)
    X[np.random.default_rng(0).random(X.shape) < 0.1] = np.nan
    assert found(X, covariance_type="diag").n_components_ == 3


def test_moves_are_accepted_only_where_the_elbo_rises():
    X, _, mixture = found_in_simulated(5, 2, 8.0)
    assert {move.kind for move in mixture.moves_} == {"split", "merge", "delete"}
    slack = mixture.tol * len(X)
    n_components = 1
    for move in mixture.moves_:
        assert move.accepted == (move.elbo_after - move.elbo_before > slack)
        change = {"split": 1, "merge": -1, "delete": -1}[move.kind] * len(move.components)
        assert move.n_components == n_components + change
        n_components = move.n_components if move.accepted else n_components
    accepted = [move for move in mixture.moves_ if move.accepted]
    assert n_components == mixture.n_components_ == 5
    assert mixture.elbo_ >= accepted[-1].elbo_after - slack
    assert all(b.elbo_before >= a.elbo_after - slack for a, b in pairwise(accepted))
    # components that weigh the same are in the order of their places
    assert np.all(np.diff(mixture.weights_) <= 1e-6)


@pytest.mark.slow
def test_the_same_seed_gives_the_same_bits(faithful):
    again = found(FAITHFUL)
    assert again.moves_ == faithful.moves_
    np.testing.assert_array_equal(again.means_, faithful.means_)


@pytest.mark.slow
def test_a_weight_of_two_is_the_row_twice_and_none_is_no_row():
    X, _ = simulated(3, 2, 6.0, seed=4, rows_each=20)
    weights = np.random.default_rng(0).integers(0, 3, len(X))
    weighted, repeated = found(X, weights), found(np.repeat(X, weights, axis=0))
    assert weighted.n_components_ == repeated.n_components_
    np.testing.assert_allclose(weighted.elbo_, repeated.elbo_, rtol=1e-8)
    np.testing.assert_allclose(weighted.means_, repeated.means_, rtol=1e-4)


def test_a_large_table_is_searched_on_a_subsample_and_judged_on_all_rows(monkeypatch):
    monkeypatch.setattr(search, "_SAMPLE_ROWS", 600)
    X, labels = simulated(3, 2, 8.0, seed=6, rows_each=400)
    mixture = found(X)
    assert mixture.n_components_ == 3
    assert adjusted_rand_score(labels, mixture.predict(X)) > 0.99
    np.testing.assert_allclose(mixture.posterior_.elbo_at({}, {"x": X}), mixture.elbo_, rtol=1e-9)


@pytest.mark.slow
def test_the_prior_does_not_change_with_the_number(faithful):
    given = cv.BayesianGaussianMixture(2, weight_concentration_prior=1.0, random_state=0).fit(FAITHFUL)
    assert faithful.weight_concentration_prior_ == 1.0
    scales = [mixture.posterior_.model.variables["scale"] for mixture in (faithful, given)]
    np.testing.assert_array_equal(scales[0].known("rate"), scales[1].known("rate"))
    np.testing.assert_allclose(faithful.covariance_prior_, given.covariance_prior_, rtol=0.01)
    np.testing.assert_allclose(faithful.elbo_, given.elbo_, atol=0.01)


@pytest.mark.usefixtures("figures_of_factors")
def test_a_found_mixture_is_saved_pickled_and_cloned(faithful, tmp_path):
    path = tmp_path / "faithful.caviar"
    faithful.save(path)
    for back in (cv.load(path), pickle.loads(pickle.dumps(faithful))):
        assert back.moves_ == faithful.moves_
        assert back.n_components == "auto"
        assert back.n_components_ == 2
        np.testing.assert_array_equal(back.predict_proba(FAITHFUL), faithful.predict_proba(FAITHFUL))
    assert clone(faithful).n_components == "auto"


@pytest.mark.slow
def test_a_refit_with_a_number_has_no_moves():
    mixture = found(FAITHFUL).set_params(n_components=3).fit(FAITHFUL)
    assert mixture.n_components_ == 3
    assert not hasattr(mixture, "moves_")


def test_a_move_reads_as_a_line(faithful):
    first = repr(faithful.moves_[0])
    assert first.startswith("split   0 ")
    assert "-> 2 components" in first
    assert first.endswith("accepted")
    both = cv.Move("merge", ((0, 1), (2, 3)), -10.0, -12.0, 2, False)
    assert repr(both) == "merge   0+1, 2+3     -> 2 components    ELBO -10.0000 -> -12.0000  (-2)  refused"


def test_verbose_tells_each_move_and_a_function_each_iteration(caplog):
    with caplog.at_level(logging.INFO, logger="caviar"):
        mixture = found(GALAXIES, verbose=True)
    assert [record.getMessage() for record in caplog.records] == [repr(move) for move in mixture.moves_]
    told = []
    found(GALAXIES, verbose=told.append)
    assert len(told) > len(mixture.moves_)
    assert told[0].max_iter == 500


@pytest.mark.slow
def test_an_interrupted_search_keeps_the_best_so_far():
    count = iter(range(10**6))

    def interrupt(progress):
        if next(count) == 5:
            raise KeyboardInterrupt

    with pytest.warns(ConvergenceWarning) as told:
        mixture = found(FAITHFUL, verbose=interrupt)
    (message,) = (str(warning.message) for warning in told)
    assert "search for the number of components was interrupted" in message
    assert mixture.n_components_ == 2
    assert mixture.predict(FAITHFUL).max() == 1


@pytest.mark.slow
def test_warm_start_goes_on_from_what_was_found():
    X, _ = simulated(4, 2, 8.0, seed=8, rows_each=40)
    mixture = found(X[:120], warm_start=True)
    before = mixture.n_components_
    mixture.fit(X)
    assert before == mixture.n_components_ == 4
    assert not any(move.accepted for move in mixture.moves_)


def test_a_likelihood_is_not_asked_for_the_number():
    with pytest.raises(ValueError, match=r"grows with every component.*BayesianGaussianMixture.*bic"):
        cv.GaussianMixture("auto").fit(FAITHFUL)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"semi_supervised": True}, "semi_supervised=True needs a number of components"),
        ({"init_params": "kmeans"}, "no number of components to start 'kmeans' with"),
        ({"init_params": np.zeros((3, 2))}, "shape"),
        ({"init_params": np.full(272, -1)}, "whole numbers from 0"),
        ({"init_params": np.full((272, 2), 0.7)}, "rows must sum to 1"),
        ({"weight_concentration_prior": [1.0, 1.0]}, "weight_concentration_prior must be the same for all"),
        ({"mean_prior": np.zeros((2, 2))}, "mean_prior must be the same for all"),
        ({"mean_precision_prior": [1.0, 1.0]}, "mean_precision_prior must be the same for all"),
        ({"degrees_of_freedom_prior": [3.0, 3.0]}, "degrees_of_freedom_prior must be the same for all"),
        ({"covariance_prior": np.stack([np.eye(2)] * 2)}, "covariance_prior must be the same for all"),
    ],
)
def test_what_a_search_cannot_use_is_refused(arguments, message):
    y = np.zeros(len(FAITHFUL)) if "semi_supervised" in arguments else None
    with pytest.raises(ValueError, match=message):
        cv.BayesianGaussianMixture("auto", **arguments).fit(FAITHFUL, y)


def test_moves_keep_rows_whole():
    """After moves of several kinds the responsibilities of each row sum to one, the heaviest component first."""
    rng = np.random.default_rng(0)
    responsibilities, weights = rng.dirichlet(np.ones(6), size=50), rng.uniform(0.5, 2, 50)
    share = rng.uniform(size=50)
    moves = [
        Proposal("split", (0,), 1.0, share),
        Proposal("merge", (2, 4), 1.0),
        Proposal("delete", (5,), 1.0),
    ]
    after = applied(moves, responsibilities, weights)
    assert after.shape == (50, 5)
    np.testing.assert_allclose(after.sum(axis=1), 1)
    assert np.all(np.diff(weights @ after) <= 0)
    kept = responsibilities[:, :5] / responsibilities[:, :5].sum(axis=1, keepdims=True)
    expected = [kept[:, 0] * share, kept[:, 0] * (1 - share), kept[:, 1], kept[:, 2] + kept[:, 4], kept[:, 3]]
    for column in expected:
        assert any(np.allclose(column, other) for other in after.T)


def test_rows_that_only_a_deleted_component_had_go_where_the_others_of_it_go():
    responsibilities = np.array([[0.0, 0.0, 1.0], [0.3, 0.1, 0.6], [0.0, 1.0, 0.0]])
    after = applied([Proposal("delete", (2,), 0.0)], responsibilities, np.ones(3))
    np.testing.assert_allclose(after.sum(axis=1), 1)
    np.testing.assert_allclose(np.sort(after[0]), [0.25, 0.75])


def test_components_without_rows_are_deleted_first():
    responsibilities = np.zeros((20, 3))
    responsibilities[:10, 0] = responsibilities[10:, 2] = 1
    proposals = deletions(responsibilities, np.ones(20), 1)
    assert proposals[0].components == (1,)
    assert proposals[0].gain == 0


@pytest.mark.slow
def test_a_narrow_cluster_inside_a_wide_one_is_cut_out():
    rng = np.random.default_rng(0)
    X = np.concatenate([rng.normal(size=(200, 2)) * 10, rng.normal(size=(200, 2)) * 0.1])
    inner = halves(X, np.ones(400))[0]
    assert adjusted_rand_score(np.repeat([0, 1], 200), inner) > 0.2
    assert found(X).n_components_ == 2


@pytest.mark.slow
@pytest.mark.parametrize(("distance", "is_made"), [(12.0, False), (0.0, True)])
def test_starts_of_a_split_that_a_cut_makes_clear_are_left_out(monkeypatch, distance, is_made):
    """They cost more than all cuts together."""
    rng, fit, starts = np.random.default_rng(0), Problem.fit, []

    def seen(problem, n_components, init="auto", **arguments):
        if n_components == 2 and len(problem.X) == 80:
            starts.append(init)
        return fit(problem, n_components, init, **arguments)

    monkeypatch.setattr(Problem, "fit", seen)
    # where moves cannot be judged from sums alone, parts of the rows are fitted
    monkeypatch.setattr(Problem, "weighed", lambda *_: None)
    X = rng.normal(size=(80, 2)) + distance * rng.integers(0, 2, (80, 1))
    assert found(X).n_components_ == (1 if is_made else 2)
    assert len(starts) > 1
    assert ("auto" in starts) == is_made
