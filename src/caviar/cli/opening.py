"""A saved model from a file, as the class that the commands know it by; and ``caviar show``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import caviar as cv

from .mixtures import GaussianMixtureOfFile, MixedMixtureOfFile
from .results import print_document
from .saved import Saved
from .speaking import standard_output
from .stated import PosteriorOfFile, print_statement, statement_document
from .topics import TopicsOfFile

__all__ = ["load_mixture", "opened", "show_model"]


def opened(path: Path) -> Saved:
    """Return a saved model that was fitted.

    Raises
    ------
    DataError
        If the file holds a model that was not fitted.
    """
    found = cv.load(path)
    if isinstance(found, cv.Model):
        raise cv.DataError(
            f"{path} holds a model that was stated and not fitted; fit it in Python and save what that gives: "
            f"caviar.load({str(path)!r}).fit({{'name': array, ...}}).save('fitted.caviar')"
        )
    return _as_saved(found, path)


def load_mixture(path: Path) -> Any:
    """Return a saved mixture of Gaussians.

    Raises
    ------
    DataError
        If the file holds something else.
    """
    estimator = opened(path).fitted
    if not hasattr(estimator, "means_"):
        is_stated = isinstance(estimator, cv.Posterior)
        held = "the posterior of a stated model" if is_stated else f"a {type(estimator).__name__}"
        raise cv.DataError(
            f"{path} holds {held}; this command takes mixtures of Gaussians, as caviar fit saves them. caviar show, "
            f"report, predict and sample take it"
        )
    return estimator


def _as_saved(found: Any, path: Path) -> Saved:
    if isinstance(found, cv.Posterior):
        try:
            return MixedMixtureOfFile(cv.MixedMixture.from_posterior(found), path)
        except cv.ParameterError:
            return PosteriorOfFile(found, path)
    if isinstance(found, cv.MixedMixture):
        return MixedMixtureOfFile(found, path)
    if isinstance(found, cv.LatentDirichletAllocation):
        return TopicsOfFile(found, path)
    return GaussianMixtureOfFile(found, path)


def show_model(path: Path, *, as_json: bool) -> None:
    """Do what ``caviar show`` does."""
    found, console = cv.load(path), standard_output()
    if isinstance(found, cv.Model) and as_json:
        print_document({"model": "Model", "statement": statement_document(found)})
    elif isinstance(found, cv.Model):
        print_statement(console, found)
    elif as_json:
        print_document(_as_saved(found, path).document())
    else:
        _as_saved(found, path).print(console)
