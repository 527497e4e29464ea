"""A fit that was broken off, and made again, ends with the bits of one that was not: every model, every schedule."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from invariants.registry import CASES
from scipy.sparse import csr_array

import caviar as cv
from caviar.engine.ascent.schedules.stochastic import Stochastic
from caviar.engine.checkpoint.states import States
from caviar.models.maximum_likelihood_mixture import POINT
from checkpoint.comparing import Breaking, Broken, after, assert_same_bits, broken_off_until_done

SCHEDULES = {
    "batch": "batch",
    "plain": "batch",
    "incremental": cv.Incremental(4),
    "stochastic": cv.Stochastic(300),
}

pytestmark = [pytest.mark.filterwarnings("ignore::caviar.CaviarWarning"), pytest.mark.first_guess]


FEW = ("joint", "map", "measured-apart", "regression", "items", "sticks")
"""Models that stand for all where a schedule is no plain one."""
EACH = [
    pytest.param(name, schedule, marks=() if schedule == "batch" or name in FEW else pytest.mark.slow)
    for name in CASES
    for schedule in SCHEDULES
    # with local factors of earlier globals the objective might fall: refused
    if (name, schedule) != ("expected odds", "incremental")
]

SEVERAL = [
    pytest.param(name, schedule, marks=() if schedule == "batch" or name in FEW[:3] else pytest.mark.slow)
    for name in ("joint", "independent", "map", "measured-apart", "sticks", "robust")
    for schedule in SCHEDULES
]


def check(fit: Callable[..., cv.Posterior], path: Any, breaks: list[dict[str, Any]], fewest: int = 1) -> None:
    """Check a fit that is broken off against one that is not; it has to be broken off some times."""
    kept = {"checkpoint": path, "checkpoint_every": 0}
    found, n_breaks = broken_off_until_done(lambda **arguments: fit(**kept, **arguments), breaks)
    assert n_breaks >= fewest
    assert_same_bits(found, fit())


@pytest.mark.thinned(36)
@pytest.mark.parametrize(("name", "schedule"), EACH)
def test_a_fit_goes_on_after_its_third_iteration(name, schedule, tmp_path):
    case = CASES[name]
    data = case.draw(np.random.default_rng(3), 900 if schedule in ("incremental", "stochastic") else 150)

    def fit(**arguments: Any) -> cv.Posterior:
        return case.fit(
            data,
            max_iter=8 if schedule != "stochastic" else 4,
            schedule=SCHEDULES[schedule],
            accelerate=schedule != "plain",
            tol=0.0,
            **arguments,
        )

    check(fit, tmp_path / "c", [{"progress": after(3)}])


@pytest.mark.slow
@pytest.mark.parametrize(("name", "schedule"), SEVERAL)
def test_a_fit_with_restarts_goes_on_after_every_iteration(name, schedule, tmp_path):
    case = CASES[name]
    data = case.draw(np.random.default_rng(4), 600 if schedule in ("incremental", "stochastic") else 100)

    def fit(**arguments: Any) -> cv.Posterior:
        return case.fit(
            data,
            max_iter=4,
            n_restarts=3,
            schedule=SCHEDULES[schedule],
            accelerate=schedule != "plain",
            **arguments,
        )

    check(fit, tmp_path / "c", [{"progress": after(1)} for _ in range(100)], fewest=6)


@pytest.mark.starts_of_users
@pytest.mark.thinned(12)
@pytest.mark.parametrize("schedule", SCHEDULES)
@pytest.mark.parametrize("name", ["joint", "measured-apart", "deconvolved"])
def test_a_fit_goes_on_after_it_was_broken_off_in_the_middle_of_passes(name, schedule, tmp_path):
    case = CASES[name]
    data = case.draw(np.random.default_rng(5), 9000)

    def fit(**arguments: Any) -> cv.Posterior:
        return case.fit(data, max_iter=4, tol=0.0, init="prior", schedule=SCHEDULES[schedule], **arguments)

    # each is let run further than the one before, so that all of them together come to the end
    check(fit, tmp_path / "c", [{"executor": Breaking(number)} for number in range(1, 90, 2)], fewest=3)


def far_clusters(rng: np.random.Generator, n: int) -> np.ndarray:
    return rng.normal(0, 1e-3, (n, 2)) + 1e4 * rng.integers(0, 3, (n, 1)) * np.array([1.0, -0.5])


@pytest.mark.slow
@pytest.mark.thinned(4)
@pytest.mark.parametrize("schedule", SCHEDULES)
def test_reference_points_that_moved_are_kept(schedule, tmp_path, monkeypatch):
    moved = []
    plain = States.plain
    monkeypatch.setattr(
        States, "plain", lambda *state: moved.append(bool(plain(*state)["centres"])) or plain(*state)
    )
    data = {"x": far_clusters(np.random.default_rng(6), 2000)}
    model = cv.models.normal_wishart_mixture(2, 3, mean_precision=1e-12, inverse_scale=1e-6)

    def fit(**arguments: Any) -> cv.Posterior:
        return model.fit(
            data, seed=1, max_iter=6, tol=0.0, schedule=SCHEDULES[schedule], n_restarts=2, **arguments
        )

    check(fit, tmp_path / "c", [{"progress": after(1)} for _ in range(40)], fewest=5)
    assert any(moved), "this test is about moved reference points"


def test_reference_points_that_move_in_the_middle_of_a_pass(tmp_path, monkeypatch):
    """The batches of a stochastic pass are those of the reference points that it began with."""
    apart = []
    plain = Stochastic.to_plain
    monkeypatch.setattr(
        Stochastic,
        "to_plain",
        lambda own, state: apart.append(state.began is not state.problem) or plain(own, state),
    )
    data = {"x": far_clusters(np.random.default_rng(6), 2000)}
    model = cv.models.normal_wishart_mixture(2, 3, mean_precision=1e-12, inverse_scale=1e-6)

    def fit(**arguments: Any) -> cv.Posterior:
        return model.fit(
            data, seed=1, max_iter=3, tol=0.0, schedule=cv.Stochastic(300), init="prior", **arguments
        )

    check(fit, tmp_path / "c", [{"executor": Breaking(number)} for number in range(3, 60, 4)], fewest=3)
    assert any(apart), "this test is about reference points that move in the middle of a pass"


def hidden_markov(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    time, state = cv.Plate("time"), cv.Plate("state", 3)
    s = cv.MarkovChain(
        "s",
        cv.Dirichlet("initial", np.ones(3)),
        cv.Dirichlet("transition", np.ones(3), plates=state),
        along=time,
    )
    mean = cv.Normal("mean", 0.0, 0.01, plates=state)
    model = cv.Model(cv.Normal("x", mean[s], cv.Gamma("tau", 1.0, 1.0, plates=state)[s], plates=time))
    return model, {"x": rng.normal(size=120) + 2.0 * np.repeat(rng.integers(0, 3, 12), 10)}, {}


def linear_gaussian(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    return cv.models.linear_dynamical_system(2, 2), {"x": np.cumsum(rng.normal(size=(60, 2)), axis=0)}, {}


def partly_known(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    case = CASES["independent"]
    known = [[0.0, 0.0], [np.nan, np.nan], [2.0, 1.0]]
    return case.state(), {**case.draw(rng, 200), "mean": known}, {}


def missing_entries(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    case = CASES["joint"]
    data = case.draw(rng, 300)
    data["x"][rng.random(data["x"].shape) < 0.2] = np.nan
    return case.state(), data, {"sample_weight": rng.gamma(2, 1, 300)}


def topics(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    counts = csr_array(rng.poisson(1.0, (20, 12)))
    return cv.models.latent_dirichlet_allocation(3, 12), {"word": counts}, {}


def given_start(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    case = CASES["independent"]
    q = cv.families.MultivariateNormal(rng.normal(size=(3, 2)), np.tile(np.eye(2), (3, 1, 1)))
    return case.state(), case.draw(rng, 200), {"init": {"mean": q}, "order": ["precision"]}


def flat(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    # more components than clusters: starts collapse, and others do not
    return (
        cv.models.maximum_likelihood_mixture(1, 4),
        {"x": rng.normal(size=(30, 1))},
        {"n_restarts": 5, "point": POINT},
    )


def more_rows(rng: np.random.Generator) -> tuple[cv.Model, dict[str, Any], dict[str, Any]]:
    case = CASES["joint"]
    model = case.state()
    return model, case.draw(rng, 200), {"prior": model.fit(case.draw(rng, 100), seed=0)}


STATEMENTS = [
    hidden_markov,
    linear_gaussian,
    partly_known,
    missing_entries,
    topics,
    given_start,
    flat,
    more_rows,
]


@pytest.mark.thinned(4)
@pytest.mark.parametrize("state", STATEMENTS)
def test_whatever_the_model_asks_of_the_engine(state, tmp_path):
    model, data, more = state(np.random.default_rng(7))

    def fit(**arguments: Any) -> cv.Posterior:
        return model.fit(data, seed=2, max_iter=5, tol=0.0, **more, **arguments)

    check(fit, tmp_path / "c", [{"progress": after(2)} for _ in range(40)], fewest=2)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", CASES)
def test_a_fit_that_has_ended_is_not_made_again(name, tmp_path):
    case = CASES[name]
    data = case.draw(np.random.default_rng(8), 100)
    kept = {"n_restarts": 2, "max_iter": 4, "checkpoint": tmp_path / "c"}
    first = case.fit(data, **kept)
    content = (tmp_path / "c").read_bytes()
    assert_same_bits(case.fit(data, **kept, progress=after(1)), first)
    assert (tmp_path / "c").read_bytes() == content


def test_ctrl_c_gives_the_best_so_far_and_the_same_call_goes_on(tmp_path):
    # a fit of many iterations
    case = CASES["robust"]
    data = case.draw(np.random.default_rng(9), 300)

    def interrupt(event: Any) -> None:
        if event.iteration == 5:
            raise KeyboardInterrupt

    # seconds between writings are so many that only the interruption makes one
    kept = {"max_iter": 30, "checkpoint": tmp_path / "c", "checkpoint_every": 1e6}
    stopped = case.fit(data, **kept, progress=interrupt)
    assert (stopped.status.value, stopped.n_iter) == ("interrupted", 5)
    iterations = []
    ended = case.fit(data, **kept, progress=lambda event: iterations.append(event.iteration))
    assert iterations[0] == 6
    assert_same_bits(ended, case.fit(data, max_iter=30))


@pytest.mark.starts_of_users
@pytest.mark.slow
def test_a_seed_of_chance_is_kept(tmp_path):
    case = CASES["joint"]
    data = case.draw(np.random.default_rng(10), 100)
    kept = {"seed": None, "n_restarts": 6, "max_iter": 5, "checkpoint": tmp_path / "c", "checkpoint_every": 0}
    with pytest.raises(Broken):
        case.fit(data, **kept, progress=after(8))
    one = case.fit(data, **kept)
    assert_same_bits(case.fit(data, **kept), one)
    assert len(set(one.restart_elbos)) > 1


@pytest.mark.slow
def test_an_interruption_is_told_also_where_an_earlier_start_was_better(tmp_path):
    case = CASES["joint"]
    data = case.draw(np.random.default_rng(11), 300)

    def interrupt(event: Any) -> None:
        if (event.restart, event.iteration) == (1, 1):
            raise KeyboardInterrupt

    kept = {"max_iter": 40, "n_restarts": 3, "checkpoint": tmp_path / "c"}
    stopped = case.fit(data, **kept, progress=interrupt)
    assert stopped.status.value == "interrupted"
    assert stopped.elbo == stopped.restart_elbos[0] > stopped.restart_elbos[1]
    assert_same_bits(case.fit(data, **kept), case.fit(data, max_iter=40, n_restarts=3))


def test_what_comes_from_a_checkpoint_serves_as_a_prior(tmp_path):
    model, data, _ = flat(np.random.default_rng(12))
    known = {"seed": 0, "point": POINT, "max_iter": 20}
    first = model.fit({"x": data["x"][:15]}, **known)
    for _ in range(2):
        again = model.fit({"x": data["x"][:15]}, **known, checkpoint=tmp_path / "c")
    rest = {"x": data["x"][15:]}
    assert_same_bits(model.fit(rest, **known, prior=again), model.fit(rest, **known, prior=first))


@pytest.mark.slow
@pytest.mark.parametrize("name", ["joint", "spherical", "factors"])
def test_ctrl_c_at_any_pass_is_told_and_the_same_call_goes_on(name, tmp_path):
    """In the starts, in iterations, and in the look for a saddle point where a fit has settled."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(13), 60)
    kept = {"max_iter": 25, "n_restarts": 2}
    whole = case.fit(data, **kept)
    counting = Breaking(10**9)
    case.fit(data, **kept, executor=counting)
    passes = 10**9 - counting.left
    interrupted = 0
    # most passes are those of starts, and the last those of iterations
    for number in (0, passes // 3, *range(max(1, passes - 24), passes, 6)):
        path = tmp_path / f"c{number}"
        try:
            stopped = case.fit(data, **kept, executor=Breaking(number, KeyboardInterrupt), checkpoint=path)
        except KeyboardInterrupt:
            # before the first objective there is nothing to be given
            pass
        else:
            assert stopped.status.value == "interrupted"
            assert stopped.elbo == max(stopped.restart_elbos)
            assert stopped.n_iter == len(stopped.elbo_trace) - 1
            interrupted += 1
        assert_same_bits(case.fit(data, **kept, checkpoint=path), whole)
    assert interrupted > 1
