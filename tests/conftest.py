"""Settings that all tests share."""

import gc
import os

import pytest
import thinning
from hypothesis import settings

# the same examples each time, however slow the machine
settings.register_profile("caviar", deadline=None, derandomize=True)
settings.load_profile("caviar")


# scripts that compare two sources
collect_ignore_glob = ["golden/*"]


def pytest_configure(config: pytest.Config) -> None:
    """Note whether the slow tests are run, before test files are imported."""
    thinning.is_whole = "not slow" not in config.option.markexpr
    # the collection only adds objects, thousands of them
    gc.disable()


def pytest_collection_finish() -> None:
    """Leave what the collection made out of every later search for garbage."""
    gc.enable()
    gc.collect()
    gc.freeze()


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out of `make test` what only widens a claim; skip on Windows what it does not have."""
    thinning.thin(items, config.args)
    for item in items:
        if os.name == "nt" and item.get_closest_marker("posix"):
            item.add_marker(pytest.mark.skip(reason="Windows has no such signals, links, devices or limits"))
