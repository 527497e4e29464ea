"""Settings that all tests share."""

import os

import pytest
from hypothesis import settings

# the same examples each time, however slow the machine
settings.register_profile("caviar", deadline=None, derandomize=True)
settings.load_profile("caviar")


# scripts that compare two sources
collect_ignore_glob = ["golden/*"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Skip on Windows what it does not have."""
    for item in items:
        if os.name == "nt" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="Windows has no such signals, links, devices or limits"))
