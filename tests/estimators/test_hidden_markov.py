"""Hidden Markov models as estimators: the stated model underneath, and forward-backward written out beside it."""

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.special import digamma, gammaln
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import caviar as cv

pytestmark = pytest.mark.first_guess

LENGTHS = [30, 1, 49]
PATH = np.arange(80) // 10 % 2
EMISSIONS = ("gaussian", "categorical", "poisson")


def rows_of(emission, path=PATH, seed=0):
    """Return rows whose two states are far apart."""
    rng = np.random.default_rng(seed)
    if emission == "gaussian":
        return np.stack([5.0 * path, -3.0 * path], axis=1) + rng.normal(size=(len(path), 2))
    if emission == "poisson":
        return rng.poisson(np.stack([2 + 10 * path, 9 - 6 * path], axis=1)).astype(float)
    return np.array(["dry", "wet", "snow"])[(rng.random(len(path)) < 0.2) + path][:, None]


_FITTED = {}


def fitted(emission):
    """Return a fit with everything as it comes."""
    if emission not in _FITTED:
        model = cv.HiddenMarkovModel(2, emission=emission, random_state=0, n_init=2)
        _FITTED[emission] = model.fit(rows_of(emission), lengths=LENGTHS)
    return _FITTED[emission]


def log_densities(model, X):
    """Return log p(x | state) of each row, (N, K), from the parameters of the factors, with SciPy."""
    q, n_states = model.posterior_, model.n_components_
    if model.emission == "poisson":
        a, b = q["rate"].shape, q["rate"].rate
        each = [
            [stats.nbinom.logpmf(X[:, d], a[k, d], b[k, d] / (b[k, d] + 1)) for d in range(2)]
            for k in range(n_states)
        ]
        return np.sum(each, axis=1).T
    if model.emission == "categorical":
        places = [model.categories_.index(word) for word in X[:, 0]]
        c = q["emission"].concentration
        return np.log(c / c.sum(axis=1, keepdims=True))[:, places].T
    theta, d = q["theta"], X.shape[1]
    each = []
    for k in range(n_states):
        df, kappa = float(np.broadcast_to(theta.df, n_states)[k]) - d + 1, theta.mean_precision[k]
        shape = theta.inverse_scale[k] * (kappa + 1) / (kappa * df)
        each.append(stats.multivariate_t.logpdf(X, theta.mean[k], shape, df))
    return np.stack(each, axis=1)


def every_path(model, each, initial, transition):
    """Return all paths of a sequence and their log joint densities with it."""
    paths = np.array(list(itertools.product(range(model.n_components_), repeat=len(each))))
    joint = np.log(initial)[paths[:, 0]] + each[np.arange(len(each)), paths].sum(axis=1)
    joint += np.log(transition)[paths[:, :-1], paths[:, 1:]].sum(axis=1)
    return paths, joint


@pytest.mark.thinned(3)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_scores_are_log_densities_of_sequences_over_all_paths(emission):
    model, X = fitted(emission), rows_of(emission)[7:16]
    found = model.score_samples(X, lengths=[6, 3])
    each = log_densities(model, X)
    for rows in (slice(0, 6), slice(6, 9)):
        _, joint = every_path(model, each[rows], model.initial_, model.transition_)
        assert found[rows].sum() == pytest.approx(np.logaddexp.reduce(joint), abs=1e-9)
    assert model.score(X, lengths=[6, 3]) == pytest.approx(found.mean())


@pytest.mark.parametrize("emission", EMISSIONS)
def test_states_are_those_of_enumerating_the_paths_of_q(emission):
    """q(s) has exp E[log pi], exp E[log A] and expected log densities, here from the numbers of the factors."""
    model, X = fitted(emission), rows_of(emission)[7:16]
    q = model.posterior_
    data = {"x": X if emission != "categorical" else np.array([model.categories_.index(w) for w in X[:, 0]])}
    each = np.empty((9, 2))
    known = q.model
    for k in range(2):
        clamped = {**data, "starts": np.ones(9), "s": np.full(9, k)}
        each[:, k] = [
            expected_log_density(known, q, {n: v[[t]] for n, v in clamped.items()}) for t in range(9)
        ]
    logs = [np.exp(q[name].expected_statistics[0]) for name in ("initial", "transition")]
    paths, joint = every_path(model, each, *logs)
    weights = np.exp(joint - np.logaddexp.reduce(joint))
    marginals = np.stack([(weights[:, None] * (paths == k)).sum(axis=0) for k in range(2)], axis=1)
    np.testing.assert_allclose(model.predict_proba(X), marginals, atol=1e-7)
    log_probability, path = model.decode(X)
    assert path.tolist() == paths[joint.argmax()].tolist() == model.predict(X).tolist()
    assert log_probability == pytest.approx(np.log(weights.max()), abs=1e-7)
    log_probability, path = model.decode(X, algorithm="map")
    assert path.tolist() == marginals.argmax(axis=1).tolist()
    where = np.flatnonzero((paths == path).all(axis=1))[0]
    assert log_probability == pytest.approx(np.log(weights[where]), abs=1e-7)


def expected_log_density(model, q, data):
    """Return E_q[log p(x | s, theta)] of one row, by quadrature-free closed forms of its own."""
    k, x = int(data["s"][0]), np.atleast_1d(data["x"][0])
    if "emission" in q:
        return q["emission"].expected_statistics[0][k, int(x[0])]
    if "rate" in q:
        a, b = q["rate"].shape[k], q["rate"].rate[k]
        return float((x * (digamma(a) - np.log(b)) - a / b - gammaln(x + 1)).sum())
    theta, d = q["theta"], len(x)
    df = float(np.broadcast_to(theta.df, 2)[k])
    log_det = (
        digamma((df - np.arange(d)) / 2).sum() + d * np.log(2) - np.linalg.slogdet(theta.inverse_scale[k])[1]
    )
    off = x - theta.mean[k]
    square = df * off @ np.linalg.solve(theta.inverse_scale[k], off) + d / theta.mean_precision[k]
    return 0.5 * (log_det - d * np.log(2 * np.pi) - square)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_the_stated_model_gives_the_same_fit(emission):
    """The estimator is a shell: with its priors written out, the classic model has the same ELBO and factors."""
    X = rows_of(emission)
    starts = np.zeros(80)
    starts[[0, 30, 31]] = 1
    given = {
        "initial_prior": 2.0,
        "transition_prior": [[3.0, 1.0], [1.0, 3.0]],
        "random_state": 0,
        "tol": 1e-10,
    }
    if emission == "categorical":
        own = {"category_prior": 0.5}
        model = cv.models.categorical_hidden_markov_model(
            3,
            2,
            initial_concentration=2,
            transition_concentration=[[3, 1], [1, 3]],
            emission_concentration=0.5,
            with_starts=True,
        )
        x = np.searchsorted(["dry", "snow", "wet"], X[:, 0])
    elif emission == "poisson":
        own = {"count_prior": (2.0, 0.5)}
        model = cv.models.poisson_hidden_markov_model(
            2,
            2,
            initial_concentration=2,
            transition_concentration=[[3, 1], [1, 3]],
            shape=2,
            rate=0.5,
            with_starts=True,
        )
        x = X
    else:
        own = {
            "mean_precision_family": "independent",
            "mean_prior": [0.0, 0.0],
            "mean_precision_prior": np.eye(2) / 100,
            "degrees_of_freedom_prior": 4.0,
            "covariance_prior": np.eye(2),
        }
        model = cv.models.gaussian_hidden_markov_model(
            2, 2, initial_concentration=2, transition_concentration=[[3, 1], [1, 3]], df=4, with_starts=True
        )
        x = X
    found = cv.HiddenMarkovModel(2, emission=emission, **given, **own).fit(X, lengths=LENGTHS)
    stated = model.fit({"x": x, "starts": starts}, seed=0, tol=1e-10, init={"s": found.predict(X, LENGTHS)})
    assert found.elbo_ == pytest.approx(stated.elbo, abs=1e-6)
    np.testing.assert_allclose(found.transition_, stated["transition"].mean, atol=1e-4)


@pytest.mark.thinned(2)
@pytest.mark.parametrize("structure", ["full", "tied", "diag", "spherical", "unit"])
def test_covariance_structures(structure):
    model = cv.HiddenMarkovModel(2, covariance_type=structure, random_state=0).fit(
        rows_of("gaussian"), lengths=LENGTHS
    )
    found = model.predict(rows_of("gaussian"), LENGTHS)
    agree = (found == PATH).mean()
    assert max(agree, 1 - agree) > 0.97
    shapes = {"full": (2, 2, 2), "tied": (2, 2), "diag": (2, 2), "spherical": (2,), "unit": (2,)}
    assert model.covariances_.shape == shapes[structure]


def test_a_density_integrates_to_one():
    model = fitted("gaussian")
    narrow = cv.HiddenMarkovModel(2, random_state=0).fit(rows_of("gaussian")[:, :1], lengths=LENGTHS)
    grid = np.linspace(-60, 70, 20_001)
    for before in (0.0, 5.0):
        pairs = np.column_stack([np.full(len(grid), before), grid]).reshape(-1, 1)
        second = narrow.score_samples(pairs, lengths=np.full(len(grid), 2))[1::2]
        assert np.trapezoid(np.exp(second), grid) == pytest.approx(1, abs=2e-3)
    counts = fitted("poisson")
    every = np.array([[a, b] for a in range(80) for b in range(80)], dtype=float)
    assert np.exp(counts.score_samples(every, lengths=np.ones(len(every), int))).sum() == pytest.approx(
        1, abs=1e-4
    )
    assert model.score_samples(np.full((2, 2), np.nan)).tolist() == [0.0, 0.0]


@pytest.mark.parametrize("emission", EMISSIONS)
def test_forecasts_are_powers_of_the_expected_transition(emission):
    model, X = fitted(emission), rows_of(emission)
    last = model.predict_proba(X, LENGTHS)[[29, 30, 79]]
    ahead = model.forecast_proba(X, 3, LENGTHS).reshape(3, 3, 2)
    for h in range(3):
        np.testing.assert_allclose(
            ahead[:, h], last @ np.linalg.matrix_power(model.transition_, h + 1), atol=1e-9
        )
    found = model.forecast(X, 3, LENGTHS)
    shares = ahead.reshape(9, 2)
    if emission == "categorical":
        np.testing.assert_allclose(found.mean, shares @ model.emission_probabilities_)
        assert found.to_frame()["label"].isin(model.categories_).all()
    else:
        means = model.means_ if emission == "gaussian" else model.rates_
        np.testing.assert_allclose(found.mean, shares @ means, atol=1e-9)
        lower, upper = found.interval(0.9)
        assert np.all(lower < upper)


def test_a_forecast_is_of_the_next_step_and_continues_rows():
    model, X = fitted("gaussian"), rows_of("gaussian")
    assert np.array_equal(model.forecast(X[:30]).mean, model.forecast(X[:30], 1).mean)
    with pytest.raises(cv.ParameterError, match=r"give them first, as in forecast\(X, 5\)"):
        model.forecast(5)


def test_forecasts_say_the_sequence_and_the_step_of_each_row():
    pandas = pytest.importorskip("pandas")
    model, X = fitted("gaussian"), rows_of("gaussian")
    found = model.forecast(X, 2, LENGTHS)
    assert found.index == [(0, 1), (0, 2), (1, 1), (1, 2), (2, 1), (2, 2)]
    assert "1, step 2" in str(found)
    named = model.forecast(X, 2, pandas.Series(LENGTHS, index=["ann", "bob", "cy"])).to_frame()
    assert named.index.names == ["sequence", "step"]
    np.testing.assert_array_equal(named.loc[("bob", 2)].iloc[0], found.mean[3, 0])
    assert model.forecast(X[:30], 2).index is None


@pytest.mark.parametrize("emission", EMISSIONS)
def test_forecasts_are_those_of_the_posterior(emission):
    if emission == "categorical":
        pytest.skip("posterior.predict has numbers of a chain's rows only")
    model, X = fitted(emission), rows_of(emission)
    longer = np.vstack([X[:30], np.full((2, 2), np.nan)])
    starts = np.zeros(32)
    starts[0] = 1
    told = model.posterior_.predict({"x": longer, "starts": starts})["x"]
    found = model.forecast(X[:30], 2)
    np.testing.assert_allclose(found.mean, told.mean[-2:], atol=1e-8)
    np.testing.assert_allclose(found.sd, told.sd[-2:], rtol=1e-6)


def test_known_states_stay_and_help():
    X, states = rows_of("gaussian"), np.full(80, -1)
    states[:20] = 1 - PATH[:20]
    model = cv.HiddenMarkovModel(2, random_state=0).fit(X, lengths=LENGTHS, states=states)
    assert (model.predict(X, LENGTHS) == 1 - PATH).mean() > 0.97
    wrong = np.where(np.arange(80) == 3, PATH, -1)
    held = cv.HiddenMarkovModel(2, random_state=0).fit(X, lengths=LENGTHS, states=wrong)
    free = fitted("gaussian")
    assert held.elbo_ < free.elbo_ + 1e-6
    with pytest.raises(cv.ParameterError, match="from 0 to 1, or -1"):
        cv.HiddenMarkovModel(2).fit(X, states=np.full(80, 2))


@pytest.mark.thinned(3)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_missing_rows_and_entries(emission):
    X = rows_of(emission).astype(object)
    X[5] = None if emission == "categorical" else np.nan
    if emission != "categorical":
        X[40, 1] = np.nan
        X = X.astype(float)
    model = cv.HiddenMarkovModel(2, emission=emission, random_state=0, n_init=2).fit(X, lengths=LENGTHS)
    agree = (model.predict(X, LENGTHS) == PATH).mean()
    assert max(agree, 1 - agree) > 0.9
    assert model.score_samples(X, LENGTHS)[5] == 0.0


def test_sticky_transitions():
    X = rows_of("gaussian")
    sticky = cv.HiddenMarkovModel(2, stickiness=50.0, random_state=0).fit(X, lengths=LENGTHS)
    written = cv.HiddenMarkovModel(2, transition_prior=1 + 50 * np.eye(2), random_state=0).fit(
        X, lengths=LENGTHS
    )
    assert sticky.elbo_ == written.elbo_
    assert np.diagonal(sticky.transition_).min() > np.diagonal(fitted("gaussian").transition_).max()


@pytest.mark.parametrize("kind", ["string", "object", "category"])
def test_missing_categories_of_pandas_are_missing(kind):
    pandas = pytest.importorskip("pandas")
    X = rows_of("categorical").astype(object)
    X[5] = None
    column = pandas.Series([pandas.NA if own is None else own for own in X[:, 0].tolist()], dtype=kind)
    told = cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(column.to_frame("c"))
    same = cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(X)
    assert told.categories_ == same.categories_
    assert told.elbo_ == same.elbo_


@pytest.mark.thinned(3)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_draws_have_the_density_that_is_scored(emission):
    model = fitted(emission)
    X, path = model.sample(3000, random_state=1)
    assert path.shape == (3000,)
    assert X.shape == (3000, 1 if emission == "categorical" else 2)
    steps = np.zeros((2, 2))
    np.add.at(steps, (path[:-1], path[1:]), 1)
    np.testing.assert_allclose(steps / steps.sum(axis=1, keepdims=True), model.transition_, atol=0.04)
    again = model.sample(3000, random_state=1)
    assert np.array_equal(again[0], X)
    assert np.array_equal(again[1], path)
    other, _ = model.sample(3000, random_state=2)
    assert model.score(X) == pytest.approx(model.score(other), abs=0.15)


@pytest.mark.usefixtures("figures_of_factors")
@pytest.mark.thinned(2)
@pytest.mark.parametrize("emission", EMISSIONS)
def test_a_saved_model_says_the_same(emission, tmp_path):
    model, X = fitted(emission), rows_of(emission)
    model.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    assert np.array_equal(loaded.predict(X, LENGTHS), model.predict(X, LENGTHS))
    assert np.array_equal(loaded.score_samples(X, LENGTHS), model.score_samples(X, LENGTHS))
    assert np.array_equal(loaded.forecast(X, 2).mean, model.forecast(X, 2).mean)
    assert loaded.get_params() == model.get_params()


@pytest.mark.slow
def test_one_column_of_words_keeps_its_name_in_a_file(tmp_path):
    words = pd.DataFrame({"weather": np.array(["sun", "rain"])[np.arange(40) // 10 % 2]})
    model = cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(words)
    model.save(tmp_path / "m.caviar")
    loaded = cv.load(tmp_path / "m.caviar")
    assert loaded.posterior_.data_summary["arrays"]["x"]["columns"] == ["weather"]
    assert np.array_equal(loaded.predict(words), model.predict(words))


def test_names_of_columns():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(rows_of("gaussian"), columns=["height", "depth"])
    model = cv.HiddenMarkovModel(2, random_state=0).fit(frame, lengths=LENGTHS)
    assert model.feature_names_in_.tolist() == ["height", "depth"]
    assert "height, state 0" in str(model.posterior_.summary(max_rows=None))
    with pytest.raises(ValueError, match="feature names"):
        model.predict(frame.rename(columns={"depth": "width"}))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"emission": "gamma"}, "emission must be 'gaussian', 'categorical' or"),
        ({"n_components": 0}, "n_components, if it is not 'auto', must be a whole number"),
        ({"covariance_type": "ful"}, "covariance_type must be"),
        (
            {"emission": "poisson", "covariance_type": "diag"},
            "covariance_type belongs to emission='gaussian'",
        ),
        ({"category_prior": 2.0}, "category_prior belongs to emission='categorical'"),
        ({"emission": "poisson", "count_prior": (1.0,)}, "count_prior must be the shape and the rate"),
        ({"transition_prior": 0.0}, "transition_prior must be above 0"),
        ({"transition_prior": np.ones((3, 3))}, "transition_prior must have shape"),
        ({"stickiness": -1.0}, "stickiness must be"),
    ],
)
def test_impossible_arguments_are_refused(arguments, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.HiddenMarkovModel(**{"n_components": 2, **arguments}).fit(rows_of("gaussian"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"lengths": [40, 41]}, "sum of lengths must be the number of rows of X, 80; got 81 from 2"),
        ({"lengths": [0, 80]}, "whole numbers above 0"),
        ({"lengths": "80"}, "whole numbers above 0"),
        ({"y": [40, 40]}, "pass them by name, lengths="),
    ],
)
def test_impossible_lengths_are_refused(given, message):
    with pytest.raises(cv.ParameterError, match=message):
        cv.HiddenMarkovModel(2).fit(rows_of("gaussian"), **given)


def test_categories():
    X = rows_of("categorical")
    model = cv.HiddenMarkovModel(
        2, emission="categorical", categories=["dry", "wet", "snow", "hail"], random_state=0
    )
    model.fit(X)
    assert model.emission_probabilities_.shape == (2, 4)
    assert model.categories_ == ("dry", "wet", "snow", "hail")
    with pytest.raises(cv.DataError, match=r"'snwo' in row 1, which is none of .*Did you mean 'snow'"):
        model.predict([["dry"], ["snwo"]])
    numbers = cv.HiddenMarkovModel(2, emission="categorical", random_state=0).fit(
        np.array([[3], [1], [3], [1]] * 5)
    )
    assert numbers.categories_ == (1, 3)
    assert numbers.sample(3, random_state=0)[0].dtype.kind == "i"


def test_a_clone_fits_alike_and_threads_give_the_same_bits():
    X = rows_of("gaussian")
    one = fitted("gaussian")
    other = clone(one).set_params(n_jobs=2).fit(X, lengths=LENGTHS)
    assert np.array_equal(one.transition_, other.transition_)
    assert one.elbo_ == other.elbo_


def test_the_number_of_states_is_found(tmp_path):
    X = rows_of("gaussian")
    model = cv.HiddenMarkovModel("auto", random_state=0).fit(X, lengths=LENGTHS)
    assert model.n_components_ == 2
    assert model.elbo_ == pytest.approx(fitted("gaussian").elbo_, abs=1e-3)
    assert model.moves_[0].kind == "split"
    assert max(move.elbo_after for move in model.moves_) <= model.elbo_ + 1e-6
    model.save(tmp_path / "m.caviar")
    assert cv.load(tmp_path / "m.caviar").moves_ == model.moves_


@pytest.mark.slow
def test_states_that_only_time_tells_apart_are_found():
    """Rows by themselves are one Gaussian, so that no split of a mixture shows the two states."""
    path = np.arange(160) // 40 % 2
    X = np.random.default_rng(1).normal(np.where(path, 0.9, -0.9), 1.3)[:, None]
    assert cv.BayesianGaussianMixture("auto", random_state=0).fit(X).n_components_ == 1
    model = cv.HiddenMarkovModel("auto", random_state=0).fit(X)
    assert model.n_components_ == 2
    agree = (model.predict(X) == path).mean()
    assert max(agree, 1 - agree) > 0.9


def test_what_a_search_refuses():
    X = rows_of("gaussian")
    with pytest.raises(cv.ParameterError, match="known states need a number"):
        cv.HiddenMarkovModel("auto").fit(X, states=np.full(80, -1))
    with pytest.raises(cv.ParameterError, match="transition_prior must be the same for all components"):
        cv.HiddenMarkovModel("auto", transition_prior=np.ones((2, 2))).fit(X)


class EachRowASequence(cv.HiddenMarkovModel):
    """The model whose rows are sequences of their own: the checks reorder rows, and take some of them."""

    def fit(self, X, y=None, **arguments):
        n_rows = len(X) if hasattr(X, "__len__") else None
        return super().fit(X, y, lengths=None if n_rows is None else np.ones(n_rows, dtype=int), **arguments)

    def _sequences(self, X, lengths):
        rows, _ = super()._sequences(X, None)
        return rows, np.ones(len(rows), dtype=int)


@pytest.mark.thinned(24)
@pytest.mark.filterwarnings(
    "ignore:.*max_iter passes:sklearn.exceptions.ConvergenceWarning",
    "ignore::sklearn.exceptions.SkipTestWarning",
)
@parametrize_with_checks([EachRowASequence(2), EachRowASequence(2, covariance_type="diag")])
def test_scikit_learns_checks_pass(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_the_number_of_states_is_found_with_transitions_of_a_dirichlet_process():
    """Weights of all states are then another family than those of the mixtures that moves are proposed by."""
    rng = np.random.default_rng(0)
    states = np.repeat(rng.permutation(np.repeat(np.arange(2), 4)), 8)
    x = rng.normal(size=(64, 1)) + 8.0 * states[:, None]
    model = cv.HiddenMarkovModel("auto", transition_prior_type="dirichlet_process", random_state=0).fit(x)
    assert model.n_components_ == 2


def test_a_score_weighs_sequences_as_the_fit_does():
    """A sequence of weight 2 is the sequence twice, and one of weight 0 counts nothing."""
    X, lengths = np.random.default_rng(0).normal(size=(30, 1)), [10, 15, 5]
    X[25:] = 1e6
    model = cv.HiddenMarkovModel(2, random_state=0).fit(X[:25], lengths=lengths[:2])
    repeated = model.score(np.concatenate([X[:10], X[:10], X[10:25]]), lengths=[10, 10, 15])
    assert model.score(X, lengths=lengths, sequence_weight=[2, 1, 0]) == pytest.approx(repeated, rel=1e-12)
    with pytest.raises(cv.ParameterError, match="sequence_weight"):
        model.score(X, lengths=lengths, sequence_weight=[1, 1])
