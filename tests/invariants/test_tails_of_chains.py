"""Steps after the last observation of a sequence, and sequences without any, integrate to one: they count nothing.

Each fit with such steps is compared with one of data from which a plain loop has taken them out.
"""

from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from checkpoint.comparing import after, assert_same_bits, broken_off_until_done
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy.stats import norm

import caviar as cv
from caviar.engine.rows import e_step as row_pass
from caviar.engine.rows import sequences as blocks

STATES = 3
FIXED = {"max_iter": 4, "tol": 0.0, "accelerate": False, "seed": 0}


def trimmed(data: dict[str, np.ndarray], leaves: tuple[str, ...] = ("x",)) -> dict[str, np.ndarray]:
    """Return the data without the steps after the last observation of their sequence, sequence by sequence."""
    n_rows = len(data["starts"])
    begins = [t for t in range(n_rows) if t == 0 or data["starts"][t]]
    kept: list[int] = []
    for begin, end in zip(begins, [*begins[1:], n_rows], strict=True):
        while end > begin and all(np.isnan(data[name][end - 1]).all() for name in leaves):
            end -= 1
        kept += range(begin, end)
    return {name: np.asarray(rows)[kept] for name, rows in data.items()}


def padded(data: dict[str, np.ndarray], rng: np.random.Generator, longest: int = 5) -> dict[str, np.ndarray]:
    """Return the data with steps without observation after each sequence, and with empty sequences between them."""
    n_rows = len(data["starts"])
    parts: dict[str, list[np.ndarray]] = {name: [] for name in data}

    def empty(length: int, begins: bool) -> None:
        for name, rows in data.items():
            own = np.full((length, *rows.shape[1:]), np.nan)
            if name == "starts":
                own = np.zeros(length)
                own[:1] = begins
            parts[name].append(own)

    begins = [t for t in range(n_rows) if t == 0 or data["starts"][t]]
    for begin, end in zip(begins, [*begins[1:], n_rows], strict=True):
        if rng.random() < 0.5:
            empty(int(rng.integers(longest + 1)), begins=True)
        for name, rows in data.items():
            own = np.asarray(rows[begin:end], dtype=float)
            if name == "starts":
                own[0] = 1.0
            parts[name].append(own)
        empty(int(rng.integers(longest + 1)), begins=False)
    return {name: np.concatenate(own) for name, own in parts.items()}


def sequences(seed: int, n_rows: int = 60, columns: int = 2, missing: float = 0.2) -> dict[str, np.ndarray]:
    rng = np.random.default_rng(seed)
    starts = rng.random(n_rows) < 0.15
    starts[0] = True
    path = np.repeat(rng.integers(STATES, size=n_rows // 4 + 1), 4)[:n_rows]
    x = 3.0 * np.array([[0, 0], [1, 0], [0, 1]])[path][:, :columns] + rng.normal(size=(n_rows, columns))
    x[rng.random(n_rows) < missing] = np.nan
    return {"x": x, "starts": starts}


def gaussian_markov(data: dict[str, np.ndarray], **arguments: Any) -> cv.Posterior:
    model = cv.models.gaussian_hidden_markov_model(2, STATES, with_starts=True)
    return model.fit(data, **{"init": {"mean": [[0.0, 0.0], [2.0, 0.0], [0.0, 2.0]]}, **FIXED, **arguments})


def categorical_markov(data: dict[str, np.ndarray], **arguments: Any) -> cv.Posterior:
    model = cv.models.categorical_hidden_markov_model(4, 2, with_starts=True)
    x = np.digitize(data["x"][:, 0], [-1.0, 1.0, 3.0]).astype(float)
    x[np.isnan(data["x"][:, 0])] = np.nan
    init = {"emission": np.array([[0.4, 0.3, 0.2, 0.1], [0.1, 0.2, 0.3, 0.4]])}
    return model.fit({"x": x, "starts": data["starts"]}, **{"init": init, **FIXED, **arguments})


def linear_gaussian(data: dict[str, np.ndarray], **arguments: Any) -> cv.Posterior:
    model = cv.models.linear_dynamical_system(2, 2, with_starts=True)
    init = {"loadings": np.array([[1.0, 0.5], [-0.3, 1.0]])}
    return model.fit(data, **{"init": init, **FIXED, **arguments})


def unknown_noise(data: dict[str, np.ndarray], **arguments: Any) -> cv.Posterior:
    """A known transition, whose density is stated by residuals; noise and first state unknown."""
    time = cv.Plate("time")
    s = cv.LinearGaussianChain(
        "s",
        cv.MultivariateNormal("first", np.zeros(2), np.eye(2)),
        cv.Wishart("precision", 3.0, np.eye(2)),
        np.array([[0.9, 0.2], [-0.1, 0.8]]),
        cv.Wishart("noise", 3.0, np.eye(2)),
        along=time,
        starts=cv.Data("starts", plates=time),
    )
    x = cv.MultivariateNormal("x", s, cv.Wishart("emission", 3.0, np.eye(2)), plates=time)
    return cv.Model(x).fit(data, **{**FIXED, **arguments})


FITS = [gaussian_markov, categorical_markov, linear_gaussian, unknown_noise]
EVERY = pytest.mark.parametrize("fit", FITS)


def assert_same(one: cv.Posterior, other: cv.Posterior, rtol: float = 1e-10) -> None:
    np.testing.assert_allclose(other.elbo_trace, one.elbo_trace, rtol=rtol, atol=1e-9)
    assert list(one) == list(other)
    for name in one:
        np.testing.assert_allclose(other[name].mean, one[name].mean, rtol=1e-8, atol=1e-9)
        if hasattr(one[name], "variance"):
            np.testing.assert_allclose(other[name].variance, one[name].variance, rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("n_tail", [30, 1000])
def test_a_tail_leaves_evidence_and_transition_alone(n_tail: int) -> None:
    """The deviation of a learnt transition is that of the steps that were seen, whatever comes after them."""
    time, row = cv.Plate("time"), cv.Plate("row", 1)
    transition = cv.MultivariateNormal("A", np.zeros(1), np.eye(1), plates=row)
    s = cv.LinearGaussianChain("s", [0.0], [[1.0]], transition, [[1.0]], along=time)
    model = cv.Model(cv.Normal("x", cv.dot([1.0], s), 2.0, plates=time))
    x = np.cumsum(np.random.default_rng(0).normal(size=15))
    alone = model.fit({"x": x}, seed=0, tol=1e-12)
    ahead = model.fit({"x": np.append(x, np.full(n_tail, np.nan))}, seed=0, tol=1e-12)
    assert ahead.elbo == pytest.approx(alone.elbo, abs=1e-9)
    assert ahead["A"].covariance[0, 0, 0] == pytest.approx(alone["A"].covariance[0, 0, 0], rel=1e-9)


def test_empty_sequences_give_an_initial_distribution_no_counts() -> None:
    data = sequences(0)
    n = 1000
    more = {
        "x": np.append(data["x"], np.full((n, 2), np.nan), axis=0),
        "starts": np.append(data["starts"], np.ones(n)),
    }
    seen = trimmed(data)
    posterior = gaussian_markov(more)
    assert posterior["initial"].concentration.sum() == pytest.approx(STATES + seen["starts"].sum())
    assert posterior["transition"].concentration.sum() == pytest.approx(
        STATES**2 + len(seen["starts"]) - seen["starts"].sum()
    )
    assert_same(gaussian_markov(seen), posterior)


@pytest.mark.slow
@EVERY
@settings(max_examples=6, deadline=None, suppress_health_check=list(HealthCheck))
@given(seed=st.integers(0, 10**6), missing=st.sampled_from([0.0, 0.2, 0.6]), n_rows=st.integers(5, 60))
def test_steps_without_descendants_are_not_there(fit: Any, seed: int, missing: float, n_rows: int) -> None:
    data = sequences(seed, n_rows, missing=missing)
    if np.isnan(data["x"]).all():
        return
    long = padded(data, np.random.default_rng(seed))
    assert_same(fit(trimmed(data)), fit(long))


@pytest.mark.thinned(12)
@EVERY
@pytest.mark.parametrize("start", [{"seed": 3}, {"seed": 4, "n_restarts": 2}], ids=["one start", "restarts"])
def test_no_start_knows_of_them(fit: Any, start: dict[str, Any]) -> None:
    """Not only the updates: the sample a start is made from, its draws, and the rows a tolerance is about."""
    data = sequences(1)
    long = padded(data, np.random.default_rng(1))
    arguments = {"init": "auto", "max_iter": 20, "tol": 1e-3, "accelerate": True, **start}
    one, other = fit(trimmed(data), **arguments), fit(long, **arguments)
    assert one.n_iter == other.n_iter
    assert_same(one, other, 1e-8)


@pytest.mark.thinned(4)
@EVERY
@pytest.mark.parametrize("schedule", [cv.Incremental(3), cv.Stochastic(10_000)], ids=str)
def test_every_schedule_leaves_them_out(fit: Any, schedule: Any) -> None:
    data = sequences(2)
    long = padded(data, np.random.default_rng(2))
    arguments = {"schedule": schedule, "max_iter": 8}
    one, other = fit(trimmed(data), **arguments), fit(long, **arguments)
    if isinstance(schedule, cv.Incremental):
        # batches are other sequences; all of them together are the same
        assert other.elbo_trace[0] == pytest.approx(one.elbo_trace[0], rel=1e-10)
        assert other.elbo == pytest.approx(one.elbo, abs=0.3)
        return
    assert_same(one, other, 1e-8)


@pytest.mark.slow
def test_a_stochastic_batch_stands_for_the_steps_that_count() -> None:
    """Batches of sequences of which most are empty: counts are scaled by what was seen, and not by rows."""
    data = sequences(3, 400)
    empty = np.full((2_000, 2), np.nan)
    more = {"x": np.append(data["x"], empty, axis=0), "starts": np.append(data["starts"], np.ones(2_000))}
    posterior = gaussian_markov(more, schedule=cv.Stochastic(100), max_iter=30)
    seen = trimmed(data)
    assert posterior["initial"].concentration.sum() == pytest.approx(STATES + seen["starts"].sum(), rel=0.35)
    steps = len(seen["starts"]) - seen["starts"].sum()
    assert posterior["transition"].concentration.sum() == pytest.approx(STATES**2 + steps, rel=0.1)


@pytest.mark.thinned(4)
@EVERY
def test_more_data_may_have_tails(fit: Any) -> None:
    one, more = sequences(4), sequences(5)
    first = fit(trimmed(one))
    long = padded(more, np.random.default_rng(0))

    def updated(data: dict[str, np.ndarray]) -> cv.Posterior:
        return fit(data, prior=first, init={}, seed=0)

    assert_same(updated(trimmed(more)), updated(long))


@EVERY
def test_the_elbo_of_other_data_leaves_them_out(fit: Any) -> None:
    posterior, data = fit(trimmed(sequences(6))), sequences(7)
    long = padded(data, np.random.default_rng(1))
    if fit is categorical_markov:
        edges = [-1.0, 1.0, 3.0]

        def coded(own: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
            x = np.where(np.isnan(own["x"][:, 0]), np.nan, np.digitize(own["x"][:, 0], edges))
            return {"x": x, "starts": own["starts"]}

        data, long = coded(data), coded(long)
    assert posterior.elbo_at({}, long) == pytest.approx(posterior.elbo_at({}, trimmed(data)), rel=1e-12)


@pytest.mark.slow
@pytest.mark.thinned(2)
@pytest.mark.parametrize("threads", [1, 2])
def test_any_number_of_threads_and_of_blocks(threads: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Blocks of which nothing is left, too."""
    data = sequences(8, 300)
    long = padded(data, np.random.default_rng(0), 40)
    long["x"][-70:] = np.nan
    one = [fit(trimmed(long)) for fit in (gaussian_markov, linear_gaussian)]
    monkeypatch.setattr(blocks, "_BLOCK_NUMBERS", 60)
    monkeypatch.setattr(row_pass.IndependentRows, "block_rows", 16)
    for before, fit in zip(one, (gaussian_markov, linear_gaussian), strict=True):
        assert_same(before, fit(long, executor=threads))


def test_points_are_what_they_were() -> None:
    """Where the parameters are points a normalised transition integrates to one by itself."""
    data = sequences(9)
    points = ["initial", "transition", "mean", "precision"]
    assert_same(
        gaussian_markov(trimmed(data), point=points),
        gaussian_markov(padded(data, np.random.default_rng(0)), point=points),
    )


def test_a_known_state_is_an_observation() -> None:
    """Steps up to the last known state stay; those after it go."""
    data = sequences(10, 40, missing=0.0)
    data = {"x": data["x"], "starts": np.arange(40) % 20 == 0}
    data["x"][30:] = np.nan
    states = np.full(40, np.nan)
    states[34] = 1
    fit = gaussian_markov({**data, "s": states})
    cut = {name: rows[:35] for name, rows in {**data, "s": states}.items()}
    assert_same(gaussian_markov(cut), fit)
    assert fit["transition"].concentration.sum() == pytest.approx(STATES**2 + 19 + 14)
    assert fit["initial"].concentration.sum() == pytest.approx(STATES + 2)


def test_given_states_of_a_start_are_counted_where_something_was_seen() -> None:
    data = sequences(11, 30, missing=0.0)
    data["x"][20:] = np.nan
    states = np.arange(30) % STATES
    starts = np.arange(30) % 10 == 0
    long = gaussian_markov({"x": data["x"], "starts": starts}, init={"s": states})
    short = gaussian_markov({"x": data["x"][:20], "starts": starts[:20]}, init={"s": states[:20]})
    assert_same(short, long)


def test_a_leaf_beside_the_chain_keeps_its_rows() -> None:
    """What has no chain above it is observed where the chain is not: the bound is the sum of both, each by itself."""
    rng = np.random.default_rng(0)
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    starts = np.arange(40) % 10 == 0
    x, y = rng.normal(size=40) + 3.0 * (np.arange(40) % 8 < 4), rng.normal(2, 1, 40)
    x[25:30] = x[33:] = x[5] = np.nan

    def leaves() -> tuple[cv.Normal, cv.Normal]:
        initial, rows = (
            cv.Dirichlet("initial", np.ones(2)),
            cv.Dirichlet("transition", np.ones(2), plates=state),
        )
        s = cv.MarkovChain("s", initial, rows, along=time, starts=cv.Data("starts", plates=time))
        beside = cv.Normal("y", cv.Normal("m", 0.0, 0.1), cv.Gamma("tau", 1.0, 1.0), plates=time)
        return cv.Normal("x", cv.Normal("mean", 0.0, 0.1, plates=state)[s], 1.0, plates=time), beside

    init = {"mean": np.array([0.0, 3.0])}
    both = cv.Model(*leaves()).fit({"x": x, "y": y, "starts": starts}, init=init, max_iter=300, tol=1e-13)
    own = trimmed({"x": x, "starts": starts})
    one = cv.Model(leaves()[0]).fit(own, init=init, max_iter=300, tol=1e-13)
    other = cv.Model(leaves()[1]).fit({"y": y}, max_iter=300, tol=1e-13)
    assert both.elbo == pytest.approx(one.elbo + other.elbo, abs=1e-8)
    for name in ("initial", "transition"):
        np.testing.assert_allclose(both[name].concentration, one[name].concentration, rtol=1e-5)
    np.testing.assert_allclose(both["tau"].mean, other["tau"].mean, rtol=1e-5)
    # forecasts reach over all rows all the same
    assert both.local({"x": x, "y": y, "starts": starts})["s"].probabilities.shape == (40, 2)
    labels = both.elbo_at({}, {"x": x, "y": y, "starts": starts})
    assert labels == pytest.approx(both.elbo, rel=1e-12)


@pytest.mark.parametrize("gap", [7, 39], ids=["between", "at the end"])
def test_a_mixture_beside_the_chain_counts_only_what_was_seen_of_it(gap: int) -> None:
    """A row with nothing observed stays in the chain where it lies between others; its label there counts nothing."""
    rng = np.random.default_rng(1)
    time, state, component = cv.Plate("time"), cv.Plate("state", 2), cv.Plate("component", 2)
    x = rng.normal(size=40) + 3.0 * (np.arange(40) % 8 < 4)
    y = np.where(rng.random(40) < 0.5, -3.0, 3.0) + rng.normal(size=40)
    x[gap] = y[gap] = np.nan

    def leaves() -> tuple[cv.Normal, cv.Normal]:
        rows = cv.Dirichlet("transition", np.ones(2), plates=state)
        s = cv.MarkovChain("s", [0.5, 0.5], rows, along=time)
        z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=time)
        beside = cv.Normal("y", cv.Normal("centre", 0.0, 0.1, plates=component)[z], 1.0, plates=time)
        return cv.Normal("x", cv.Normal("mean", 0.0, 0.1, plates=state)[s], 1.0, plates=time), beside

    init = {"mean": np.array([0.0, 3.0]), "centre": np.array([-3.0, 3.0])}
    tight = {"max_iter": 300, "tol": 1e-13}
    both = cv.Model(*leaves()).fit({"x": x, "y": y}, init=init, **tight)
    own = x[:39] if gap == 39 else x
    one = cv.Model(leaves()[0]).fit({"x": own}, init={"mean": init["mean"]}, **tight)
    other = cv.Model(leaves()[1]).fit({"y": y}, init={"centre": init["centre"]}, **tight)
    assert both["weights"].concentration.sum() == pytest.approx(2 + 39)
    assert both.elbo == pytest.approx(one.elbo + other.elbo, abs=1e-8)


def test_vectors_missing_in_part_at_the_end() -> None:
    data = sequences(12, 50, missing=0.0)
    data["x"][10:40][np.random.default_rng(0).random((30, 2)) < 0.3] = np.nan
    data["x"][46:] = np.nan
    data["x"][45, 1] = np.nan
    assert_same(gaussian_markov(trimmed(data)), gaussian_markov(data))


def test_each_row_a_sequence() -> None:
    """Where every row begins a sequence, a chain is a mixture, and a row without observation is none of it."""
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    x = np.array([0.1, np.nan, 3.2, -0.4, np.nan, 2.9])

    def model(starts: Any) -> cv.Model:
        rows = cv.Dirichlet("transition", np.ones(2), plates=state)
        s = cv.MarkovChain("s", cv.Dirichlet("initial", np.ones(2)), rows, along=time, starts=starts)
        return cv.Model(cv.Normal("x", cv.Constant("mean", [0.0, 3.0], plates=state)[s], 1.0, plates=time))

    fit = model(True).fit({"x": x}, tol=1e-13)
    assert fit["initial"].concentration.sum() == pytest.approx(2 + 4)
    assert fit.elbo == pytest.approx(model(True).fit({"x": x[~np.isnan(x)]}, tol=1e-13).elbo, abs=1e-10)


def test_a_sequence_is_no_weight() -> None:
    """Rows that count nothing are no reason to refuse a fit, and weights of a user still are."""
    data = sequences(13)
    long = padded(data, np.random.default_rng(0))
    n_rows = len(long["starts"])
    assert_same(gaussian_markov(long), gaussian_markov(long, sample_weight=np.ones(n_rows)))
    with pytest.raises(cv.DataError, match="must be the same in all rows of a sequence of MarkovChain 's'"):
        gaussian_markov(long, sample_weight=np.r_[0.0, np.ones(n_rows - 1)])


def test_nothing_observed_at_all_is_refused() -> None:
    data = sequences(14)
    with pytest.raises(cv.DataError, match="the data of 'x' are all missing"):
        gaussian_markov({**data, "x": np.full_like(data["x"], np.nan)})


@EVERY
def test_tails_of_columns_on_disk(fit: Any, tmp_path: Any) -> None:
    if fit is categorical_markov:
        pytest.skip("its data are made of the columns")
    long = padded(sequences(15, 300), np.random.default_rng(3))
    np.save(tmp_path / "x.npy", long["x"])
    stored = {**long, "x": np.load(tmp_path / "x.npy", mmap_mode="r")}
    np.testing.assert_array_equal(fit(long).elbo_trace, fit(stored).elbo_trace)


@pytest.mark.thinned(2)
@EVERY
def test_a_fit_with_tails_goes_on_from_its_checkpoint(fit: Any, tmp_path: Any) -> None:
    long = padded(sequences(16), np.random.default_rng(4))
    kept = {"checkpoint": tmp_path / "c", "checkpoint_every": 0}
    found, n_breaks = broken_off_until_done(lambda **how: fit(long, **kept, **how), [{"progress": after(3)}])
    assert n_breaks == 1
    assert_same_bits(found, fit(long))


def forecast_of(path: np.ndarray, transition: np.ndarray, steps: int) -> np.ndarray:
    return np.stack([path @ np.linalg.matrix_power(transition, h) for h in range(1, steps + 1)])


def test_states_of_a_tail_are_forecast_and_change_nothing_before_it() -> None:
    data = sequences(17, 50)
    posterior = gaussian_markov(trimmed(data))
    steps = 8
    long = padded(data, np.random.default_rng(0))
    long = {
        "x": np.append(long["x"], np.full((2 * steps, 2), np.nan), axis=0),
        "starts": np.concatenate([long["starts"], np.zeros(steps), [1], np.zeros(steps - 1)]),
    }
    short = trimmed(data)
    whole, kept = posterior.local(long)["s"], posterior.local(short)["s"]
    probabilities = whole.probabilities
    np.testing.assert_allclose(probabilities.sum(axis=1), 1.0, rtol=1e-12)
    is_kept = np.zeros(len(long["starts"]), dtype=bool)
    begins = np.append(np.flatnonzero(long["starts"]), len(is_kept))
    for begin, end in pairwise(begins):
        seen = np.flatnonzero(~np.isnan(long["x"][begin:end, 0]))
        is_kept[begin : begin + (seen[-1] + 1 if len(seen) else 0)] = True
    np.testing.assert_allclose(probabilities[is_kept], kept.probabilities, rtol=1e-9, atol=1e-12)
    assert whole.log_partition == pytest.approx(kept.log_partition, rel=1e-12)
    initial, transition = posterior["initial"].mean, posterior["transition"].mean
    np.testing.assert_allclose(probabilities[-steps], initial, rtol=1e-9)
    ahead = forecast_of(initial, transition, steps - 1)
    np.testing.assert_allclose(probabilities[1 - steps :], ahead, rtol=1e-9)
    before = np.flatnonzero(is_kept)[-1]
    ahead = forecast_of(probabilities[before], transition, len(is_kept) - steps - 1 - before)
    np.testing.assert_allclose(probabilities[before + 1 : len(is_kept) - steps], ahead, rtol=1e-9)
    assert whole.mode().shape == whole.sample(seed=0).shape == (len(is_kept),)


def test_vectors_of_a_tail_are_forecast_and_change_nothing_before_it() -> None:
    data, steps = sequences(18, 40, missing=0.0), 6
    posterior = linear_gaussian(data)
    long = {
        "x": np.append(data["x"], np.full((2 * steps, 2), np.nan), axis=0),
        "starts": np.concatenate([data["starts"], np.zeros(steps), [1], np.zeros(steps - 1)]),
    }
    kept, whole = posterior.local(data)["s"], posterior.local(long)["s"]
    np.testing.assert_allclose(whole.mean[:40], kept.mean, rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(whole.covariance[:40], kept.covariance, rtol=1e-9, atol=1e-11)
    assert whole.log_partition == pytest.approx(kept.log_partition, rel=1e-10)
    transition, noise = posterior["transition"].mean, whole.noise_precision
    mean, covariance = kept.mean[-1], kept.covariance[-1]
    for step in range(steps):
        mean = transition @ mean
        covariance = transition @ covariance @ transition.T + np.linalg.inv(noise)
        np.testing.assert_allclose(whole.mean[40 + step], mean, rtol=1e-9, atol=1e-12)
        np.testing.assert_allclose(whole.covariance[40 + step], covariance, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(whole.covariance[-steps], np.linalg.inv(whole.initial_precision), atol=1e-9)


def test_predictions_at_a_tail_are_those_of_the_forecast() -> None:
    """Of a second leaf that the data lack, at steps after the last observation of the first."""
    time, state = cv.Plate("time"), cv.Plate("state", 2)
    s = cv.MarkovChain("s", [0.5, 0.5], [[0.9, 0.1], [0.3, 0.7]], along=time)
    x = cv.Normal("x", cv.Constant("a", [0.0, 3.0], plates=state)[s], 1.0, plates=time)
    y = cv.Normal("y", cv.Constant("b", [-1.0, 5.0], plates=state)[s], 4.0, plates=time)
    rows = np.array([0.2, 3.1, 2.8])
    posterior = cv.Model(x, y).fit({"x": rows, "y": rows})
    ahead = posterior.predict({"x": np.append(rows, [np.nan, np.nan])})
    likelihood = norm([0.0, 3.0], 1.0).pdf(rows[:, None])
    forward = np.array([0.5, 0.5]) * likelihood[0]
    for t in (1, 2):
        forward = forward @ [[0.9, 0.1], [0.3, 0.7]] * likelihood[t]
    share = forward / forward.sum()
    for t in (3, 4):
        share = share @ [[0.9, 0.1], [0.3, 0.7]]
        assert ahead["y"].mean[t] == pytest.approx(share @ [-1.0, 5.0], rel=1e-10)
