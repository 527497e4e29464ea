"""Missing entries are marginalised exactly where a leaf's entries are independent; unknown labels likewise."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.special import gammaln, logsumexp
from scipy.stats import multivariate_normal, norm

import caviar as cv
from caviar.data import ArrayRows
from caviar.engine.design.keys import ColumnKey
from caviar.engine.rows.subsample import sample_of

PRIOR = (0.0, 0.1, 1.0, 1.0)


def normal_mixture(n_components: int, n_columns: int) -> cv.Model:
    obs, component = cv.Plate("obs"), cv.Plate("component", n_components)
    column = cv.Plate("column", n_columns)
    weights = cv.Dirichlet("weights", np.ones(n_components))
    theta = cv.NormalGamma("theta", *PRIOR, plates=(component, column))
    z = cv.Categorical("z", weights, plates=obs)
    return cv.Model(cv.Normal("x", theta[z], plates=(obs, column)))


def log_evidence_of_normals(x: np.ndarray) -> float:
    """Exact evidence of numbers from one Normal with unknown mean and precision."""
    if not len(x):
        return 0.0
    m, k, a, b = PRIOR
    k_n, a_n = k + len(x), a + len(x) / 2
    m_n = (k * m + x.sum()) / k_n
    b_n = b + 0.5 * (np.sum(x**2) + k * m**2 - k_n * m_n**2)
    normaliser = gammaln(a_n) - gammaln(a) + a * np.log(b) - a_n * np.log(b_n)
    return normaliser + 0.5 * np.log(k / k_n) - len(x) / 2 * np.log(2 * np.pi)


def exact_log_evidence(x: np.ndarray, n_components: int, labels: np.ndarray) -> float:
    """Evidence by enumeration of all labels that agree with the known ones; each column uses its observed rows."""
    choices = [range(n_components) if np.isnan(label) else [int(label)] for label in labels]
    each = []
    for assignment in itertools.product(*choices):
        z = np.array(assignment)
        counts = np.bincount(z, minlength=n_components)
        total = gammaln(n_components) - gammaln(n_components + len(z)) + gammaln(1 + counts).sum()
        for k in range(n_components):
            for column in x[z == k].T:
                total += log_evidence_of_normals(column[~np.isnan(column)])
        each.append(total)
    return float(logsumexp(each))


@pytest.fixture
def x() -> np.ndarray:
    rng = np.random.default_rng(1)
    values = np.concatenate([rng.normal(size=(3, 2)), rng.normal(size=(4, 2)) + 5])
    values[1, 0] = values[4, 1] = np.nan
    return values


UNKNOWN = np.full(7, np.nan)


def test_one_component_with_missing_entries_has_the_exact_evidence(x: np.ndarray) -> None:
    posterior = normal_mixture(1, 2).fit({"x": x}, tol=1e-12)
    assert posterior.elbo == pytest.approx(exact_log_evidence(x, 1, UNKNOWN), abs=1e-10)


def test_the_bound_with_missing_entries_is_a_bound_and_near_the_evidence(x: np.ndarray) -> None:
    posterior = normal_mixture(2, 2).fit({"x": x}, seed=0, tol=1e-12)
    gap = exact_log_evidence(x, 2, UNKNOWN) - posterior.elbo
    # well separated components: one of 2! labellings is found
    assert gap == pytest.approx(np.log(2), abs=0.1)
    assert np.diff(posterior.elbo_trace).min() > -1e-9


@pytest.mark.parametrize("known", [(), (0, 3), (0, 1, 2, 3, 4, 5, 6)])
def test_known_labels_take_away_the_other_labellings(x: np.ndarray, known: tuple[int, ...]) -> None:
    labels = UNKNOWN.copy()
    truth = np.array([0, 0, 0, 1, 1, 1, 1])
    labels[list(known)] = truth[list(known)]
    posterior = normal_mixture(2, 2).fit({"x": x, "z": labels}, seed=0, tol=1e-12)
    exact = exact_log_evidence(x, 2, labels)
    assert posterior.elbo <= exact + 1e-10
    if known:
        assert exact - posterior.elbo < 0.1
    if len(known) == len(x):
        assert posterior.elbo == pytest.approx(exact, abs=1e-10)
    else:
        local = posterior.local({"x": x, "z": labels})["z"].probabilities
        np.testing.assert_allclose(local[list(known)], np.eye(2)[truth[list(known)]], atol=1e-200)


def test_a_known_label_counts_where_nothing_else_of_its_row_was_observed(x: np.ndarray) -> None:
    """Row 6 has a label alone, row 7 nothing at all: q is exact, since no label is left open."""
    x = np.concatenate([x[:6], np.full((2, 2), np.nan)])
    labels = np.array([0, 0, 1, 1, 0, 1, 1, np.nan])
    posterior = normal_mixture(2, 2).fit({"x": x, "z": labels}, seed=0, tol=1e-12)
    np.testing.assert_allclose(posterior["weights"].concentration, [4.0, 5.0])
    assert posterior.elbo == pytest.approx(exact_log_evidence(x, 2, labels), abs=1e-10)


def test_a_known_label_needs_no_observation_below_it() -> None:
    """Another leaf was observed in the row; where the label is unknown too, it counts nothing."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    other = cv.Normal("other", cv.Normal("level", 0.0, 0.1), 1.0, plates=obs)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs), other)
    data = {"x": [1.0, np.nan, 5.0], "other": [0.0, 1.0, 2.0]}
    posterior = model.fit({**data, "z": [0.0, 1.0, np.nan]}, init={"z": [0, 1, 1]})
    assert posterior["weights"].concentration.sum() == pytest.approx(5.0)
    posterior = model.fit({**data, "z": [0.0, np.nan, np.nan]}, init={"z": [0, 1, 1]})
    assert posterior["weights"].concentration.sum() == pytest.approx(4.0)


def test_a_wrong_label_is_believed(x: np.ndarray) -> None:
    labels = np.where(np.arange(7) == 0, 1.0, np.array([np.nan, 0, 0, 1, 1, 1, 1]))
    posterior = normal_mixture(2, 2).fit({"x": x, "z": labels}, seed=0, tol=1e-12)
    assert posterior.elbo == pytest.approx(exact_log_evidence(x, 2, labels), abs=1e-10)


def test_rows_with_nothing_observed_change_no_bit(x: np.ndarray) -> None:
    model = normal_mixture(2, 2)
    alone = model.fit({"x": x}, seed=0)
    padded = model.fit({"x": np.concatenate([x, np.full((300, 2), np.nan)])}, seed=0)
    assert padded.elbo == pytest.approx(alone.elbo, abs=1e-12)
    np.testing.assert_allclose(padded["weights"].concentration, alone["weights"].concentration, rtol=1e-12)


def test_a_row_with_nothing_observed_is_predicted_from_the_weights(x: np.ndarray) -> None:
    posterior = normal_mixture(2, 2).fit({"x": x}, seed=0)
    local = posterior.local({"x": np.array([[np.nan, np.nan], [5.0, np.nan]])})["z"].probabilities
    expected_log = posterior["weights"].expected_statistics[0]
    np.testing.assert_allclose(local[0], np.exp(expected_log) / np.exp(expected_log).sum(), rtol=1e-12)
    assert local[1].max() > 0.9


def test_masked_arrays_are_missing_too(x: np.ndarray) -> None:
    masked = np.ma.array(np.nan_to_num(x), mask=np.isnan(x))
    model = normal_mixture(2, 2)
    assert model.fit({"x": masked}, seed=0).elbo == model.fit({"x": x}, seed=0).elbo


def test_a_masked_array_of_integers(x: np.ndarray) -> None:
    counts = np.ma.array([0, 1, 2, 2], mask=[False, False, True, False])
    p = cv.Dirichlet("p", np.ones(3))
    posterior = cv.Model(cv.Categorical("y", p, plates=cv.Plate("obs"))).fit({"y": counts})
    np.testing.assert_allclose(posterior["p"].concentration, [2, 2, 2])


def test_vectors_that_are_missing_whole_are_left_out() -> None:
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(20, 2))
    obs = cv.Plate("obs")
    theta = cv.NormalWishart("theta", np.zeros(2), 0.1, 3.0, np.eye(2))
    model = cv.Model(cv.MultivariateNormal("x", theta, plates=obs))
    some = np.where(np.arange(20)[:, None] % 3 == 0, np.nan, rows)
    left = rows[np.arange(20) % 3 != 0]
    assert model.fit({"x": some}).elbo == pytest.approx(model.fit({"x": left}).elbo, abs=1e-10)


def test_missing_responses_with_a_known_noise_of_each_row() -> None:
    """Regression with a precision for each row, and rows without a response, has the evidence of the others."""
    rng = np.random.default_rng(0)
    X, y, tau = rng.normal(size=(9, 2)), rng.normal(size=9), rng.uniform(0.5, 2, size=9)
    y[[2, 5]] = np.nan
    obs = cv.Plate("obs")
    w = cv.MultivariateNormal("w", np.zeros(2), np.eye(2))
    response = cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), cv.Data("tau", plates=obs), plates=obs)
    posterior = cv.Model(response).fit({"X": X, "y": y, "tau": tau})
    seen = ~np.isnan(y)
    covariance = X[seen] @ X[seen].T + np.diag(1 / tau[seen])
    exact = multivariate_normal(np.zeros(seen.sum()), covariance).logpdf(y[seen])
    assert posterior.elbo == pytest.approx(exact, abs=1e-10)


def test_factors_see_the_observed_columns_of_their_row() -> None:
    """With known loadings the evidence of a factor model is that of its observed entries, row by row."""
    rng = np.random.default_rng(0)
    loadings, x = rng.normal(size=(4, 2)), rng.normal(size=(6, 4))
    x[0, 1] = x[2, :3] = x[5, 0] = np.nan
    obs, column = cv.Plate("obs"), cv.Plate("column", 4)
    factors = cv.MultivariateNormal("factors", np.zeros(2), np.eye(2), plates=obs)
    mean = cv.dot(cv.Constant("loadings", loadings, plates=column), factors)
    posterior = cv.Model(cv.Normal("x", mean, 2.0, plates=(obs, column))).fit({"x": x}, data_plate="obs")
    exact = 0.0
    for row in x:
        seen = ~np.isnan(row)
        covariance = loadings[seen] @ loadings[seen].T + np.eye(seen.sum()) / 2
        exact += multivariate_normal(np.zeros(seen.sum()), covariance).logpdf(row[seen])
    assert posterior.elbo == pytest.approx(exact, abs=1e-10)


def test_unobserved_steps_of_a_chain_are_summed_over() -> None:
    """With everything known but the path, the bound is the evidence, the sum over all paths of the observed steps."""
    initial, transition = np.array([0.6, 0.4]), np.array([[0.7, 0.3], [0.4, 0.6]])
    means, x = np.array([-1.0, 2.0]), np.array([0.3, np.nan, 2.2, np.nan, np.nan, -1.0])
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    s = cv.MarkovChain("s", initial, cv.Constant("transition", transition, plates=state), along=time)
    model = cv.Model(cv.Normal("x", cv.Constant("means", means, plates=state)[s], 1.5, plates=time))
    seen = ~np.isnan(x)
    each, agreeing = [], []
    for choices in itertools.product(range(2), repeat=len(x)):
        path = np.array(choices)
        steps = np.log(transition[path[:-1], path[1:]]).sum() + np.log(initial[path[0]])
        each.append(steps + norm(means[path[seen]], 1.5**-0.5).logpdf(x[seen]).sum())
        if path[1] == 0 and path[3] == 1:
            agreeing.append(each[-1])
    assert model.fit({"x": x}, seed=0).elbo == pytest.approx(float(logsumexp(each)), abs=1e-10)
    states = np.array([np.nan, 0, np.nan, 1, np.nan, np.nan])
    known_in_part = model.fit({"x": x, "s": states}, seed=0)
    assert known_in_part.elbo == pytest.approx(float(logsumexp(agreeing)), abs=1e-10)


def test_missing_entries_of_a_leaf_off_the_data_plate() -> None:
    values = np.array([0.5, np.nan, -1.0])
    column, obs = cv.Plate("column", 3), cv.Plate("obs")
    m = cv.Normal("m", 0.0, 1.0)
    side = cv.Normal("side", m, 2.0, plates=column)
    posterior = cv.Model(cv.Normal("x", m, 1.0, plates=obs), side).fit({"x": [1.0, 2.0], "side": values})
    noise = np.diag([1.0, 1.0, 0.5, 0.5])
    exact = multivariate_normal(np.zeros(4), noise + 1).logpdf([1.0, 2.0, 0.5, -1.0])
    assert posterior.elbo == pytest.approx(exact, abs=1e-10)


def scaled(rate: object, turned: bool = False) -> cv.Model:
    obs, column = cv.Plate("obs"), cv.Plate("column", 2)
    plates = (column, obs) if turned else (obs, column)
    scale = cv.Gamma("scale", 2.0, rate, plates=plates)
    return cv.Model(cv.Normal("x", 0.0, scale, plates=plates))


def test_a_latent_with_a_known_prior_and_nothing_below_it_counts_nothing() -> None:
    x = np.array([[1.0, np.nan], [2.0, 1.0]])
    obs = cv.Plate("obs")
    scale = cv.Gamma("scale", 2.0, 2.0, plates=obs)
    flat = cv.Model(cv.Normal("x", 0.0, scale, plates=obs))
    elbo = scaled(2.0).fit({"x": x}, data_plate="obs").elbo
    assert elbo == pytest.approx(flat.fit({"x": [1.0, 2.0, 1.0]}).elbo, abs=1e-12)


@pytest.mark.parametrize("turned", [False, True])
def test_a_latent_with_an_unknown_prior_and_nothing_below_it_is_not_there(turned: bool) -> None:
    """The scales that have an observation are those of a model without the others."""
    obs = cv.Plate("obs")
    scale = cv.Gamma("scale", 2.0, cv.Gamma("rate", 1.0, 1.0), plates=obs)
    x = np.array([[1.0, np.nan], [2.0, 1.5], [-0.5, np.nan]])
    flat = cv.Model(cv.Normal("x", 0.0, scale, plates=obs)).fit({"x": x[~np.isnan(x)]}, tol=1e-14)
    model = scaled(cv.Gamma("rate", 1.0, 1.0), turned)
    fit = model.fit({"x": x.T if turned else x}, data_plate="obs", tol=1e-14)
    assert fit.elbo == pytest.approx(flat.elbo, abs=1e-9)
    assert fit["rate"].mean == pytest.approx(flat["rate"].mean, rel=1e-6)


def test_empty_rows_change_no_start() -> None:
    """Also where the first columns are the same in all rows, and chance decides the labels."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    known = cv.Multinomial("a", None, [0.2, 0.3, 0.5], plates=obs)
    p = cv.Beta("p", 1.0, 1.0, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    count = cv.Gamma("rate", 2.0, 1.0, plates=component)
    model = cv.Model(known, cv.Bernoulli("b", p[z], plates=obs), cv.Poisson("c", count[z], plates=obs))
    data = {"a": np.zeros((6, 3)), "b": np.array([0, 1, 1, 0, 1, 0]), "c": np.array([1, 0, 4, 2, 3, 7])}
    padded = {
        name: np.concatenate([value, np.full_like(value, np.nan, dtype=float)])
        for name, value in data.items()
    }
    for seed in range(3):
        one, other = (
            model.fit(each, seed=seed, max_iter=3, tol=0.0, accelerate=False) for each in (data, padded)
        )
        np.testing.assert_allclose(other.elbo_trace, one.elbo_trace, rtol=1e-12)


def test_an_empty_row_of_labels_for_each_column_is_left_out() -> None:
    obs, column, component = cv.Plate("obs"), cv.Plate("column", 2), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=(obs, column))
    mean = cv.Normal("mean", np.array([-2.0, 2.0]), 1.0, plates=component)
    model = cv.Model(cv.Normal("x", mean[z], 1.0, plates=(obs, column)))
    seen = np.array([[1.0, -2.0], [0.5, 3.0]])
    padded = np.concatenate([seen[:1], [[np.nan, np.nan]], seen[1:]])
    assert model.fit({"x": padded}).elbo == pytest.approx(model.fit({"x": seen}).elbo, rel=1e-10)


def test_labels_without_an_observation_are_not_there() -> None:
    """Labels of each entry: those of missing entries change nothing, whatever else is in their row."""
    obs, column, component = cv.Plate("obs"), cv.Plate("column", 2), cv.Plate("component", 2)
    x = np.array([[1.0, -2.0], [np.nan, 3.0], [0.5, np.nan], [2.5, -1.0]])

    def model(plates: tuple[cv.Plate, ...]) -> cv.Model:
        z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=plates)
        mean = cv.Normal("mean", np.array([-2.0, 2.0]), 1.0, plates=component)
        return cv.Model(cv.Normal("x", mean[z], 1.0, plates=plates))

    init = {"mean": np.array([-1.0, 1.5]), "weights": np.array([0.4, 0.6])}
    settings = {"init": init, "max_iter": 8, "tol": 0.0, "accelerate": False}
    fit = model((obs, column)).fit({"x": x}, data_plate="obs", **settings)
    flat = model((obs,)).fit({"x": x[~np.isnan(x)]}, **settings)
    np.testing.assert_allclose(fit.elbo_trace[1:], flat.elbo_trace[1:], rtol=1e-12)
    assert fit.elbo_at(fit.local({"x": x}), {"x": x}) == pytest.approx(fit.elbo, rel=1e-12)


def two_mixtures(*, gated: bool = False) -> cv.Model:
    """Two mixtures over the same rows, without a variable in common."""
    obs = cv.Plate("obs")
    leaves = []
    for name in "ab":
        component = cv.Plate(f"component {name}", 2)
        mean = cv.Normal(f"mean {name}", np.array([-1.0, 1.0]), 0.1, plates=component)
        z = cv.Categorical(f"z {name}", cv.Dirichlet(f"weights {name}", np.ones(2)), plates=obs)
        scale = cv.Gamma(
            f"scale {name}", 2.0, cv.Gamma(f"rate {name}", 2.0, 2.0, plates=component)[z], plates=obs
        )
        leaves.append(cv.Normal(name, mean[z], scale if gated else 1.0, plates=obs))
    return cv.Model(*leaves)


@pytest.mark.parametrize("gated", [False, True])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_row_without_one_leaf_is_a_row_of_the_other_only(gated: bool, weighted: bool) -> None:
    """Two models that share nothing but their rows: the bound is the sum of theirs, each on the rows it has."""
    rng = np.random.default_rng(0)
    a, b = rng.normal(2, 1, 9), rng.normal(-1, 1, 9)
    a[[2, 5]], b[[0, 5, 7, 8]] = np.nan, np.nan
    weights = rng.integers(1, 4, 9).astype(float) if weighted else np.ones(9)
    init = {f"mean {name}": np.array([-1.0, 1.5]) for name in "ab"}
    # to the end, since what is brought near given values settles sooner in one model than in two
    settings = {"init": init, "max_iter": 1_000, "tol": 1e-14, "accelerate": False}
    both = two_mixtures(gated=gated).fit({"a": a, "b": b}, sample_weight=weights, **settings)
    total = 0.0
    for name, values in (("a", a), ("b", b)):
        one = cv.Model(next(leaf for leaf in two_mixtures(gated=gated).leaves if leaf.name == name))
        seen = ~np.isnan(values)
        own = {**settings, "init": {f"mean {name}": init[f"mean {name}"]}}
        fit = one.fit({name: values[seen]}, sample_weight=weights[seen], **own)
        np.testing.assert_allclose(both[f"mean {name}"].mean, fit[f"mean {name}"].mean, rtol=1e-5)
        total += fit.elbo
    assert both.elbo == pytest.approx(total, rel=1e-11)


def test_a_hidden_value_that_others_depend_on_cannot_be_left_out() -> None:
    """Given its label, a scale whose own leaf is missing would count as data for the rate of that label."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    scale = cv.Gamma("scale", 2.0, cv.Gamma("rate", 2.0, 2.0, plates=component)[z], plates=obs)
    mean = cv.Normal("mean", 0.0, 0.1, plates=component)
    model = cv.Model(cv.Normal("a", mean[z], 1.0, plates=obs), cv.Normal("b", 0.0, scale, plates=obs))
    with pytest.raises(
        cv.DataError,
        match=r"row 1 leaves the latent 'scale' without .* hidden values of the row depend on it",
    ):
        model.fit({"a": [0.0, 1.0, 5.0], "b": [0.0, np.nan, 5.0]})


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"y": [np.nan, np.nan], "X": [1.0, 2.0]}, "the data of 'y' are all missing"),
        ({"y": [1.0, np.nan], "X": [1.0, np.nan]}, "'X' has a missing value .* only variables"),
    ],
)
def test_what_cannot_be_missing_is_refused(data: dict[str, list[float]], message: str) -> None:
    obs = cv.Plate("obs")
    model = cv.Model(cv.Normal("y", cv.Normal("w", 0, 1) * cv.Data("X", plates=obs), 1.0, plates=obs))
    with pytest.raises(cv.DataError, match=message):
        model.fit(data)


def test_a_part_of_a_single_vector_is_refused() -> None:
    model = cv.Model(
        cv.MultivariateNormal("x", cv.MultivariateNormal("m", np.zeros(2), np.eye(2)), np.eye(2))
    )
    with pytest.raises(cv.DataError, match=r"has a missing value \(NaN\), where the rest of the vector"):
        model.fit({"x": [1.0, np.nan]})
    single = cv.Model(cv.Normal("y", cv.Data("m"), 1.0))
    with pytest.raises(cv.DataError, match=r"'m' has a missing value \(NaN\); only variables"):
        single.fit({"y": 1.0, "m": np.nan})


def test_names_that_look_like_those_of_masks() -> None:
    """Names are any words: an array called "x observed", and missing entries of x, are two things."""
    obs, rng = cv.Plate("obs"), np.random.default_rng(0)
    covariate, x = rng.normal(size=40), rng.normal(size=40)
    x[::7] = np.nan

    def fit(name: str) -> cv.Posterior:
        slope = cv.Normal("slope", 0.0, 1.0)
        leaf = cv.Normal("x", slope * cv.Data(name, plates=obs), cv.Gamma("tau", 1.0, 1.0), plates=obs)
        return cv.Model(leaf).fit({"x": x, name: covariate})

    assert fit("x observed").elbo == fit("covariate").elbo
    with pytest.raises(cv.ParameterError, match="must not contain the character NUL"):
        cv.Data("x\0observed", plates=obs)


def test_rows_that_differ_in_a_column_called_observed_are_told_apart() -> None:
    """A start made from a subsample merges equal rows only."""
    rows = {ColumnKey("height observed"): np.array([1.0, 0.0, 1.0, 2.0])}
    assert sample_of(ArrayRows(rows, 4)).row_weights.tolist() == [1, 2, 1]


def test_what_lies_above_a_missing_entry_alone_has_its_prior() -> None:
    """Also where the row is observed elsewhere: no hidden value says anything to those that it depends on."""
    obs = cv.Plate("obs")
    width = cv.Gamma("width", 2.0, cv.Gamma("rate", 6.0, 2.5), plates=obs)
    centre = cv.Normal("centre", cv.Normal("common", 0.0, 0.4), 0.4, plates=obs)
    x = cv.Normal("x", cv.Normal("level", centre, width, plates=obs), 1.0, plates=obs)
    y = cv.Bernoulli("y", cv.Beta("p", 1.0, 1.0), plates=obs)
    data = {"x": [0.3, -1.2, np.nan], "y": [1, 0, 1]}
    posterior = cv.Model(x, y).fit(data, seed=0, tol=1e-12)
    local, rate, common = posterior.local(data), posterior["rate"].mean, posterior["common"].mean
    assert local["width"].shape[2] == pytest.approx(2.0, rel=1e-12)
    assert local["width"].rate[2] == pytest.approx(rate, rel=1e-9)
    assert local["centre"].mean[2] == pytest.approx(common, rel=1e-6)
    assert local["centre"].variance[2] == pytest.approx(1 / 0.4, rel=1e-12)
    # the evidence is that of the other rows, and of the third answer
    alone = cv.Model(x, y).fit({"x": data["x"][:2], "y": data["y"][:2]}, seed=0, tol=1e-12)
    assert posterior.elbo == pytest.approx(alone.elbo + np.log(2 / 4), rel=1e-7)
