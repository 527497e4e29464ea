"""Several hidden labels of a row that choose from one table, or for each other: one joint factor, enumerated."""

from itertools import product

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import multivariate_normal, norm, t

import caviar as cv

OBS = cv.Plate("obs")
FIRST, SECOND = cv.Plate("first", 2), cv.Plate("second", 3)
N = 30
RNG = np.random.default_rng(0)
TABLE = RNG.normal(0, 2, (2, 3))
SHARES = np.array([0.3, 0.7])
GIVEN = RNG.dirichlet(np.ones(3), 2)
X = RNG.normal(size=N) * 2
LOG_JOINT = np.log(SHARES)[:, None] + np.log(GIVEN) + norm.logpdf(X[:, None, None], TABLE, 1.5**-0.5)
EXACT = np.exp(LOG_JOINT - logsumexp(LOG_JOINT, axis=(1, 2), keepdims=True))


def labels():
    z = cv.Categorical("z", SHARES, plates=OBS)
    return z, cv.Categorical("v", cv.Constant("given", GIVEN, plates=FIRST)[z], plates=OBS)


def known(*more):
    """Return a model whose table is known; ``more`` says what else depends on the labels."""
    z, v = labels()
    table = cv.Constant("table", TABLE, plates=(FIRST, SECOND))
    return cv.Model(cv.Normal("x", table[z, v], 1.5, plates=OBS), *(own(table, z, v) for own in more))


def evidence(log_joint=LOG_JOINT):
    return logsumexp(log_joint, axis=(1, 2))


def test_two_labels_of_a_known_table_are_exact():
    posterior = known().fit({"x": X})
    assert posterior.elbo == pytest.approx(evidence().sum(), rel=1e-14)
    local = posterior.local({"x": X})
    np.testing.assert_allclose(local["z"].probabilities, EXACT.sum(axis=2), atol=1e-14)
    np.testing.assert_allclose(local["v"].probabilities, EXACT.sum(axis=1), atol=1e-14)
    np.testing.assert_allclose(local["z"].of("v", "z"), EXACT.swapaxes(1, 2), atol=1e-14)
    with pytest.raises(cv.ParameterError, match="'x' shares no factor with 'z'"):
        local["z"].of("x")
    assert known().fit({"x": X}, factors=[]).elbo < posterior.elbo - 1
    assert known().fit({"x": X}, factors=[("z", "v")]).elbo == posterior.elbo
    np.testing.assert_allclose(posterior.log_predictive({"x": X}), evidence(), rtol=1e-13)


def test_one_index_after_the_other_says_the_same():
    z, v = labels()
    table = cv.Constant("table", TABLE.T, plates=(SECOND, FIRST))
    posterior = cv.Model(cv.Normal("x", table[v][z], 1.5, plates=OBS)).fit({"x": X})
    assert posterior.elbo == pytest.approx(evidence().sum(), rel=1e-14)


def test_labels_known_in_part_and_missing_rows():
    z, v = np.full(N, np.nan), np.full(N, np.nan)
    z[:10], v[5:12] = 1, 2
    masked = LOG_JOINT.copy()
    masked[:10, 0], masked[5:12, :, :2] = -np.inf, -np.inf
    posterior = known().fit({"x": X, "z": z, "v": v})
    assert posterior.elbo == pytest.approx(evidence(masked).sum(), rel=1e-14)
    gaps = np.where(np.arange(N) < 4, np.nan, X)
    assert known().fit({"x": gaps}).elbo == pytest.approx(evidence()[4:].sum(), rel=1e-14)


def test_weights_count_rows():
    weights = RNG.integers(1, 4, N).astype(float)
    posterior = known().fit({"x": X}, sample_weight=weights)
    assert posterior.elbo == pytest.approx(weights @ evidence(), rel=1e-14)


def test_what_is_predicted_depends_on_both_labels():
    model = known(lambda table, z, v: cv.Normal("y", table[z, v], 4.0, plates=OBS))
    posterior = model.fit({"x": X, "y": X})
    predicted = posterior.predict({"x": X})["y"]
    mean = (EXACT * TABLE).sum(axis=(1, 2))
    np.testing.assert_allclose(predicted.mean, mean, rtol=1e-12)
    variance = (EXACT * (TABLE - mean[:, None, None]) ** 2).sum(axis=(1, 2)) + 0.25
    np.testing.assert_allclose(predicted.sd, np.sqrt(variance), rtol=1e-12)


def test_given_labels_are_evaluated_where_they_are():
    posterior = known().fit({"x": X})
    local = posterior.local({"x": X})
    assert posterior.elbo_at({"z": local["z"], "v": local["v"]}, {"x": X}) == pytest.approx(posterior.elbo)
    # factors apart are the product of the marginals
    apart = EXACT.sum(axis=2)[:, :, None] * EXACT.sum(axis=1)[:, None]
    bound = (apart * (LOG_JOINT - np.log(apart))).sum()
    given = {name: cv.families.Categorical(local[name].probabilities) for name in ("z", "v")}
    assert posterior.elbo_at(given, {"x": X}) == pytest.approx(bound, rel=1e-12)


def test_a_start_from_one_of_the_labels():
    posterior = known().fit({"x": X}, init={"z": (X > 0).astype(int)})
    assert posterior.elbo == pytest.approx(evidence().sum(), rel=1e-14)


def test_a_saved_model_keeps_both_indices(tmp_path):
    posterior = known().fit({"x": X})
    posterior.save(tmp_path / "labels.caviar")
    again = cv.load(tmp_path / "labels.caviar")
    np.testing.assert_allclose(again.local({"x": X})["v"].of("z", "v"), EXACT, atol=1e-14)


def test_sprinkler_is_the_enumerated_network():
    """Wet grass with two causes, of which rain also keeps the sprinkler off; some of its probabilities are zero."""
    two = [cv.Plate(name, 2) for name in ("rain", "sprinkler")]
    off_on = np.array([[0.6, 0.4], [0.99, 0.01]])
    wet = np.array([[[1.0, 0.0], [0.1, 0.9]], [[0.2, 0.8], [0.01, 0.99]]])
    rain = cv.Categorical("rain", [0.8, 0.2], plates=OBS)
    sprinkler = cv.Categorical("sprinkler", cv.Constant("off", off_on, plates=two[0])[rain], plates=OBS)
    table = cv.Constant("wet", wet, plates=two)
    model = cv.Model(cv.Categorical("grass", table[rain, sprinkler], plates=OBS))
    posterior = model.fit({"grass": [1]})
    joint = np.array([0.8, 0.2])[:, None] * off_on * wet[..., 1]
    assert posterior.elbo == pytest.approx(np.log(joint.sum()), rel=1e-14)
    assert joint.sum(axis=1)[1] / joint.sum() == pytest.approx(0.3576877, rel=1e-6)  # Wikipedia's 35.77%
    exact = joint / joint.sum()
    np.testing.assert_allclose(
        posterior.local({"grass": [1]})["rain"].of("rain", "sprinkler")[0], exact, atol=1e-15
    )
    with pytest.raises(cv.DataError, match=r"row 1 is impossible.*'sprinkler' is known to be 0"):
        model.fit({"grass": [1, 1], "rain": [np.nan, 0], "sprinkler": [np.nan, 0]})


def three(n_rows=12):
    """Return a noisy-and of three skills with a table of their own, and the log joint of each combination."""
    rng = np.random.default_rng(4)
    plates = [cv.Plate(f"p{i}", 2) for i in range(3)]
    right = np.full((2, 2, 2), 0.2)
    right[1, 1, 1] = 0.9
    skills = [cv.Categorical(f"skill{i}", [1 - p, p], plates=OBS) for i, p in enumerate((0.5, 0.6, 0.7))]
    both = cv.Constant("both", np.array([[0.3, 0.3], [0.3, 0.8]]), plates=plates[:2])
    all_of = cv.Constant("all_of", right, plates=plates)
    one = cv.Bernoulli("one", both[skills[0], skills[1]], plates=OBS)
    other = cv.Bernoulli("other", all_of[tuple(skills)], plates=OBS)
    data = {name: rng.integers(2, size=n_rows) for name in ("one", "other")}
    log_joint = np.empty((n_rows, 2, 2, 2))
    for a, b, c in product(range(2), repeat=3):
        prior = np.log([0.5, 0.5])[a] + np.log([0.4, 0.6])[b] + np.log([0.3, 0.7])[c]
        p, q = (0.8 if a and b else 0.3), right[a, b, c]
        likely = np.where(data["one"], p, 1 - p) * np.where(data["other"], q, 1 - q)
        log_joint[:, a, b, c] = prior + np.log(likely)
    return cv.Model(one, other), data, log_joint


def test_three_labels_of_two_tables():
    model, data, log_joint = three()
    posterior = model.fit(data)
    total = logsumexp(log_joint, axis=(1, 2, 3))
    assert posterior.elbo == pytest.approx(total.sum(), rel=1e-13)
    exact = np.exp(log_joint - total[:, None, None, None])
    found = posterior.local(data)["skill1"]
    np.testing.assert_allclose(found.of("skill0", "skill1", "skill2"), exact, atol=1e-14)
    np.testing.assert_allclose(found.of("skill2", "skill0"), exact.sum(axis=2).swapaxes(1, 2), atol=1e-14)
    pair = model.fit(data, factors=[("skill0", "skill1")])
    assert model.fit(data, factors=[]).elbo < pair.elbo < posterior.elbo


def test_labels_and_a_width_that_they_gate():
    """A Student-t component for each pair: the scale of a row is in the factor, given both labels."""
    z, v = labels()
    table = cv.Constant("table", TABLE, plates=(FIRST, SECOND))
    width = cv.Gamma("width", 2.0, 2.0, plates=OBS)
    posterior = cv.Model(cv.Normal("x", table[z, v], width, plates=OBS)).fit({"x": X})
    log_joint = np.log(SHARES)[:, None] + np.log(GIVEN) + t.logpdf(X[:, None, None], 4, TABLE, 1.0)
    assert posterior.elbo == pytest.approx(evidence(log_joint).sum(), rel=1e-12)


def test_vectors_missing_in_part():
    z, v = labels()
    means = np.random.default_rng(8).normal(0, 2, (2, 3, 2))
    precision = np.array([[2.0, 0.8], [0.8, 1.0]])
    table = cv.Constant("table", means, plates=(FIRST, SECOND))
    model = cv.Model(cv.MultivariateNormal("x", table[z, v], precision, plates=OBS))
    rows = np.random.default_rng(9).normal(size=(9, 2))
    rows[:3, 0], rows[3:6, 1] = np.nan, np.nan
    covariance = np.linalg.inv(precision)
    log_joint = np.empty((9, 2, 3))
    for n, k, j in product(range(9), range(2), range(3)):
        seen = ~np.isnan(rows[n])
        own = multivariate_normal(means[k, j][seen], covariance[np.ix_(seen, seen)])
        log_joint[n, k, j] = np.log(SHARES[k] * GIVEN[k, j]) + own.logpdf(rows[n][seen])
    assert model.fit({"x": rows}).elbo == pytest.approx(evidence(log_joint).sum(), rel=1e-12)


def learnt():
    z = cv.Categorical("z", cv.Dirichlet("shares", np.ones(2)), plates=OBS)
    v = cv.Categorical("v", cv.Dirichlet("given", np.ones(3), plates=FIRST)[z], plates=OBS)
    mean = cv.Normal("mean", 0.0, 0.1, plates=(FIRST, SECOND))
    return cv.Model(cv.Normal("x", mean[z, v], cv.Gamma("tau", 2, 1), plates=OBS))


@pytest.mark.slow
def test_a_learnt_table_has_the_bound_it_says():
    data = {"x": X}
    report = cv.testing.check_model(learnt(), data, seed=0)
    assert report.passed, str(report)


@pytest.mark.starts_of_users
@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("arguments", [{"schedule": "incremental"}, {"executor": 3}])
def test_schedules_and_threads_end_alike(arguments):
    fit = learnt().fit({"x": X}, seed=0, tol=1e-10)
    other = learnt().fit({"x": X}, seed=0, tol=1e-10, **arguments)
    assert other.elbo == pytest.approx(fit.elbo, abs=1e-5)


def test_a_label_of_a_group_and_one_of_the_record():
    """Labels on two plates keep a factor each: the bound is that of the updates written out."""
    rng = np.random.default_rng(2)
    groups = np.repeat(np.arange(8), 5)
    record, person = cv.Plate("record"), cv.Plate("person", 8)
    y = rng.normal(size=40) + TABLE[(groups % 2), rng.integers(3, size=40)]
    z = cv.Categorical("z", SHARES, plates=person)
    v = cv.Categorical("v", np.full(3, 1 / 3), plates=record)
    table = cv.Constant("table", TABLE, plates=(FIRST, SECOND))
    own = z[cv.Data("person", plates=record)]
    posterior = cv.Model(cv.Normal("y", table[own, v], 1.0, plates=record)).fit(
        {"y": y, "person": groups}, tol=1e-13
    )
    each = norm.logpdf(y[:, None, None], TABLE) + np.log(1 / 3)
    q = posterior["z"].probabilities[groups]
    r = np.exp(np.einsum("nk,nkl->nl", q, each))
    r /= r.sum(axis=1, keepdims=True)
    logits = np.log(SHARES) + np.array(
        [np.einsum("nl,nkl->k", r[groups == g], each[groups == g]) for g in range(8)]
    )
    np.testing.assert_allclose(
        posterior["z"].probabilities, np.exp(logits - logsumexp(logits, axis=1)[:, None]), atol=1e-6
    )
    bound = np.einsum("nk,nl,nkl->", q, r, each) - np.sum(r * np.log(r))
    p = posterior["z"].probabilities
    bound += np.sum(p * (np.log(SHARES) - np.log(np.maximum(p, 1e-300))))
    assert posterior.elbo == pytest.approx(bound, rel=1e-9)


@pytest.mark.parametrize(
    ("stated", "words"),
    [
        (lambda b, z, g, h: b[z, z], "which is the diagonal of 'b'"),
    ],
)
def test_one_label_twice_is_refused(stated, words):
    z = cv.Categorical("z", [0.5, 0.5], plates=cv.Plate("node", 5))
    b = cv.Normal("b", 0, 1, plates=(FIRST, cv.Plate("other", 2)))
    with pytest.raises(cv.PlateError, match=words):
        stated(b, z, cv.Data("i", plates=OBS), cv.Data("j", plates=OBS))


def test_a_table_of_many_combinations_is_one_factor_and_a_sum_of_two_is_not():
    rng, plates = np.random.default_rng(3), [cv.Plate("many", 12), cv.Plate("more", 10)]
    table = rng.normal(0, 3, (12, 10))
    z, v = (
        cv.Categorical(name, np.full(own.size, 1 / own.size), plates=OBS)
        for name, own in zip("zv", plates, strict=True)
    )
    chosen = cv.Constant("table", table, plates=plates)[z, v]
    posterior = cv.Model(cv.Normal("x", chosen, 4.0, plates=OBS)).fit({"x": X})
    exact = evidence(norm.logpdf(X[:, None, None], table, 0.5) - np.log(120)).sum()
    assert posterior.elbo == pytest.approx(exact, rel=1e-12)
    first = cv.Constant("first part", table[:, 0], plates=plates[0])[z]
    added = cv.Model(
        cv.Normal("x", first + cv.Constant("second part", table[0], plates=plates[1])[v], 4.0, plates=OBS)
    )
    assert added.fit({"x": X}).elbo < added.fit({"x": X}, factors=[("z", "v")]).elbo


def test_too_many_combinations_are_refused():
    plates = [cv.Plate("many", 80), cv.Plate("more", 80)]
    z, v = (cv.Categorical(name, np.full(80, 1 / 80), plates=OBS) for name in "zv")
    mean = cv.Normal("mean", 0, 1, plates=plates)
    model = cv.Model(cv.Normal("x", mean[z, v], 1.0, plates=OBS))
    with pytest.raises(cv.ModelError, match="80 x 80 combinations of labels for each row, more than 4,096"):
        model.fit({"x": X}, factors=[("z", "v")])


@pytest.mark.parametrize("mean", ["product", "sum"])
def test_probabilities_of_one_of_two_labels_are_gated(mean):
    """Hidden probabilities of a row integrate to their mean: the evidence is that of known ones."""
    rng = np.random.default_rng(3)
    data = {"x": rng.normal(size=4), "d": rng.normal(size=4)}

    def elbo(shares):
        y = cv.Categorical("y", shares, plates=OBS)
        z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
        own = cv.Constant("own", [0.0, 1.5], plates=cv.Plate("of z", 2))[z]
        width = cv.Constant("width", [2.5, 5.0], plates=cv.Plate("of y", 2))[y]
        d = cv.Data("d", plates=OBS)
        x = cv.Normal("x", own * d if mean == "product" else own + d, width, plates=OBS)
        return cv.Model(x).fit(data, data_plate="obs", tol=1e-13).elbo

    hidden = cv.Dirichlet("shares", [2.0, 1.0], plates=OBS)
    assert elbo(hidden) == pytest.approx(elbo([2 / 3, 1 / 3]), rel=1e-12)
