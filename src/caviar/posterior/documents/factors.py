"""Factors as plain values, and put together again from them to the last bit.

A factor that came out of an update was made of natural parameters; computed again from the standard ones, these would
differ in the last bit, and so would an ELBO. Where they do they are kept, too, and the factor is made of them again.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..._errors import ImproperError
from ..._typing import AnyArray
from ...engine.binding.clamped.factor import ClampedFactor, PointMass
from ...families import FAMILIES, ExponentialFamily, MeanPrecision
from ...families.shared import SHARED
from ...families.shared.shared_factor import SharedFactor
from ...language import Variable
from .shapes import Sizes, batch_of, check_parameters, check_point


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
    if isinstance(factor, ClampedFactor):
        return {
            "learnt": document_of_factor(factor.unknown),
            "known": document_of_factor(factor.known),
            "is_known": factor.is_known,
        }
    if isinstance(factor, SharedFactor):
        return {factor.kind: factor.as_plain()}
    parameters = {name: np.asarray(value) for name, value in factor._parameters().items()}
    document = {"family": type(factor).__name__, "parameters": parameters}
    if not _is_made_of_parameters(factor) and _is_made_of_natural(factor):
        document["natural"] = [np.asarray(array) for array in factor.natural]
    return document


def _is_made_of_parameters(factor: Any) -> bool:
    """Whether a factor of the same standard parameters is the same to the last bit."""
    again: Any = type(factor)(**factor._parameters())
    same = _are_same(again._parameters().values(), factor._parameters().values())
    return same and _are_same(again.natural, factor.natural)


def _is_made_of_natural(factor: Any) -> bool:
    """Whether the natural parameters of a factor give its standard ones, to the last bit."""
    try:
        again: Any = type(factor).from_natural(factor.natural)
    except ImproperError:
        return False
    return _are_same(again._parameters().values(), factor._parameters().values())


def _are_same(some: Iterable[AnyArray], others: Iterable[AnyArray]) -> bool:
    return all(np.array_equal(one, other) for one, other in zip(some, others, strict=True))


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
    if not issubclass(variable.family, FAMILIES[document["family"]]):
        raise ValueError(f"a factor of '{variable.name}' that is a {document['family']}")
    if "point" in document:
        check_point(variable, document["point"], None, sizes)
        return _point(variable, document["point"])
    first: Any = next(iter(document["parameters"].values()), None)
    return _distribution(
        document, variable, batch_of(variable, variable.batch_plates, np.shape(first), sizes)
    )


def shared_of_document(
    document: Mapping[str, Any], variables: Mapping[str, Variable], sizes: Sizes
) -> SharedFactor:
    """Return the factor that several variables share, from plain values.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they are not factors of these variables.
    """
    ((kind, held),) = document.items()
    factor = SHARED[kind].of_plain(held)
    for name, family, shape, dimension in factor.members:
        variable = variables[name]
        if len(shape) != len(variable.plates) or batch_of(variable, variable.plates, shape, sizes) != shape:
            raise ValueError(f"a shared factor with other repetitions than '{name}'")
        if variable.family is not family or variable.tied is not None:
            raise ValueError(f"a shared factor that is none of '{name}'")
        if dimension not in (None, variable.dimension):
            raise ValueError(f"a shared factor with vectors of another length than '{name}'")
    return factor


def _point(variable: Variable, value: Any) -> PointMass:
    # a number of a plain fit is not an array without axes, and is shown in another way
    if isinstance(value, tuple):
        return PointMass.of(variable, MeanPrecision(*(part[()] for part in value)))
    return PointMass.of(variable, value[()])


def _distribution(
    document: Mapping[str, Any], variable: Variable, batch: tuple[int, ...]
) -> ExponentialFamily:
    check_parameters(variable, document["parameters"], batch)
    parameters, family = document["parameters"], variable.family
    factor: Any = family(**parameters)
    if "natural" not in document:
        return factor
    natural = tuple(document["natural"])
    for array, shape in zip(natural, family.statistic_shapes(factor.event_shape), strict=True):
        full = (*batch, *shape)
        if array.dtype != np.float64 or np.broadcast_shapes(array.shape, full) != full:
            raise ValueError(f"natural parameters of '{variable.name}' that must have the shape {full}")
    again: Any = family.from_natural(natural)
    if not all(np.array_equal(own, parameters[name]) for name, own in again._parameters().items()):
        raise ValueError(f"natural parameters of '{variable.name}' that are not those of its factor")
    return again


def _partly_known(document: Mapping[str, Any], variable: Variable, sizes: Sizes) -> ClampedFactor:
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
    return ClampedFactor(unknown, _point(variable, known["point"]), is_known)
