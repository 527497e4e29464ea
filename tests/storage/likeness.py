"""Whether two models, or two posteriors, are the same: to the last bit, and in all that they do."""

from __future__ import annotations

from typing import Any

import numpy as np

import caviar as cv

__all__ = ["assert_same_model", "assert_same_posterior", "same"]


def same(one: Any, other: Any) -> bool:
    """Whether two results are made of the same numbers, types and shapes; NaN is the same as NaN."""
    if isinstance(one, dict):
        return list(one) == list(other) and all(same(one[key], other[key]) for key in one)
    if isinstance(one, list | tuple):
        return type(one) is type(other) and len(one) == len(other) and all(map(same, one, other))
    if isinstance(one, np.ndarray | np.generic):
        # families keep some numbers as scalars and some as arrays without axes
        one, other = np.asarray(one), np.asarray(other)
        equal_nan = one.dtype.kind == "f"
        return one.dtype == other.dtype and np.array_equal(one, other, equal_nan=equal_nan)
    if isinstance(one, float | int | str | bool | None):
        return type(one) is type(other) and (one == other or one != one)
    if type(one) is not type(other):
        return False
    return same(_contents(one), _contents(other))


def _contents(value: Any) -> dict[str, Any]:
    if hasattr(value, "_parameters"):
        return dict(value._parameters())
    if hasattr(value, "is_known"):
        return {"is_known": value.is_known, "unknown": value.unknown, "known": value.known}
    if hasattr(value, "family"):
        return {"family": value.family.__name__, "value": value.value, "n_categories": value.n_categories}
    if hasattr(value, "__dataclass_fields__"):
        return {name: getattr(value, name) for name in value.__dataclass_fields__}
    return vars(value)


def assert_same_model(one: cv.Model, other: cv.Model) -> None:
    """Check that two models have the same nodes, plates, constants and terms, in the same order."""
    assert [leaf.name for leaf in one.leaves] == [leaf.name for leaf in other.leaves]
    assert [(type(node), node.name) for node in one.nodes] == [(type(n), n.name) for n in other.nodes]
    plates: dict[str, cv.Plate] = {}
    for mine, its in zip(one.nodes, other.nodes, strict=True):
        assert repr(mine.plates) == repr(its.plates)
        for plate in its.plates:
            # one object for each name
            assert plates.setdefault(plate.name, plate) is plate
        if isinstance(mine, cv.Constant):
            assert same(mine.value, its.value), mine.name
        if isinstance(mine, cv.language.Variable):
            assert mine.describe() == its.describe()
            assert list(mine.slots) == list(its.slots)
            assert (mine.is_flat, mine.dimension) == (its.is_flat, its.dimension)
            assert same(mine.floor, its.floor)
            assert getattr(mine.tied, "name", None) == getattr(its.tied, "name", None)
            assert same(getattr(mine, "trials", None), getattr(its, "trials", None))
    assert [_term(term) for term in one.terms] == [_term(term) for term in other.terms]


def _term(term: Any) -> tuple[Any, ...]:
    operands = [(o.node.name, o.statistic, list(map(repr, o.axes))) for o in term.operands]
    return term.owner.name, term.coefficient, operands, list(map(repr, term.axes))


def outcome(call: Any) -> Any:
    """Return what a call gives, or the refusal that it ends with."""
    try:
        return call()
    except cv.CaviarError as error:
        return f"{type(error).__name__}: {error}"


def assert_same_posterior(one: cv.Posterior, other: cv.Posterior, data: dict[str, Any]) -> None:
    """Check that two posteriors are the same, and do the same with rows of data."""
    assert_same_model(one.model, other.model)
    for name in (
        "elbo",
        "elbo_trace",
        "elbo_terms",
        "n_iter",
        "restart_elbos",
        "restart_traces",
        "data_summary",
    ):
        assert same(getattr(one, name), getattr(other, name)), name
    assert (one.status, str(one), list(one)) == (other.status, str(other), list(other))
    assert getattr(one.data_plate, "name", None) == getattr(other.data_plate, "name", None)
    assert same(dict(one._factors), dict(other._factors))
    assert same(dict(one._of_points), dict(other._of_points))
    lacking = {name: data[name] for name in data if name not in {leaf.name for leaf in one.model.leaves}}
    for call in (
        lambda p: p.elbo_at({}, data),
        lambda p: p.local(data),
        lambda p: p.log_predictive(data),
        lambda p: p.predict(lacking),
        lambda p: p.sample(2, seed=1),
        lambda p: str(p.summary()),
        lambda p: p.predictive(
            {} if p.data_plate is None or p.data_plate.size else {p.data_plate.name: 2}, seed=1
        ),
        lambda p: dict(p.update(data, max_iter=2, seed=0)._factors),
    ):
        mine, its = outcome(lambda call=call: call(one)), outcome(lambda call=call: call(other))
        assert same(mine, its), (mine, its)
