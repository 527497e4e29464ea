"""Which row terms a model has: each kind, a class in a module beside this one, decides where it applies.

A kind that extends another one takes its place wherever it applies, so a new kind is a new module.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from pkgutil import iter_modules
from typing import TypeVar

from ...design.keys import StatisticKey
from ...local.local_factor import LocalFactor, LocalTerm
from .contracted import ContractedTerm
from .products import MatrixLayout, MatrixTerm
from .row_term import RowTerm

_Kind = TypeVar("_Kind", bound=RowTerm)
_Made = TypeVar("_Made")


def _kinds(base: type[_Kind]) -> list[type[_Kind]]:
    """Return the concrete classes of the modules of this package that extend a class, or are it."""
    package = __name__.rpartition(".")[0]
    names = sorted(found.name for found in iter_modules(import_module(package).__path__))
    modules = [import_module(f"{package}.{name}") for name in names if not __name__.endswith(f".{name}")]
    every = {kind: None for module in modules for kind in vars(module).values() if isinstance(kind, type)}
    return [kind for kind in every if issubclass(kind, base) and not kind.__abstractmethods__]


_MATRIX_TERMS = _kinds(MatrixTerm)
_CONTRACTED_TERMS = _kinds(ContractedTerm)


def matrix_terms(layout: MatrixLayout | None, others: Sequence[RowTerm] = ()) -> list[RowTerm]:
    """Return the terms of a local factor that meet the data in its matrix product, in the order of their visits.

    Parameters
    ----------
    layout
        Of the matrix; None without a matrix.
    others
        Terms that the model gives the factor besides: centres, and vectors missing in part.
    """
    if layout is None:
        return []
    every = _extended([(kind, kind.of_matrix(layout, others)) for kind in _MATRIX_TERMS])
    made = sorted([term for terms in every for term in terms], key=lambda term: not term.writes)
    return [*made, *others]


def contracted_terms(
    terms: Sequence[LocalTerm], factor_of: Mapping[StatisticKey, LocalFactor]
) -> list[ContractedTerm]:
    """Return the terms of a model that are not matrix products, in its order."""
    return [
        term
        for local in terms
        for term in _extended([(kind, kind.of_term(local, factor_of)) for kind in _CONTRACTED_TERMS])
        if term is not None
    ]


def _extended(made: Iterable[tuple[type[RowTerm], _Made]]) -> list[_Made]:
    """Return what each kind has made, without what an extension of it has made in its place."""
    found = {kind: own for kind, own in made if own}
    if len(found) == 1:
        return [*found.values()]
    return [own for kind, own in found.items() if not any(kind in other.__mro__[1:] for other in found)]
