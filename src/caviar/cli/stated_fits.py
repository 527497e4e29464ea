"""``caviar fit --model FILE.py:FUNCTION``: a model that is stated in Python, fitted to a table or to arrays."""

from __future__ import annotations

import inspect
import runpy
from pathlib import Path
from typing import Any

import numpy as np
import typer

import caviar as cv
from caviar.files.naming import listed, named

from .arrays import is_numpy_file, opened_arrays
from .files import require_writable
from .fit_options import FitOptions
from .fits import deliver, origin_of, pictures
from .non_numeric import NonNumeric
from .progress import watching
from .speaking import complain
from .stated import PosteriorOfFile
from .tables import input_file

_NO_OPTIONS = "it is stated in the file, which says all of that"


def fit_stated(request: FitOptions) -> None:
    """Do what ``caviar fit`` does for a model that is stated in a file."""
    _require_stated(request)
    require_writable(request.output, ".caviar", inputs=(request.data,))
    require_writable(request.picture, ".png")
    model = model_of(str(request.model_name))
    with input_file(request.data) as file:
        data = _data(request, file)
        posterior = _fitted(request, model, data)
    posterior.data_summary = {**(posterior.data_summary or {}), "about": origin_of(request)}
    deliver(request, PosteriorOfFile, posterior, lambda path: pictures().draw_variables(posterior, path))


def model_of(place: str) -> cv.Model:
    """Return the model that a function of a Python file states; the code of the file runs.

    Parameters
    ----------
    place
        ``FILE.py:FUNCTION``.

    Raises
    ------
    DataError
        If there is no such file or function, it fails, or it returns something else.
    """
    file, _, name = place.rpartition(":")
    if not Path(file).is_file():
        raise cv.DataError(f"there is no file {file}")
    complain("warning", f"running the Python code of {file}; use only files that you trust")
    try:
        found = runpy.run_path(file)
    except Exception as error:
        raise cv.DataError(f"{file} does not run: {type(error).__name__}: {error}") from error
    if not callable(found.get(name)):
        functions = [own for own, value in found.items() if callable(value) and not own.startswith("_")]
        raise cv.DataError(f"{file} has no function {name!r}; it has {listed(functions) or 'none'}")
    if needed := _needed(found[name]):
        raise cv.DataError(f"{name}() of {file} must take no arguments; it needs {listed(needed)}")
    try:
        model = found[name]()
    except cv.CaviarError:
        raise
    except Exception as error:
        raise cv.DataError(f"{name}() of {file} fails: {type(error).__name__}: {error}") from error
    if not isinstance(model, cv.Model):
        raise cv.DataError(
            f"{name}() of {file} must return a caviar.Model; it returned {named(type(model).__name__)}"
        )
    return model


def _needed(function: Any) -> list[str]:
    """Return the arguments that a function cannot be called without; none where it does not tell."""
    try:
        own = inspect.signature(function).parameters.values()
    except (TypeError, ValueError):
        return []
    kinds = (inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD)
    return [one.name for one in own if one.default is one.empty and one.kind not in kinds]


def _data(request: FitOptions, file: str | None) -> Any:
    """Return data by name: arrays of a NumPy file, or the columns of a table."""
    if is_numpy_file(file):
        return dict(opened_arrays(Path(str(file))))
    return cv.data.read_columns(file, columns=request.column_names, sql=request.sql)


def _fitted(request: FitOptions, model: cv.Model, data: Any) -> cv.Posterior:
    given = request.arguments
    tol = 1e-6 if given["tol"] is None else given["tol"]
    with watching("ELBO", quiet=request.quiet, tol=tol) as callback:
        return model.fit(
            data,
            seed=np.random.default_rng(given["random_state"]),
            n_restarts=given["n_init"],
            max_iter=given["max_iter"],
            tol=tol,
            executor=given["n_jobs"],
            checkpoint=request.checkpoint,
            progress=callback,
        )


def _require_stated(request: FitOptions) -> None:
    """Refuse options that a stated model does not have.

    Raises
    ------
    BadParameter
        If the user gave one.
    """
    given = list(request.options)
    given += ["--components"] if request.arguments.get("n_components") is not None else []
    given += ["--non-numeric"] if request.non_numeric is not NonNumeric.ERROR else []
    if given:
        raise typer.BadParameter(f"{given[0]} does not belong to --model {request.model_name}: {_NO_OPTIONS}")
