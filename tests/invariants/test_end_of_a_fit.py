"""How a fit ends: on its own, at max_iter, interrupted, or because an update is broken; and which start is kept."""

import dataclasses
import warnings

import numpy as np
import pytest

import caviar as cv
from caviar import families
from caviar.engine.ascent.kinds_of_factor import KindOfFactor
from caviar.engine.ascent.status import Status
from caviar.engine.groups.side_by_side import SideBySide
from invariants.registry import CASES

pytestmark = pytest.mark.first_guess

CASE = CASES["independent"]
DATA = CASE.draw(np.random.default_rng(0), 60)


@pytest.mark.thinned(8)
@pytest.mark.parametrize("name", CASES)
def test_no_iteration_gives_the_start(name):
    """With max_iter=0 the posterior is the start: one entry in the trace, its ELBO finite, nothing converged."""
    case = CASES[name]
    data = case.draw(np.random.default_rng(0), 30)
    posterior = case.fit(data, max_iter=0)
    assert posterior.status is Status.MAX_ITER
    assert not posterior.converged
    assert posterior.n_iter == 0
    assert posterior.elbo_trace.shape == (1,)
    assert np.isfinite(posterior.elbo)
    assert case.fit(data, max_iter=1).elbo_trace[0] == posterior.elbo


def test_max_iter_is_not_convergence():
    """Stopped by max_iter the status says so, and what to do."""
    posterior = CASE.fit(DATA, max_iter=2, tol=0)
    assert posterior.status is Status.MAX_ITER
    assert not posterior.converged
    assert posterior.n_iter == 2
    assert "raise max_iter" in str(posterior.status)


@pytest.fixture
def one_after_the_other(monkeypatch):
    """Starts are made one after the other, as those of larger tables."""
    monkeypatch.setattr(SideBySide, "of", lambda *arguments, **named: None)


@pytest.mark.usefixtures("one_after_the_other")
def test_interruption_returns_the_best_so_far():
    """Ctrl-C in the third iteration of the first start: the state then reached comes back, and the status says so."""
    seen = []

    def interrupt(event):
        seen.append(event)
        if len(seen) == 3:
            raise KeyboardInterrupt

    posterior = CASE.fit(DATA, tol=0, progress=interrupt, n_restarts=5)
    assert posterior.status is Status.INTERRUPTED
    assert not posterior.converged
    assert posterior.n_iter == 3
    assert len(posterior.restart_elbos) == 1
    assert posterior.elbo == posterior.elbo_trace[-1] == seen[-1].elbo
    assert posterior.elbo == CASE.fit(DATA, tol=0, max_iter=3).elbo
    assert posterior.elbo_at({}, DATA) == pytest.approx(posterior.elbo, rel=1e-12)


@pytest.mark.usefixtures("one_after_the_other")
def test_interruption_keeps_a_better_finished_start():
    """Ctrl-C at once in the second start: the first one, which is better, is what comes back."""
    first = CASE.fit(DATA)

    def interrupt(event):
        if event.restart == 1:
            raise KeyboardInterrupt

    posterior = CASE.fit(DATA, progress=interrupt, n_restarts=3)
    assert len(posterior.restart_elbos) == 2
    assert posterior.elbo == max(posterior.restart_elbos)
    assert posterior.elbo >= first.elbo


def test_progress_is_told_every_iteration():
    """The callback sees each iteration of each start, with the trace's values and the change per row."""
    seen = []
    posterior = CASE.fit(DATA, progress=seen.append)
    np.testing.assert_array_equal([event.elbo for event in seen], posterior.elbo_trace[1:])
    assert [event.iteration for event in seen] == list(range(1, posterior.n_iter + 1))
    np.testing.assert_allclose([event.change_per_row for event in seen], np.diff(posterior.elbo_trace) / 60)


def _broken(monkeypatch, name, spoil):
    factor = KindOfFactor.factor

    def broken(kind, natural):
        made = factor(kind, natural)
        return spoil(made) if kind.variable.name == name else made

    monkeypatch.setattr(KindOfFactor, "factor", broken)


@pytest.mark.thinned(2)
@pytest.mark.parametrize(
    ("name", "spoil"),
    [
        ("mean", lambda q: dataclasses.replace(q, mean=q.mean + 1e-3)),
        ("mean", lambda q: dataclasses.replace(q, precision=q.precision * 1.01)),
        ("weights", lambda q: dataclasses.replace(q, concentration=q.concentration * 1.05)),
        ("precision", lambda q: dataclasses.replace(q, df=q.df + 0.5)),
        ("precision", lambda q: dataclasses.replace(q, inverse_scale=q.inverse_scale * 1.02)),
    ],
)
def test_broken_update_is_named(monkeypatch, name, spoil):
    """After convergence an update that is off by a little lowers the ELBO: 'fell', and the warning names the factor.

    (A wrong update that is the same in every iteration need not lower the ELBO anywhere else.)
    """
    good = CASE.fit(DATA, tol=1e-12)
    _broken(monkeypatch, name, spoil)
    with pytest.warns(cv.FallingElboWarning, match=f"update of '{name}' lowered the objective"):
        posterior = CASE.fit(DATA, init={key: good[key] for key in good})
    assert posterior.status is Status.FELL
    assert not posterior.converged
    assert posterior.n_iter == 1
    assert "see the warning" in str(posterior.status)


def test_broken_family_is_named(monkeypatch):
    """A family that makes a wrong member of natural parameters is caught in the same way."""
    good = CASE.fit(DATA, tol=1e-12)
    made = families.Dirichlet.from_natural.__func__
    monkeypatch.setattr(
        families.Dirichlet, "from_natural", classmethod(lambda cls, natural: made(cls, (natural[0] * 1.1,)))
    )
    with pytest.warns(cv.FallingElboWarning, match="'weights'"):
        posterior = CASE.fit(DATA, init={key: good[key] for key in good})
    assert posterior.status is Status.FELL


def test_broken_local_update_is_named(monkeypatch):
    """Responsibilities that are not the optimal ones are caught too, and named by their variable."""
    from caviar.engine.local.categorical import CategoricalFactor

    infer, passes = CategoricalFactor.infer, []

    def blurred(factor, natural, *rest):
        log_partition = infer(factor, natural, *rest)
        passes.append(1)
        # right at first, so that the objective has somewhere to fall from
        if len(passes) > 3:
            natural[...] = 0.5 * natural + 0.5 / len(natural)
        return log_partition

    monkeypatch.setattr(CategoricalFactor, "infer", blurred)
    with pytest.warns(cv.FallingElboWarning, match="'z'"):
        posterior = CASE.fit(DATA, executor=1)
    assert posterior.status is Status.FELL


@pytest.mark.slow
def test_best_of_the_restarts_is_kept():
    """Of several starts the one with the largest ELBO comes back; more starts never make it worse."""
    rng = np.random.default_rng(3)
    data = {"x": rng.normal(0, 1, (60, 2)) * [3, 1]}
    best = []
    for n_restarts in (1, 2, 4, 8):
        posterior = CASE.fit(data, n_restarts=n_restarts)
        assert len(posterior.restart_elbos) == n_restarts
        assert posterior.elbo == posterior.restart_elbos.max()
        best.append(posterior.elbo)
    assert best == sorted(best)
    # not vacuous: the starts end at different places
    assert np.ptp(posterior.restart_elbos) > 0.1


@pytest.mark.starts_of_users
@pytest.mark.thinned(36)
@pytest.mark.parametrize("name", CASES)
def test_well_behaved_fits_warn_of_nothing(name):
    """No fit of the registry gives a warning."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CASES[name].fit(CASES[name].draw(np.random.default_rng(1), 20))


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"max_iter": -1}, "max_iter must not be negative; got -1"),
        ({"tol": float("nan")}, "tol, a change of the objective per row"),
        ({"n_restarts": 0}, "n_restarts must be at least 1; got 0"),
        ({"executor": 0}, "executor is a number of threads >= 1"),
        ({"init": "kmeans"}, "init is 'auto', 'prior' or a mapping.*got 'kmeans'"),
        ({"point": "mean"}, r"point must be a list of names; write point=\['mean'\]"),
        (
            {"point": ["means"]},
            "point= names 'means', which is not a global latent variable; the global latent variables are",
        ),
        ({"order": ["z"]}, "order= names 'z', which is not a global latent variable"),
        ({"init": {"means": 1}}, "init= names 'means', which is not a latent variable"),
        ({"init": {"mean": np.ones(5)}}, r"init of 'mean' must fit shape \(3, 2\)"),
        ({"init": {"z": np.zeros(5)}}, "init of 'z' has 5 rows; the data have 60"),
        ({"init": {"z": np.full(60, 3)}}, "init of 'z' must hold whole numbers from 0 to 2"),
        ({"init": {"z": np.ones((60, 2))}}, r"init of 'z' must have shape \(N,\).*\(N, 3\)"),
    ],
)
def test_impossible_arguments_are_errors(arguments, message):
    """An argument with an impossible value is refused with what it may be."""
    with pytest.raises(cv.ParameterError, match=message):
        CASE.fit(DATA, **arguments)
