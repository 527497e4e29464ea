"""What scikit-learn's tests ask for: its fixtures and marks; and which of them are expected to fail."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from .not_passed import NOT_PASSED


@pytest.fixture(params=[np.float32, np.float64], ids=["float32", "float64"])
def global_dtype(request: pytest.FixtureRequest) -> type:
    """Both precisions that scikit-learn computes in."""
    return request.param


@pytest.fixture
def global_random_seed() -> int:
    """The seed that scikit-learn takes unless it is told another."""
    return 42


def pytest_configure(config: pytest.Config) -> None:
    """Know the marks of scikit-learn's tests."""
    config.addinivalue_line("markers", "thread_unsafe: not to be run beside others in one process")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Expect the tests that are listed to fail as they are said to."""
    for item in items:
        if item.path.parent != Path(__file__).parent:
            continue
        of_all = f"{item.path.stem}::{getattr(item, 'originalname', item.name)}"
        known = NOT_PASSED.get(f"{item.path.stem}::{item.name}") or NOT_PASSED.get(of_all)
        if known is not None:
            item.add_marker(pytest.mark.xfail(raises=known.raises, reason=known.reason, strict=True))
