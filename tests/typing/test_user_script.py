"""The script that pyright checks is one that runs, and the package says that it has types."""

import runpy
from importlib.resources import files
from pathlib import Path

import pytest

SCRIPT = Path(__file__).with_name("user_script.py")


def test_the_script_runs():
    names = runpy.run_path(str(SCRIPT))
    pytest.importorskip("arviz")
    assert names["diagnosed"](names["posterior"]) in {"good", "usable", "unclear", "poor"}


def test_the_package_is_marked_as_typed():
    assert files("caviar").joinpath("py.typed").is_file()


def test_pyright_looks_at_the_script():
    root = Path(__file__).parents[2]
    assert (
        '"tests/typing"' in (root / "pyproject.toml").read_text(encoding="utf-8").split("typeCheckingMode")[0]
    )
    assert SCRIPT.read_text(encoding="utf-8").startswith("# pyright: strict")
