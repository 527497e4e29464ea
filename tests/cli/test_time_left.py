"""The seconds that are left are guessed from how the changes shrink, or from the steps that are done."""

import io
from types import SimpleNamespace

import pytest
from rich.console import Console

from caviar.cli.speaking.progress import _LiveLine, _SearchLines
from caviar.cli.speaking.remaining import TimeLeft
from caviar.cli.speaking.steps import counting_parts, counting_steps, showing_clock
from caviar.engine.ascent.driver import Progress, Search


def event(iteration, change, restart=0, n_restarts=1, max_iter=500, fit=0, n_fits=1):
    return SimpleNamespace(
        iteration=iteration, change_per_row=change, restart=restart, n_restarts=n_restarts, max_iter=max_iter,
        fit=fit, n_fits=n_fits, elbo=-10.0, search=None,
    )  # fmt: skip


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


def after(changes, *, seconds=2.0, tol=1e-6, **more):
    clock = Clock()
    left = TimeLeft(tol, clock)
    for number, change in enumerate(changes):
        clock.now += seconds
        left.note(event(number + 1, change, **more))
    return left


def test_a_search_whose_fits_count_from_the_start_has_no_guess_until_one_goes_on():
    clock = Clock()
    left = TimeLeft(1e-6, clock)
    for iteration in (1, 1, 1, 1, 1, 2, 1, 2, 3):
        clock.now += 2.0
        left.note(event(iteration, 10.0**-iteration))
        left.words()
    assert left.seconds() is None
    for iteration in (4, 5):
        clock.now += 2.0
        left.note(event(iteration, 10.0**-iteration))
    assert left.seconds() == pytest.approx(2.0)


def test_a_linear_convergence_is_followed_to_its_end():
    # from 1e-3 to 1e-6 at a tenth for each iteration: three iterations of two seconds
    assert after([1.0, 1e-1, 1e-2, 1e-3]).seconds() == pytest.approx(6.0)


def test_the_largest_number_of_iterations_is_the_end_as_well():
    assert after([1.0] * 6, max_iter=10).seconds() == pytest.approx(8.0)
    assert after([1.0, 1e-1, 1e-2, 1e-3], max_iter=5).seconds() == pytest.approx(2.0)


def test_starts_to_come_take_as_long_as_this_one():
    # six seconds between the first and the last note, two before it, and six to come: 14 for each of two more starts
    assert after([1.0, 1e-1, 1e-2, 1e-3], n_restarts=3).seconds() == pytest.approx(6 + 2 * 14)


def test_nothing_is_said_too_early_or_of_moments():
    assert after([1.0, 0.1]).seconds() is None
    assert after([1.0, 0.1]).words() == ""
    assert after([1.0, 1e-1, 1e-2, 1e-3], seconds=0.1).words() == ""
    assert after([1.0, 1e-1, 1e-2, 1e-3], seconds=20).words() == "  about 60 s left"
    assert after([1.0] * 6, seconds=60).words() == "  about 8.2 h left"


def test_counted_steps_tell_how_long_the_others_take_and_seldom_where_there_is_no_terminal():
    now = [0.0]
    out = io.StringIO()
    with counting_steps(Console(file=out), "documents read", 1000, quiet=False, clock=lambda: now[0]) as step:
        for _ in range(100):
            now[0] += 0.5
            step()
    # a line at the first step after 5, 10, 20, 40 seconds
    assert out.getvalue().splitlines() == [
        "10 of 1,000 documents read  5.0 s  about 8 min left",
        "20 of 1,000 documents read  10.0 s  about 8 min left",
        "40 of 1,000 documents read  20.0 s  about 8 min left",
        "80 of 1,000 documents read  40.0 s  about 8 min left",
    ]


def test_counted_steps_are_a_live_line_on_a_terminal_and_nothing_where_it_is_quiet():
    now, out = [0.0], io.StringIO()
    terminal = Console(file=out, force_terminal=True, width=100)
    with counting_steps(terminal, "fits", 4, quiet=False, clock=lambda: now[0]) as step:
        now[0] = 10.0
        step()
    assert "1 of 4 fits  10.0 s  about 30 s left" in out.getvalue()
    silent = io.StringIO()
    with counting_steps(
        Console(file=silent, force_terminal=True), "fits", 4, quiet=True, clock=lambda: now[0]
    ) as step:
        now[0] = 100.0
        step()
    assert silent.getvalue() == ""


def test_fits_to_come_take_as_long_as_those_before():
    clock = Clock()
    left = TimeLeft(1e-6, clock)
    # two fits of 8 seconds, then one that needs two more iterations of 2 seconds; two are to come
    for fit in (0, 1):
        for number in range(4):
            clock.now += 2.0
            left.note(event(number + 1, 1e-3, fit=fit, n_fits=5))
    for number, change in enumerate([1e-1, 1e-2, 1e-3, 1e-4]):
        clock.now += 2.0
        left.note(event(number + 1, change, fit=2, n_fits=5))
    # the clock is read at the first iteration of a fit: two seconds of it count for the one before
    assert left.seconds() == pytest.approx(2 * 2.0 + 2 * (2 * 8.0 + 2.0) / 2)
    first = TimeLeft(1e-6, clock)
    for number, change in enumerate([1e-1, 1e-2, 1e-3, 1e-4]):
        clock.now += 2.0
        first.note(event(number + 1, change, fit=0, n_fits=3))
    assert first.seconds() == pytest.approx(3 * 4.0 + 2 * 8.0)


def test_work_without_steps_has_a_clock_on_a_terminal_and_elsewhere_nothing():
    for is_terminal, quiet, is_shown in ((True, False, True), (True, True, False), (False, False, False)):
        clock, out = Clock(), io.StringIO()
        console = Console(file=out, force_terminal=is_terminal, width=100)
        with showing_clock(console, "writing the report", quiet=quiet, clock=clock):
            clock.now = 12.3
        assert ("writing the report  12.3 s" in out.getvalue()) == is_shown


def test_a_search_says_what_it_has_found_and_how_long_it_takes_at_least():
    clock, out = Clock(), io.StringIO()
    lines = _SearchLines(Console(file=out, width=200), "ELBO", clock)
    for now, search in (
        (1.5, Search(0, float("-inf"), 0, None)),
        (3.0, Search(2, -1168.05, 1, None)),
        (4.0, Search(2, -1168.05, 2, 30.0)),
        (60.0, Search(3, -1160.0, 9, 150.0)),
    ):
        clock.now = now
        lines(Progress(0, 1, 3, 500, -1200.0, 1e-3, search=search))
    lines.finish()
    assert out.getvalue().splitlines() == [
        "searching: first fit  1.5 s",
        "searching: highest ELBO so far -1168.0500 (K = 2)  1 move tried  3.0 s",
        "searching: highest ELBO so far -1160.0000 (K = 3)  9 moves tried  60.0 s  at least 2 min left",
        "searching: highest ELBO so far -1160.0000 (K = 3)  9 moves tried  60.0 s",
    ]
    live = _LiveLine("ELBO", 1e-6)
    live(Progress(1, 4, 3, 500, -1200.0, 1e-3, search=Search(2, -1168.05, 2, 30.0)))
    assert "start 2/4  searching: highest ELBO so far -1168.0500 (K = 2)  2 moves tried" in str(live.render())
    assert "at least 30 s left" in str(live.render())


def test_sections_of_a_report_are_not_alike():
    """The first makes the fits and the data sets that the others show: nothing is known before it is done."""
    now, out = [0.0], io.StringIO()
    terminal = Console(file=out, force_terminal=True, width=100)
    with counting_parts(terminal, "sections", first=50, quiet=False, clock=lambda: now[0]) as reach:
        reach(0, 9)
        now[0] = 20.0
    assert "left" not in out.getvalue()
    with counting_parts(terminal, "sections", first=50, quiet=False, clock=lambda: now[0]) as reach:
        now[0] = 120.0
        reach(1, 9)
    # eight sections of a fiftieth of the first; were they alike, 800 s would be left
    assert "1 of 9 sections  100.0 s  about 16 s left" in out.getvalue()
