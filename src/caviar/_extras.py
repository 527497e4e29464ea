"""What optional parts need besides the library, and the command that installs it into the Python that runs."""

from __future__ import annotations

from functools import cache
from importlib.util import find_spec

_TABLES = ("duckdb>=1.3", "pyarrow>=17")
_PLOT = ("matplotlib>=3.9",)

PACKAGES = {
    "arviz": ("arviz>=0.20",),
    "cli": (*_TABLES, *_PLOT, "typer>=0.20", "rich>=13.7"),
    "compiled": ("numba>=0.61",),
    "dask": ("dask[array,dataframe]>=2025.1", "distributed>=2025.1"),
    "formula": ("formulaic>=1.0", "pandas>=2.2.3"),
    "gpu": ("array-api-compat>=1.9", "torch>=2.4"),
    "plot": _PLOT,
    "tables": _TABLES,
}
"""Extra of pyproject.toml -> the packages that it names."""


def install_command(extra: str) -> str:
    """Return the command that installs what an extra names.

    It names these packages and not caviar, and so leaves caviar as it is, whether from a clone or an index; and
    it calls pip by ``python -m``, for the ``pip`` of a shell may belong to another Python.

    Examples
    --------
    >>> install_command("plot")
    'python -m pip install "matplotlib>=3.9"'
    """
    return " ".join(["python -m pip install", *(f'"{package}"' for package in PACKAGES[extra])])


@cache
def can_compile() -> bool:
    """Return whether numba (extra ``compiled``) is installed; it is not imported."""
    return find_spec("numba") is not None
