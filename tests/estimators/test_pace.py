"""What a search tells of itself while it runs, and what nobody asked for: a line on a terminal, after some seconds."""

import io
from types import SimpleNamespace

import numpy as np
import pytest

import caviar as cv
from caviar.estimators.automatic import pace as pace_of
from caviar.estimators.automatic import problem as problem_of
from caviar.estimators.automatic.pace import Pace, When
from caviar.fitting import progress
from caviar.fitting.progress import LongFit

X = cv.datasets.load_faithful().values


class Clock:
    """A clock that goes on where it is told to."""

    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def test_a_sweep_that_found_something_is_followed_by_one_as_long():
    clock = Clock()
    pace = Pace(clock=clock)
    pace.best(1, -100.0)

    def phase(name, seconds, *when):
        pace.phase(name, len(seconds), *when)
        for own in seconds:
            clock.now += own
            pace.step()

    pace.sweep()
    phase("propose", [2.0, 2.0])
    # nothing is known yet of what follows
    assert pace.seconds_left() is None
    phase("try", [5.0])
    phase("anew", [3.0], When.NOTHING_ROSE)
    pace.sweep()
    pace.phase("propose", 4)
    # as long as before, until a step is done: 4 + 5 + 3
    assert pace.seconds_left() == pytest.approx(12.0)
    clock.now += 1.0
    pace.step()
    # three more of a second each, and what follows
    assert pace.seconds_left() == pytest.approx(3.0 + 5.0 + 3.0)
    pace.best(2, -90.0)
    # nothing is tried anew in this sweep, and another one comes: its phases as long as they were last
    assert pace.seconds_left() == pytest.approx(3.0 + 5.0 + (4.0 + 5.0 + 3.0))
    pace.phase("try", 1)
    # the phase before took a second in this sweep
    assert pace.seconds_left() == pytest.approx(5.0 + (1.0 + 5.0 + 3.0))


def test_searches_to_come_take_as_long_as_those_before():
    clock = Clock()
    pace = Pace(3, clock=clock)
    clock.now = 60.0
    pace.begin()
    pace.best(1, -100.0)
    for _ in range(2):
        pace.sweep()
        pace.phase("try", 1)
        clock.now += 10.0
        pace.step()
    # none left of this one; 80 seconds for two searches, of which the second has not ended
    assert pace.seconds_left() == pytest.approx(40.0)


@pytest.mark.slow
def test_a_real_search_takes_at_least_as_long_as_it_says(monkeypatch):
    """The clock counts fits; of all that is told, nothing but what a phase cut short has saved is too long."""
    clock, told = Clock(), []
    monkeypatch.setattr(pace_of, "time", SimpleNamespace(monotonic=clock))
    monkeypatch.setattr(Pace.__init__, "__defaults__", (1, clock))
    fit = problem_of.Problem.fit

    def counted(self, *arguments, **keywords):
        found = fit(self, *arguments, **keywords)
        # a pass takes as long as there are rows and components
        clock.now += found.n_iter * len(self.X) * len(found["weights"].mean) / 1e4
        return found

    monkeypatch.setattr(problem_of.Problem, "fit", counted)
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(150, 2)) + rng.integers(0, 4, (150, 1)) * [5.0, -3.0]
    cv.BayesianGaussianMixture(
        "auto", random_state=0, verbose=lambda p: told.append((clock.now, p.search))
    ).fit(rows)
    guesses = [(now, own.seconds_left) for now, own in told if own.seconds_left is not None]
    assert len(guesses) > 0.3 * len(told)
    left = np.array([guess for _, guess in guesses])
    true = np.array([clock.now - now for now, _ in guesses])
    assert np.all(left <= 1.3 * true + 0.2)
    # a lower limit: phases that no sweep has reached are not in it. Now and then it is most of what is left
    assert np.mean(left > 0.5 * true) > 0.1
    assert told[-1][1].n_components == 4


def event(**more):
    return cv.Progress(0, 1, 12, 500, -1303.871, 1e-4, **more)


def test_a_long_fit_shows_a_line_after_five_seconds_which_goes_with_the_fit():
    clock, out = Clock(), io.StringIO()
    line = LongFit(out, clock)
    for now in (1.0, 4.9):
        clock.now = now
        line(event())
    assert out.getvalue() == ""
    for now in (5.1, 5.2, 5.7):
        clock.now = now
        line(event())
    shown = "iteration 12 of at most 500, ELBO -1303.9, {} s"
    assert out.getvalue() == f"\r{shown.format(5)}\r{shown.format(6)}"
    line.end()
    assert out.getvalue().endswith("\r" + " " * len(shown.format(6)) + "\r")


@pytest.mark.parametrize(("looks", "verbose"), [(True, None), (True, False), (False, None)])
def test_the_line_is_shown_only_where_somebody_looks_and_did_not_refuse_it(
    monkeypatch, capsys, looks, verbose
):
    monkeypatch.setattr(progress, "somebody_looks", lambda: looks)
    monkeypatch.setattr(progress, "_PATIENCE", 0.0)
    monkeypatch.setattr(progress, "_PAUSE", 0.0)
    rows = X[::8] if looks and verbose is None else X[::30]
    cv.BayesianGaussianMixture("auto", random_state=0, verbose=verbose).fit(rows)
    cv.compare_mixtures(X[::30], (1, 2), "full", n_init=1, random_state=0, verbose=verbose)
    shown = capsys.readouterr().err
    if looks and verbose is None:
        assert "searching: K = 2, ELBO" in shown
        assert "fit 2 of 2, iteration 1 of at most 500" in shown
        assert shown.endswith(" \r")
    else:
        assert shown == ""


def test_neither_a_file_nor_a_plain_terminal_is_looked_at(monkeypatch):
    assert not progress.somebody_looks()
    monkeypatch.setattr("sys.stderr", SimpleNamespace(isatty=lambda: True))
    monkeypatch.setenv("TERM", "xterm")
    assert progress.somebody_looks()
    monkeypatch.setenv("TERM", "dumb")
    assert not progress.somebody_looks()
