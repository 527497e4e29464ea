"""Factors as plain values, and put together again from them to the last bit.

A factor that came out of an update holds its natural parameters beside its standard ones; computed anew from these,
they would differ in the last bit, and so would an ELBO. Where they do they are kept, too.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from ..engine.partly_known import PartlyKnown
from ..engine.point import PointMass
from ..families import FAMILIES, ExponentialFamily, MeanPrecision
from ..language import Variable
from .shapes import Sizes, batch_of, check_parameters, check_point

__all__ = ["document_of_factor", "factor_of_document"]

_SAME = 1e-6
"""Relative difference of natural parameters that rounding explains; beyond it they are those of something else."""


def document_of_factor(factor: Any) -> dict[str, Any]:
    """Return a factor as plain values.

    Examples
    --------
    >>> from caviar.families import Gamma
    >>> document_of_factor(Gamma(2.0, 3.0))
    {'family': 'Gamma', 'parameters': {'shape': array(2.), 'rate': array(3.)}}
    """
    if isinstance(factor, PointMass):
        value = factor.value
        value = tuple(map(np.asarray, value)) if isinstance(value, tuple) else np.asarray(value)
        return {"family": factor.family.__name__, "point": value}
    if isinstance(factor, PartlyKnown):
        return {
            "learnt": document_of_factor(factor.unknown),
            "known": document_of_factor(factor.known),
            "is_known": factor.is_known,
        }
    parameters = {name: np.asarray(value) for name, value in factor._parameters().items()}
    document = {"family": type(factor).__name__, "parameters": parameters}
    again = type(factor)(**parameters)
    pairs = zip(factor.natural, again.natural, strict=True)
    if not all(np.array_equal(one, other) for one, other in pairs):
        document["natural"] = [np.asarray(array) for array in factor.natural]
    return document


def factor_of_document(document: Mapping[str, Any], variable: Variable, sizes: Sizes) -> Any:
    """Return the factor of a variable that plain values hold.

    Parameters
    ----------
    sizes
        Of plates, as the factors before have them; what this one settles is added.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they hold none of that variable.
    """
    if "learnt" in document:
        return _partly_known(document, variable, sizes)
    if FAMILIES[document["family"]] is not variable.family:
        raise ValueError(f"a factor of '{variable.name}' that is a {document['family']}")
    if "point" in document:
        check_point(variable, document["point"], None, sizes)
        return _point(variable, document["point"])
    first = next(iter(document["parameters"].values()))
    return _distribution(document, variable, batch_of(variable, variable.batch_plates, first.shape, sizes))


def _point(variable: Variable, value: Any) -> PointMass:
    return PointMass.of(variable, MeanPrecision(*value) if isinstance(value, tuple) else value)


def _distribution(
    document: Mapping[str, Any], variable: Variable, batch: tuple[int, ...]
) -> ExponentialFamily:
    check_parameters(variable, document["parameters"], batch)
    factor = variable.family(**document["parameters"])
    if "natural" not in document:
        return factor
    natural = tuple(document["natural"])
    for own, array in zip(factor.natural, natural, strict=True):
        largest = np.max(np.abs(own), initial=0.0)
        if array.shape != own.shape or not np.all(np.abs(array - own) <= _SAME * largest):
            raise ValueError(f"natural parameters of '{variable.name}' that are not those of its factor")
    vars(factor)["natural"] = natural
    return factor


def _partly_known(document: Mapping[str, Any], variable: Variable, sizes: Sizes) -> PartlyKnown:
    is_known, learnt, known = document["is_known"], document["learnt"], document["known"]
    if not isinstance(is_known, np.ndarray) or is_known.dtype != bool:
        raise TypeError(f"a factor of '{variable.name}' that does not say what is known")
    if {learnt["family"], known["family"]} != {variable.family.__name__}:
        raise ValueError(f"a factor of '{variable.name}' of other families")
    plates = batch_of(variable, variable.plates, is_known.shape, sizes)
    n_known = int(np.count_nonzero(is_known))
    if is_known.shape != plates or n_known in (0, is_known.size):
        raise ValueError(f"a factor of '{variable.name}' of which {n_known} of {plates} are known")
    check_point(variable, known["point"], (n_known,), sizes)
    unknown = _distribution(learnt, variable, (is_known.size - n_known,))
    return PartlyKnown(unknown, _point(variable, known["point"]), is_known)
