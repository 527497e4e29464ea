"""Every data set with every estimator: a sound fit, or a refusal that says what to do.

The plain run takes every set that is refused and a quarter of those that are not, each with one estimator in turn;
``pytest -m ""`` takes all.
"""

import pytest

from torture.demands import outcome_of
from torture.registry import CASES, KINDS
from torture.shells import SHELLS, is_em

QUICK_ITERATIONS, SLOW_ITERATIONS = 8, 100


def _is_refused(case):
    return bool(case.refused or case.refused_by_em)


def _quick_shell(turn, case):
    """Return one shell for a data set, so that each has its turn; by EM where EM alone refuses."""
    shells = [shell for shell in SHELLS if is_em(shell) or not case.refused_by_em]
    return shells[turn % len(shells)]


ONCE_WARNED = {"signalling NaN"}
CHOSEN = [
    name
    for number, name in enumerate(CASES)
    if number % 4 == 0 or _is_refused(CASES[name]) or name in ONCE_WARNED
]
QUICK = [(name, _quick_shell(turn, CASES[name])) for turn, name in enumerate(CHOSEN)]
ALL = [
    pytest.param(
        name, shell, id=f"{name}-{shell}", marks=() if (name, shell) in set(QUICK) else pytest.mark.slow
    )
    for name in CASES
    for shell in SHELLS
]


@pytest.mark.thinned(6)
@pytest.mark.parametrize(("name", "shell"), ALL)
def test_every_fit_is_sound_or_refused_in_words(name, shell, request):
    slow = request.node.get_closest_marker("slow") is not None
    outcome = outcome_of(CASES[name], shell, SLOW_ITERATIONS if slow else QUICK_ITERATIONS)
    assert not outcome.problems


def test_the_plain_run_takes_every_refusal_a_quarter_of_each_kind_and_every_estimator():
    assert {name for name in CASES if _is_refused(CASES[name])} <= set(CHOSEN)
    for cases in KINDS.values():
        assert len({case.name for case in cases} & set(CHOSEN)) >= len(cases) // 4
    assert {shell for _, shell in QUICK} == set(SHELLS)


def test_there_are_many_sets_and_each_is_explained():
    assert len(CASES) >= 250
    for case in CASES.values():
        assert len(case.sentence) > 3
        assert case.sentence != case.name
