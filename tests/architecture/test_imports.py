"""Imports point downwards through the layers, and importing caviar by itself imports nothing heavy."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HEAVY = (
    "numpy",
    "scipy",
    "sklearn",
    "matplotlib",
    "typer",
    "rich",
    "duckdb",
    "pyarrow",
    "pandas",
    "dask",
    "torch",
    "array_api_compat",
)


def in_a_fresh_process(program: str) -> str:
    """Return what a Python program prints that starts with nothing imported."""
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout.strip()


def seconds_to_import(module: str, times: int) -> float:
    """Return the least of so many times to import a module, each in a fresh process."""
    clock = f"from time import perf_counter as now; start = now(); import {module}; print(now() - start)"
    return min(float(in_a_fresh_process(clock)) for _ in range(times))


@pytest.mark.slow
def test_every_layer_imports_only_what_lies_below():
    """As `make lint` does, which every `make test` begins with."""
    in_a_fresh_process(
        "import sys; from importlinter.cli import lint_imports;"
        "sys.exit(lint_imports(config_filename='pyproject.toml', no_cache=True, no_logo=True))"
    )


def test_the_root_of_the_package_holds_its_public_face_and_what_all_share():
    root = ROOT / "src" / "caviar"
    files = {path.name for path in root.iterdir() if path.is_file()}
    assert files == {
        "__init__.py",
        "__init__.pyi",
        "__main__.py",
        "_errors.py",
        "_extras.py",
        "_tables.py",
        "_typing.py",
        "_version.py",
        "_words_of_others.py",
        "py.typed",
    }
    assert [path.name for path in root.glob("_*") if path.is_dir() and path.name != "__pycache__"] == []


def test_importing_caviar_imports_nothing_heavy():
    loaded = in_a_fresh_process(f"import sys, caviar; print(*(m for m in {HEAVY} if m in sys.modules))")
    assert loaded == "", f"`import caviar` imports {loaded}"


def test_a_model_is_stated_and_fitted_without_scipy_stats_and_scikit_learn():
    """They take longer to import than all that a fit needs."""
    heavy = [name for name in HEAVY if name not in ("numpy", "scipy")]
    program = (
        "import sys, caviar as cv; x = cv.Normal('x', cv.Normal('m', 0, 1), 1, plates=cv.Plate('obs'));"
        f"cv.Model(x).fit({{'x': [0.5, 1.0]}}); print(*(m for m in ('scipy.stats', *{heavy}) if m in sys.modules))"
    )
    assert in_a_fresh_process(program) == ""


def test_importing_caviar_takes_less_than_15_ms():
    assert seconds_to_import("caviar", 8) < 0.015


@pytest.mark.slow
def test_importing_caviar_is_quick():
    assert seconds_to_import("caviar", 3) < 0.3 * seconds_to_import("sklearn.mixture", 1)
