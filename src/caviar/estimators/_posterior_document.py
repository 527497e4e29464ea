"""A posterior as plain values, and put together again from them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from .._model import _Evaluator
from .._posterior import Posterior
from ..engine.partly_known import PartlyKnown
from ..engine.point import PointMass
from ..engine.status import Status
from ..families import FAMILIES, MeanPrecision
from ..language import Variable
from ._model_document import document_of_model, model_of_document

__all__ = ["document_of_posterior", "posterior_of_document"]


def document_of_posterior(posterior: Posterior) -> dict[str, Any]:
    """Return a posterior, with its model, as plain values."""
    evaluator: Any = posterior._evaluator
    return {
        "model": document_of_model(posterior.model),
        "point": list(evaluator.point),
        "groups": None if evaluator.factors is None else [list(group) for group in evaluator.factors],
        "factors": {name: _document_of_factor(posterior[name]) for name in posterior},
        "local": sorted(posterior._local),
        "elbo": posterior.elbo,
        "elbo_trace": posterior.elbo_trace,
        "elbo_terms": dict(posterior.elbo_terms),
        "status": posterior.status.value,
        "n_iter": posterior.n_iter,
        "restart_elbos": posterior.restart_elbos,
    }


def _document_of_factor(factor: Any) -> dict[str, Any]:
    if isinstance(factor, PointMass):
        value = (
            tuple(map(np.asarray, factor.value))
            if isinstance(factor.value, tuple)
            else np.asarray(factor.value)
        )
        return {"family": factor.family.__name__, "point": value}
    if isinstance(factor, PartlyKnown):
        return {
            "learnt": _document_of_factor(factor.unknown),
            "known": _document_of_factor(factor.known),
            "is_known": factor.is_known,
        }
    parameters = {name: np.asarray(value) for name, value in factor._parameters().items()}
    return {"family": type(factor).__name__, "parameters": parameters}


def posterior_of_document(document: Mapping[str, Any]) -> Posterior:
    """Return the posterior that plain values hold.

    Raises
    ------
    ValueError, LookupError, TypeError
        If they hold none.
    """
    return _SavedPosterior(document)


def _factor_of(document: Mapping[str, Any], variable: Variable) -> Any:
    if "learnt" in document:
        return _partly_known(document, variable)
    family = FAMILIES[document["family"]]
    if family is not variable.family:
        raise ValueError(f"a factor of '{variable.name}' that is a {family.__name__}")
    if "point" in document:
        value = document["point"]
        return PointMass(
            family, MeanPrecision(*value) if isinstance(value, tuple) else np.asarray(value, dtype=float)
        )
    factor = family(**document["parameters"])
    sizes = tuple(plate.size for plate in variable.batch_plates)
    if factor.batch_shape != sizes:
        raise ValueError(f"a factor of '{variable.name}' over {factor.batch_shape} of plates {sizes}")
    return factor


def _partly_known(document: Mapping[str, Any], variable: Variable) -> PartlyKnown:
    is_known = np.asarray(document["is_known"], dtype=bool)
    learnt, known = document["learnt"], document["known"]
    if {learnt["family"], known["family"]} != {variable.family.__name__}:
        raise ValueError(f"a factor of '{variable.name}' of other families")
    sizes = tuple(plate.size for plate in variable.plates)
    if is_known.shape != sizes:
        raise ValueError(f"a factor of '{variable.name}' over {is_known.shape} of plates {sizes}")
    unknown = variable.family(**learnt["parameters"])
    n_unknown = int(np.count_nonzero(~is_known))
    if unknown.batch_shape != (n_unknown,):
        raise ValueError(
            f"a factor of '{variable.name}' for {unknown.batch_shape} of {n_unknown} repetitions"
        )
    return PartlyKnown(unknown, _point(known, variable), is_known)


def _point(document: Mapping[str, Any], variable: Variable) -> PointMass:
    value = document["point"]
    whole = MeanPrecision(*value) if isinstance(value, tuple) else np.asarray(value, dtype=float)
    return PointMass(variable.family, whole)


class _SavedPosterior(Posterior):
    """A posterior of which there are plain values instead of the fit's own result."""

    def __init__(self, document: Mapping[str, Any]) -> None:
        self.model = model_of_document(document["model"])
        self.elbo = float(document["elbo"])
        self.elbo_trace = np.asarray(document["elbo_trace"], dtype=np.float64)
        self.elbo_terms = {str(name): float(term) for name, term in document["elbo_terms"].items()}
        self.status = Status(document["status"])
        self.n_iter = int(document["n_iter"])
        self.restart_elbos = np.asarray(document["restart_elbos"], dtype=np.float64)
        groups = document["groups"]
        self._evaluator = _Evaluator(self.model, tuple(document["point"]), groups)
        self._local = set(document["local"])
        variables = self.model.variables
        self._factors = {
            name: _factor_of(entry, variables[name]) for name, entry in document["factors"].items()
        }
        self._of_points = {}
