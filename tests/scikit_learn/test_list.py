"""The list of tests that are not passed names tests that there are, and says why of each."""

from importlib import import_module

import pytest

from .not_passed import NOT_PASSED


@pytest.mark.slow
@pytest.mark.parametrize("listed", NOT_PASSED)
def test_each_entry_is_a_test_with_a_reason(listed: str) -> None:
    module, name = listed.split("::")
    assert hasattr(import_module(f"{__package__}.{module}"), name.split("[")[0])
    assert len(NOT_PASSED[listed].reason.split()) > 5
