"""Models and posteriors put together again from the plain values of a file."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from .._typing import Array
from ..engine.ascent.beliefs import Beliefs
from ..engine.ascent.status import Status
from ..engine.checkpoint.row_marks import RowMarks
from ..families.shared import SHARED
from ..language import Categorical, Plate, Variable
from ..names import Names
from ..posterior.documents.factors import factor_of_document, shared_of_document
from ..posterior.documents.shapes import Sizes
from ..posterior.integration.shown import Drawn, Integrated
from ..posterior.posterior import Posterior
from ..posterior.shared_factors import SharedFactors
from ..posterior.uncertainty.known import Corrected, MeanField, Uncertainty, Widths
from ..storage import leaves_of_statement
from .model import Model, _Evaluator


def model_of_document(document: Mapping[str, Any]) -> Model:
    """Return the model that plain values state.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they state none.
    """
    return Model(*leaves_of_statement(document))


def posterior_of_document(document: Mapping[str, Any]) -> Posterior:
    """Return the posterior that plain values hold.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If they hold none.
    """
    model = model_of_document(document["model"])
    sizes: Sizes = {}
    factors = _factors_of(document["factors"], model.variables, sizes)
    # a file of an earlier version has no shared factors
    coupled = _factors_of(document.get("coupled", {}), model.variables, sizes)
    local = _names_among(document["local"], model.variables)
    _check_partition(model, factors, local, _names_among(document["observed"], model.variables))
    beliefs = document["beliefs"]
    plates = [plate for node in model.nodes for plate in node.plates]
    names = Names.of_plain(
        document.get("names"), model.axes, {plate.name: sizes.get(plate, plate.size) for plate in plates}
    )
    prior = _prior_of(beliefs["prior"], model, sizes)
    evaluator = _evaluator_of(document["arguments"], model, prior, names)
    _check_rows(model, factors, local, evaluator.data_plate)
    trace = _series(document["elbo_trace"])
    return Posterior._of_parts(
        model=model,
        elbo=_objective(document["elbo"], trace),
        elbo_trace=trace,
        elbo_terms={_text(name): _number(term) for name, term in document["elbo_terms"].items()},
        status=Status(document["status"]),
        n_iter=_count(document["n_iter"]),
        restart_elbos=_series(document["restart_elbos"]),
        restart_traces=_traces(document["restart_traces"]),
        data_summary=_summary(document["data"], model),
        row_marks=_row_marks(document.get("row_marks")),
        _uncertainty=_uncertainty(document.get("uncertainty"), factors),
        _evaluator=evaluator,
        _local=set(local),
        # files of earlier versions do not say
        _has_gaps=document.get("has_gaps") is True,
        _factors=factors,
        _shared=SharedFactors(coupled),
        _of_points=_distributions_of(beliefs["of_points"], model.variables, sizes),
    )


def _factors_of(
    documents: Mapping[str, Any], variables: Mapping[str, Variable], sizes: Sizes
) -> dict[str, Any]:
    return {
        name: shared_of_document(entry, variables, sizes)
        if not entry.keys().isdisjoint(SHARED)
        else factor_of_document(entry, variables[name], sizes)
        for name, entry in documents.items()
    }


def _distributions_of(
    documents: Mapping[str, Any], variables: Mapping[str, Variable], sizes: Sizes
) -> dict[str, Any]:
    found = _factors_of(documents, variables, sizes)
    for name, factor in found.items():
        if factor.learnt is not factor:
            raise TypeError(f"the belief behind a point of {name!r:.40} is not a distribution")
    return found


def _prior_of(document: Mapping[str, Any] | None, model: Model, sizes: Sizes) -> Beliefs | None:
    """Return the beliefs that replaced the priors; over plates of documents that are no more there."""
    if document is None:
        return None
    # what belonged to the earlier rows may have had other sizes
    own = {plate: size for plate, size in sizes.items() if plate.size is not None}
    factors = _factors_of(document["factors"], model.variables, own)
    return Beliefs(factors, _distributions_of(document["of_points"], model.variables, own))


def _evaluator_of(
    document: Mapping[str, Any], model: Model, prior: Beliefs | None, names: Names
) -> _Evaluator:
    variables, groups = model.variables, document["factors"]
    if groups is not None:
        groups = [list(_names_among(group, variables)) for group in groups]
    point = tuple(_names_among(document["point"], variables))
    plate, remark = _plate_of(document["data_plate"], model), _text(document.get("on_factors", ""))
    return _Evaluator(model, point, groups, plate, prior, names, remark)


def _plate_of(name: str | None, model: Model) -> Plate | None:
    if name is None:
        return None
    plates = {plate.name: plate for node in model.nodes for plate in node.plates}
    return plates[name]


def _check_partition(model: Model, *parts: Any) -> None:
    """Refuse variables that have no factor, or several places."""
    names = [name for part in parts for name in part]
    if sorted(names) != sorted(model.variables):
        raise ValueError("its factors are not those of its model")
    observed = parts[-1]
    # others may be hidden in some rows, though they are stated as observed
    parents = {parent for variable in model.variables.values() for parent in variable.parents}
    if any(leaf.name not in observed for leaf in model.leaves if leaf not in parents):
        raise ValueError("a leaf of its model was not observed")


def _check_rows(
    model: Model, factors: Mapping[str, Any], local: Sequence[str], data_plate: Plate | None
) -> None:
    """Refuse local variables that are not those of one plate, the rows."""
    variables = model.variables
    # with documents as the rows, what belongs to their tokens is local, too
    plates = {
        name: {*own.plates, *(plate.within for plate in own.plates if plate.within is not None)}
        for name, own in variables.items()
    }
    known = [plate for leaf in model.leaves for plate in plates[leaf.name]]
    for plate in [data_plate] if data_plate is not None else [*known, None]:
        if all((plate in plates[name]) == (name in local) for name in (*factors, *local)):
            return
    raise ValueError("its local variables are not those of the rows of data")


def _names_among(names: Any, known: Mapping[str, Any]) -> list[str]:
    if not isinstance(names, list) or not all(isinstance(name, str) and name in known for name in names):
        raise ValueError(f"names {names!r:.60} of variables that it does not have")
    return names


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise TypeError(f"a text {value!r:.40}")
    return value


def _number(value: Any) -> float:
    if type(value) not in (int, float):
        raise TypeError(f"a number {value!r:.40}")
    return float(value)


def _objective(value: Any, trace: Array) -> float:
    """Return the objective, which known parameters that nothing was fitted for lack, and a trace with it."""
    if np.isfinite(_number(value)) != (len(trace) > 0):
        raise ValueError(f"an ELBO {value!r:.40} at the end of {len(trace)} iterations")
    return float(value)


def _count(value: Any) -> int:
    if type(value) is not int or not 0 <= value < 2**62:
        raise ValueError(f"a count {value!r:.40}")
    return value


def _series(value: Any) -> Array:
    if not isinstance(value, np.ndarray) or value.dtype != np.float64 or value.ndim != 1:
        raise TypeError(f"a series of numbers {value!r:.40}")
    return value


def _traces(document: Mapping[str, Any]) -> tuple[Array, ...]:
    """Return the trace of each start, which are kept one after another."""
    values, lengths = _series(document["values"]), document["lengths"]
    is_number = isinstance(lengths, np.ndarray) and lengths.dtype == np.int64 and lengths.ndim == 1
    if not is_number or np.any((lengths < 0) | (lengths > len(values))) or lengths.sum() != len(values):
        raise ValueError("traces of other lengths than it has")
    return tuple(np.split(values, lengths.cumsum()[:-1])) if len(lengths) else ()


def _summary(value: Any, model: Model) -> dict[str, Any] | None:
    if value is None:
        return None
    if not isinstance(value, dict) or not isinstance(value["arrays"], dict):
        raise TypeError(f"a summary of data {value!r:.40}")
    _count(value["rows"])
    _check_about(value.get("about", {}))
    _check_arguments(value.get("arguments", {}))
    for array, own in value["arrays"].items():
        if not isinstance(own["shape"], list):
            raise TypeError(f"a shape {own['shape']!r:.40}")
        for size in (*own["shape"], own.get("missing", 0)):
            _count(size)
        columns, n_columns = own.get("columns", []), own["shape"][-1] if len(own["shape"]) > 1 else 1
        if not isinstance(columns, list) or (columns and len(columns) != n_columns):
            raise ValueError(f"names of columns {columns!r:.40}")
        for name in columns:
            _text(name)
        if "categories" in own:
            _check_categories(own["categories"], model.variables[array])
        for figure in ("mean", "standard_deviation"):
            if figure in own and getattr(own[figure], "dtype", None) != np.float64:
                raise TypeError(f"a {figure} {own[figure]!r:.40}")
    return value


def _check_arguments(value: Any) -> None:
    """Refuse arguments of a fit that are not plain values by name."""
    if not isinstance(value, dict):
        raise TypeError(f"arguments of a fit {value!r:.40}")
    for name, own in value.items():
        _text(name)
        parts = [own]
        while parts:
            part = parts.pop()
            if isinstance(part, list):
                parts += part
            elif not isinstance(part, bool | int | float | str):
                raise TypeError(f"an argument of a fit {name!r:.40} = {part!r:.40}")


def _row_marks(document: Any) -> RowMarks | None:
    # files of earlier versions have none
    return None if document is None else RowMarks.of_plain(document)


def _uncertainty(document: Any, factors: Mapping[str, Any]) -> Uncertainty:
    # files of earlier versions have none
    if document is None:
        return MeanField()
    if "sds" not in document:
        narrower = _text(document.get("narrower", ""))
        return MeanField(_text(document["because"]), _text(document.get("doubt", "")), narrower=narrower)
    kinds = {"values": Integrated, "draws": Drawn, "shifts": Corrected}
    kind = next((own for name, own in kinds.items() if name in document), Widths)
    return kind.of_plain(document, factors)


def _check_about(about: Any) -> None:
    """Refuse what does not say in words where data and fit come from."""
    if not isinstance(about, dict) or set(about) - {"source", "query", "command", "seed", "versions"}:
        raise ValueError(f"an origin {about!r:.60}")
    for name, value in about.items():
        if name == "versions":
            if not isinstance(value, dict):
                raise TypeError(f"versions {value!r:.40}")
            for text in (*value, *value.values()):
                _text(text)
        elif value is not None:
            _count(value) if name == "seed" else _text(value)


def _check_categories(names: Any, variable: Variable) -> None:
    """Refuse names that are not one for each category of a variable."""
    if not isinstance(variable, Categorical) or not isinstance(names, list):
        raise TypeError(f"names of categories {names!r:.40}")
    if len({_text(name) for name in names}) != len(names) or len(names) != variable.categories:
        raise ValueError(f"{len(names)} names for {variable.categories} categories")
