"""A density is multilinear in its slots, so that a variable must stand in two of them to stand twice in a term."""

import pytest
from invariants.registry import CASES


@pytest.mark.parametrize("name", CASES)
def test_no_summand_has_a_slot_twice(name):
    for variable in CASES[name].state().variables.values():
        for summand in (*variable.log_density, *variable.base):
            slots = [factor.slot for factor in summand.factors if factor.slot]
            assert len(set(slots)) == len(slots), (variable, summand)
