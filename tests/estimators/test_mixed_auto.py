"""Mixtures of mixed columns: the number of components that the ELBO finds, and rows less expected than others."""

import numpy as np
import pytest
from scipy import stats

import caviar as cv

pytestmark = pytest.mark.first_guess


def clusters(n_rows, seed=0, *, shift=8.0):
    """Return rows of three clusters: in two a number differs, in two the category does."""
    rng = np.random.default_rng(seed)
    labels = rng.integers(3, size=n_rows)
    number = rng.normal(np.array([0.0, 0.0, shift])[labels], 1.0)
    share = np.array([0.05, 0.95, 0.95])[labels]
    words = np.where(rng.random(n_rows) < share, "red", "blue").astype(object)
    more = np.where(rng.random(n_rows) < share, "wet", "dry").astype(object)
    return np.column_stack([number.astype(object), words, more]), labels


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2))
def test_the_number_of_clusters_is_found_and_no_other_has_a_higher_bound(seed):
    rows, labels = clusters(300, seed)
    found = cv.MixedMixture("auto", random_state=seed).fit(rows)
    assert found.n_components_ == 3
    table = np.zeros((3, 3))
    np.add.at(table, (labels, found.predict(rows)), 1)
    assert table.max(axis=1).sum() > 0.9 * len(rows)
    others = {
        k: cv.MixedMixture(k, random_state=0, n_init=4, weight_concentration_prior=1.0).fit(rows).elbo_
        for k in (1, 2, 3, 4)
    }
    assert max(others, key=others.get) == 3
    assert found.elbo_ == pytest.approx(others[3], abs=1e-3)
    accepted = [move for move in found.moves_ if move.accepted]
    assert accepted
    assert all(move.elbo_after > move.elbo_before for move in accepted)


@pytest.mark.slow
def test_a_column_that_is_missing_throughout_a_cluster_is_no_hindrance():
    rows, labels = clusters(200, shift=30.0)
    rows[labels == 2, 1:] = None
    assert cv.MixedMixture("auto", random_state=0).fit(rows).n_components_ == 3


@pytest.mark.parametrize("estimator", [cv.MixedMixture, cv.HiddenMarkovModel])
def test_an_interrupted_search_is_told_as_one(estimator):
    def interrupt(progress):
        raise KeyboardInterrupt

    rows = clusters(40)[0][:, :1].astype(float)
    with pytest.warns(cv.ConvergenceWarning, match="search for the number of components was interrupted"):
        estimator("auto", verbose=interrupt, random_state=0).fit(rows)


@pytest.mark.slow
def test_rows_without_weight_count_nothing():
    rows, _ = clusters(150)
    outside = np.array([[1e3, "red", "dry"]] * 50, dtype=object)
    weights = np.repeat([1.0, 0.0], [150, 50])
    found = cv.MixedMixture("auto", random_state=0).fit(np.vstack([rows, outside]), sample_weight=weights)
    assert found.n_components_ == 3
    assert np.abs(found.summary().to_frame()["mean"].to_numpy()).max() < 20


@pytest.mark.usefixtures("figures_of_factors")
def test_the_search_is_saved(tmp_path):
    rows, _ = clusters(80)
    found = cv.MixedMixture("auto", random_state=0).fit(rows)
    found.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    assert loaded.n_components == "auto"
    assert loaded.n_components_ == 3
    assert loaded.moves_ == found.moves_
    np.testing.assert_array_equal(loaded.predict(rows), found.predict(rows))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"n_components": "auto", "weight_concentration_prior": [1.0, 2.0]}, "the same for all components"),
        ({"n_components": "many"}, "n_components, if it is not 'auto', must be a whole number"),
        ({"n_components": 0}, "n_components, if it is not 'auto', must be a whole number of at least 1"),
    ],
)
def test_what_cannot_be_searched_is_refused(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.MixedMixture(**arguments).fit(clusters(30)[0])


def test_of_one_component_outliers_lie_beyond_the_quantiles_of_students_t():
    rng = np.random.default_rng(1)
    X = rng.normal(3.0, 2.0, (40, 1))
    mixture = cv.MixedMixture(1, random_state=0, number_prior=(0.0, 0.5, 2.0, 3.0)).fit(X)
    # the conjugate update, by hand
    n, mean = len(X), X.mean()
    kappa, shape = 0.5 + n, 2.0 + n / 2
    rate = 3.0 + np.square(X - mean).sum() / 2 + 0.5 * n * mean**2 / (2 * kappa)
    density = stats.t(2 * shape, n * mean / kappa, np.sqrt(rate * (kappa + 1) / (shape * kappa)))
    new = np.linspace(-8, 14, 200)[:, None]
    beyond = 2 * density.sf(density.mean() + np.abs(new[:, 0] - density.mean()))
    for share in (0.05, 0.3):
        found = mixture.is_outlier(new, share, random_state=0)
        clear = np.abs(beyond - share) > 6 * np.sqrt(share / 100_000)
        np.testing.assert_array_equal(found[clear], beyond[clear] < share)
        threshold = mixture.outlier_threshold(share, random_state=0)
        exact = -density.logpdf(density.ppf(1 - share / 2))
        assert threshold.threshold == pytest.approx(exact, abs=0.02)
        assert threshold.standard_error == pytest.approx(np.sqrt(share * (1 - share) / 100_000))


def test_words_are_judged_by_their_probability_and_missing_entries_by_the_rest():
    rows = np.array([["often"]] * 970 + [["seldom"]] * 25 + [["never"]] * 5, dtype=object)
    mixture = cv.MixedMixture(1, random_state=0).fit(rows)
    np.testing.assert_allclose(
        mixture.outlier_scores([["often"], ["never"]]), -np.log([971 / 1003, 6 / 1003])
    )
    # never has a share of .006, below 1%; seldom, with never, of .032
    found = mixture.is_outlier([["often"], ["seldom"], ["never"], [None]], 0.01, random_state=0)
    assert found.tolist() == [False, False, True, False]
    two, _ = clusters(300)
    model = cv.MixedMixture(3, random_state=0).fit(two)
    holes = np.array([[30.0, None, None], [0.5, None, "dry"]], dtype=object)
    assert model.is_outlier(holes, 0.01, random_state=0).tolist() == [True, False]


@pytest.mark.slow
def test_rows_of_the_density_are_outliers_as_often_as_was_asked():
    rows, _ = clusters(300)
    mixture = cv.MixedMixture(3, random_state=0).fit(rows)
    drawn, _ = mixture.sample(10_000, random_state=1)
    alarms = mixture.is_outlier(drawn, 0.05, random_state=2).mean()
    assert abs(alarms - 0.05) < 5 * np.sqrt(0.05 / 10_000 + 0.05 / 100_000)
