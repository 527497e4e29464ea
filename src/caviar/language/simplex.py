"""Distributions of probabilities."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .. import families
from .._errors import ModelError, PlateError
from .._typing import AnyArray, Array
from .nodes import Expression, Indexed, Node, as_known
from .plates import Plates
from .roles import CONCENTRATION, TWO_SHAPES
from .templates import template
from .variable import Variable

__all__ = ["Beta", "Dirichlet"]


class Dirichlet(Variable):
    r"""Probabilities of K categories with a Dirichlet distribution.

    .. math:: \log \mathrm{Dir}(p \mid \alpha) = \sum_k (\alpha_k - 1)\log p_k - \log B(\alpha)

    Parameters
    ----------
    name
        Unique within the model.
    concentration
        :math:`\alpha`, K positive numbers, known. All ones is the flat prior.
    plates
        Its repetitions.

    Examples
    --------
    >>> Dirichlet("weights", concentration=np.ones(3))
    Dirichlet('weights')
    """

    family = families.Dirichlet
    value_rank = 1
    letters: ClassVar = {"log_x": "k"}
    base = template((-1, "self.log_x[k]"))
    density = template((1, "concentration.x[k] self.log_x[k]"), (-1, "concentration.log_beta"))

    def __init__(self, name: str, concentration: Expression, *, plates: Plates = ()) -> None:
        self._state(name, plates, {"concentration": (concentration, CONCENTRATION)})

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with points off the open simplex."""
        inside = np.all(value > 0) and np.allclose(value.sum(axis=-1), 1, rtol=0, atol=1e-9)
        return "" if inside else "must be positive and sum to one along its last axis"

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Array:
        """Return equal probabilities."""
        size = self.dimension or 1
        return np.full((*plates, size), 1.0 / size)


class Beta(Variable):
    r"""A probability with a Beta distribution.

    .. math:: \log \mathrm{Beta}(p \mid a, b) = (a - 1)\log p + (b - 1)\log(1 - p) - \log B(a, b)

    Parameters
    ----------
    name
        Unique within the model.
    a, b
        Positive numbers or arrays, known.
    plates
        Its repetitions.

    Examples
    --------
    >>> Beta("p", a=1, b=1)
    Beta('p')
    """

    family = families.Beta
    letters: ClassVar = {"log_x": "", "log_complement": ""}
    base = template((-1, "self.log_x"), (-1, "self.log_complement"))
    density = template(
        (1, "shapes.a self.log_x"), (1, "shapes.b self.log_complement"), (-1, "shapes.log_beta")
    )

    def __init__(self, name: str, a: Expression, b: Expression, *, plates: Plates = ()) -> None:
        random = next((value for value in (a, b) if isinstance(value, (Node, Indexed))), None)
        shapes = random if random is not None else _stacked(name, a, b)
        self._state(name, plates, {"shapes": (shapes, TWO_SHAPES)}, dimension=2)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.Beta:
        """Return the Beta with a and b from the last axis of its one slot."""
        return families.Beta(slots["shapes"][..., 0], slots["shapes"][..., 1])

    def problem_with(self, value: AnyArray) -> str:
        """Return what is wrong with numbers outside the open unit interval."""
        return "" if np.all((value > 0) & (value < 1)) else "must lie strictly between 0 and 1"

    def unit_value(self, plates: tuple[int, ...], spread: float) -> Array:
        """Return one half."""
        return np.full(plates, 0.5)


def _stacked(name: str, a: Expression, b: Expression) -> Array:
    for label, value in (("a", a), ("b", b)):
        if value is None:
            raise ModelError(f"'{label}' of Beta '{name}' is missing: give a number or an array")
    known = [as_known(a, f"'a' of Beta '{name}'"), as_known(b, f"'b' of Beta '{name}'")]
    try:
        return np.stack(np.broadcast_arrays(*known), axis=-1)
    except ValueError:
        shapes = f"{known[0].shape} and {known[1].shape}"
        raise PlateError(
            f"'a' and 'b' of Beta '{name}' have shapes {shapes}, which do not go together"
        ) from None
