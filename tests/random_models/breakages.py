"""Breakages: ways in which a right model, its data or a call of fit becomes wrong."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

import caviar as cv

from .statement import Stated

__all__ = ["OF_ARGUMENTS", "OF_DATA", "OF_STATEMENTS"]

Data = dict[str, Any]
_JOINTS = (cv.NormalGamma, cv.NormalWishart)


def _replaced(data: Data, name: str, value: Any) -> Data:
    return {**data, name: value}


# ---- statements: each returns calls, every one of which must be refused ------------------------------


def wrong_width(stated: Stated) -> list[Callable[[], Any]]:
    """A Categorical of more categories than any plate of what it chooses from."""
    calls: list[Callable[[], Any]] = []
    for variable in stated.model.variables.values():
        widest = max((plate.size or 0 for plate in variable.plates), default=0)
        z = cv.Categorical("bad z", np.full(widest + 2, 1 / (widest + 2)))
        calls.append(lambda variable=variable, z=z: variable[z])
    return calls


def stands_twice(stated: Stated) -> list[Callable[[], Any]]:
    """A variable that multiplies itself, or is both mean and precision."""
    calls: list[Callable[[], Any]] = []
    for v in stated.model.variables.values():
        if isinstance(v, cv.Normal):
            calls.append(lambda v=v: cv.Model(cv.Normal("bad", v * v, 1.0, plates=v.plates)))
        if isinstance(v, cv.Gamma):
            calls.append(lambda v=v: cv.Model(cv.Normal("bad", 0.0, v * v, plates=v.plates)))
            calls.append(lambda v=v: cv.Model(cv.Normal("bad", 0.0, v + v, plates=v.plates)))
        if isinstance(v, cv.MultivariateNormal):
            calls.append(lambda v=v: cv.Model(cv.Normal("bad", cv.dot(v, v), 1.0, plates=v.plates)))
        if isinstance(v, _JOINTS):
            leaf = cv.Normal if isinstance(v, cv.NormalGamma) else cv.MultivariateNormal
            calls.append(lambda v=v, leaf=leaf: cv.Model(leaf("bad", v, v, plates=v.plates)))
    return calls


_SLOTS: Mapping[str, tuple[Callable[..., Any], tuple[type, ...]]] = {
    "mean of a number": (lambda v, **k: cv.Normal("bad", v, 1.0, **k), (cv.Normal, cv.Bernoulli)),
    "joint of a number": (lambda v, **k: cv.Normal("bad", v, **k), (cv.NormalGamma,)),
    "precision of a number": (lambda v, **k: cv.Normal("bad", 0.0, v, **k), (cv.Gamma,)),
    "mean of a vector": (
        lambda v, **k: cv.MultivariateNormal("bad", v, np.eye(2), **k),
        (cv.MultivariateNormal,),
    ),
    "joint of a vector": (lambda v, **k: cv.MultivariateNormal("bad", v, **k), (cv.NormalWishart,)),
    "precision of a vector": (
        lambda v, **k: cv.MultivariateNormal("bad", np.zeros(2), v, **k),
        (cv.Wishart,),
    ),
    "shape": (lambda v, **k: cv.Gamma("bad", v, 1.0, **k), (cv.Gamma, cv.Beta)),
    "rate": (lambda v, **k: cv.Gamma("bad", 1.0, v, **k), (cv.Gamma,)),
    "degrees of freedom": (lambda v, **k: cv.Wishart("bad", v + 1.0, np.eye(2), **k), (cv.Gamma, cv.Beta)),
    "inverse scale": (lambda v, **k: cv.Wishart("bad", 4.0, v, **k), (cv.Wishart,)),
    "concentration": (lambda v, **k: cv.Dirichlet("bad", v, **k), (cv.StickBreaking,)),
    "shapes": (lambda v, **k: cv.Beta("bad", v, 1.0, **k), (cv.Gamma, cv.Beta)),
    "stick": (lambda v, **k: cv.StickBreaking("bad", v, 3, **k), (cv.Gamma,)),
    "probabilities": (lambda v, **k: cv.Categorical("bad", v, **k), (cv.Dirichlet, cv.StickBreaking)),
    "tallied": (lambda v, **k: cv.Multinomial("bad", 3, v, **k), (cv.Dirichlet, cv.StickBreaking)),
    "probability": (lambda v, **k: cv.Bernoulli("bad", v, **k), (cv.Beta,)),
    "count": (lambda v, **k: cv.Poisson("bad", v, **k), (cv.Gamma,)),
    "diagonal": (lambda v, **k: cv.MultivariateNormal("bad", np.zeros(9), cv.diagonal(v), **k), ()),
    "product": (lambda v, **k: cv.Normal("bad", 0.0, 2.0 * v, **k), (cv.Gamma,)),
    "sum": (lambda v, **k: cv.Normal("bad", 1.0 + v, 1.0, **k), (cv.Normal, cv.Bernoulli)),
    "dot": (lambda v, **k: cv.Normal("bad", cv.dot(v, np.ones(9)), 1.0, **k), ()),
}


def wrong_parent(stated: Stated) -> list[Callable[[], Any]]:
    """Every variable in every slot that it does not fit."""
    calls: list[Callable[[], Any]] = []
    for v in stated.model.variables.values():
        for make, fitting in _SLOTS.values():
            if not isinstance(v, fitting):
                calls.append(lambda v=v, make=make: cv.Model(make(v, plates=v.plates)))
    return calls


def lost_plate(stated: Stated) -> list[Callable[[], Any]]:
    """A child without a plate of its parent, or with another plate of that name."""
    calls: list[Callable[[], Any]] = []
    for v in stated.model.variables.values():
        for make, fitting in _SLOTS.values():
            if isinstance(v, fitting) and v.plates:
                twins = tuple(cv.Plate(plate.name, plate.size) for plate in v.plates)
                calls.append(lambda v=v, make=make: cv.Model(make(v, plates=v.plates[1:])))
                calls.append(lambda v=v, make=make, twins=twins: cv.Model(make(v, plates=twins)))
    return calls


def same_name(stated: Stated) -> list[Callable[[], Any]]:
    """Two variables of one name."""
    leaf = stated.model.leaves[0]
    twin = cv.Normal(leaf.name, 0.0, 1.0)
    return [lambda: cv.Model(leaf, twin), lambda: cv.Model(), lambda: cv.Model(leaf, "x")]  # type: ignore[arg-type]


OF_STATEMENTS = {f.__name__: f for f in (wrong_width, stands_twice, wrong_parent, lost_plate, same_name)}


# ---- data: each returns wrong data ---------------------------------------------------------------------


def _floats(data: Data, name: str) -> np.ndarray:
    return np.array(data[name], dtype=float)


def missing_name(stated: Stated, data: Data, name: str) -> list[Data]:
    """A name without data."""
    return [{other: value for other, value in data.items() if other != name}]


def extra_name(stated: Stated, data: Data, name: str) -> list[Data]:
    """Data that no variable has."""
    return [_replaced(data, "nobody", data[name])]


def infinite(stated: Stated, data: Data, name: str) -> list[Data]:
    """An infinity in any array."""
    found = []
    for value in (np.inf, -np.inf):
        array = _floats(data, name)
        array.flat[array.size // 2] = value
        found.append(_replaced(data, name, array))
    return found


def refused_nan(stated: Stated, data: Data, name: str) -> list[Data]:
    """A missing value in a known array, in a part of a vector of counts, or everywhere."""
    found = [_replaced(data, name, np.full(np.shape(data[name]), np.nan))]
    array, node = _floats(data, name), {n.name: n for n in stated.model.nodes}[name]
    rank = getattr(node, "value_rank", 0)
    is_counts = rank and array.shape[-1] > 1 and not isinstance(node, cv.MultivariateNormal)
    if isinstance(node, cv.Data) or is_counts:
        array.flat[0] = np.nan
        found.append(_replaced(data, name, array))
    return found


def off_support(stated: Stated, data: Data, name: str) -> list[Data]:
    """A value that the distribution gives no probability."""
    wrong = {
        cv.Gamma: (0.0, -1.0),
        cv.Categorical: (99.0, -1.0, 0.5),
        cv.Bernoulli: (2.0, 0.5, -1.0),
        cv.Poisson: (-1.0, 0.5),
        cv.Multinomial: (-1.0, 0.5, 99.0),
    }
    variable = stated.model.variables.get(name)
    found = []
    for value in wrong.get(type(variable), ()):  # type: ignore[arg-type]
        array = _floats(data, name)
        array.flat[-1] = value
        found.append(_replaced(data, name, array))
    return found


def wrong_shape(stated: Stated, data: Data, name: str) -> list[Data]:
    """An axis too many, too few, or of another length than that of a plate told elsewhere."""
    array = np.asarray(data[name])
    node = {n.name: n for n in stated.model.nodes}[name]
    found = [_replaced(data, name, array[None])]
    if array.ndim:
        found.append(_replaced(data, name, array[0]))
    for axis, plate in enumerate(node.plates):
        others = [n for n in stated.model.nodes if n.name in data and n is not node and plate in n.plates]
        if plate.size is not None or others:
            found.append(_replaced(data, name, np.concatenate([array, array], axis=axis)))
        found.append(_replaced(data, name, np.take(array, [], axis=axis)))
    return found


def wrong_kind(stated: Stated, data: Data, name: str) -> list[Data]:
    """What is no array of real numbers."""
    array = np.asarray(data[name])
    kinds: list[Any] = [array + 1j, None, {"a": 1}, object(), [[1.0], [1.0, 2.0]], "word"]
    if not _is_label(stated, name):
        words = np.full(array.shape, "word")
        kinds += [words, words.astype(object)]
    return [_replaced(data, name, value) for value in kinds]


def _is_label(stated: Stated, name: str) -> bool:
    """Whether data are labels, which may be texts."""
    variables = stated.model.variables
    choosing = {
        slot.index.name for own in variables.values() for slot in own.slots.values() if slot.index is not None
    }
    return name in choosing or isinstance(variables.get(name), cv.Categorical)


OF_DATA = {
    f.__name__: f
    for f in (missing_name, extra_name, infinite, refused_nan, off_support, wrong_shape, wrong_kind)
}


# ---- arguments: each returns wrong arguments of fit ------------------------------------------------------


def _starts(stated: Stated, n_rows: int) -> list[dict[str, Any]]:
    """Return values to start from that no variable can have."""
    found: list[dict[str, Any]] = [{"init": {"nobody": 1.0}}, {"init": "nowhere"}]
    for name in stated.latent:
        wrong = ("word", None, np.nan, np.inf, np.full((n_rows, 7, 7, 7), 0.5), np.full(97, -7.5))
        found += [{"init": {name: value}} for value in wrong]
    return found


def arguments(stated: Stated, data: Data, n_rows: int) -> list[dict[str, Any]]:
    """Return arguments of fit of which each is wrong."""
    found: list[dict[str, Any]] = [
        {"point": ["nobody"]},
        {"point": stated.leaves[0]},
        {"order": ["nobody"]},
        {"data_plate": "nowhere"},
        {"max_iter": -1},
        {"tol": np.nan},
        {"n_restarts": 0},
        {"seed": -1},
        {"executor": 0},
        {"sample_weight": np.full(n_rows, -1.0)},
        {"sample_weight": np.full(n_rows, np.nan)},
        {"sample_weight": np.zeros(n_rows)},
        {"sample_weight": np.ones(n_rows + 91)},
        {"sample_weight": "heavy"},
    ]
    return found + _starts(stated, n_rows)


OF_ARGUMENTS = arguments
