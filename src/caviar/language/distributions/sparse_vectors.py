"""Vectors with entries that are exactly zero, as coefficients of a predictor."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, NamedTuple

import numpy as np

from ... import families
from ..._errors import ModelError
from ..._typing import Array
from ..nodes.algebra import Algebra
from ..nodes.constants import as_known
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression, Node
from ..nodes.plates import Plate, Plates, as_plates
from ..nodes.roles import (
    EACH_LINEAR,
    EACH_PRECISION,
    EACH_PROBABILITY,
    LINEAR,
    OPEN_PROBABILITY,
    POSITIVE_PROBABILITIES,
    PRECISION,
    Role,
)
from ..nodes.templates import LOG_2PI, Density, template
from ..variable import Variable


class _Given(NamedTuple):
    """An argument, one for all entries or one for each: the content of the slot, its role, and its plate."""

    expression: Any
    role: Role
    along: Plate | None = None

    @property
    def letters(self) -> str:
        """What its statistics are followed by in a density."""
        return "[i]" if self.role.rank or self.along is not None else ""


def _given(where: str, value: Expression, plates: tuple[Plate, ...], of_all: Role, of_each: Role) -> _Given:
    """Return an argument; arrays have their entries along the last axis, variables along a separate plate."""
    if isinstance(value, np.ndarray | list | tuple):
        known = as_known(value, where)
        return _Given(known, of_each if known.ndim else of_all)
    own = [plate for plate in value.plates if plate not in plates] if isinstance(value, Node) else []
    if len(own) > 1:
        names = " and ".join(repr(plate.name) for plate in own)
        raise ModelError(f"{where} is repeated over {names}; only one plate can run along the entries")
    return _Given(value, of_all, own[0] if own else None)


def _of_slab(m: str, p: str, *, has_mean: bool) -> Density:
    """Return the density of entries that are not zero, with these letters after statistics of mean and precision."""
    lines = [(1 / 2, f"precision.log_x{p} self.included[i]"), (-1 / 2, f"precision.x{p} self.squares[i]")]
    if has_mean:
        lines.append((1, f"precision.x{p} mean.x{m} self.x[i]"))
        lines.append((-1 / 2, f"precision.x{p} mean.xx{m} self.included[i]"))
    return template(*lines)


def _of_inclusion(s: str) -> Density:
    """Return the density of which entries are not zero, with these letters after statistics of their probability."""
    return template(
        (1, f"probability.log_x{s} self.included[i]"),
        (-1, f"probability.log_complement{s} self.included[i]"),
        (1, f"probability.log_complement{s}" + ("" if s else " [i]")),
    )


_OF_ONE_ENTRY = template((1, "probabilities.log_x[i] self.included[i]"))


class SparseVector(Variable):
    """What vectors share whose entries are zero or Normal."""

    value_rank = 1
    letters: ClassVar = {"included": "i", "x": "i", "squares": "i"}
    base = template((-1 / 2 * LOG_2PI, "self.included[i]"))
    has_zeros = True

    def _state_entries(
        self,
        name: str,
        plates: Plates,
        inclusion: tuple[str, _Given, Density],
        slab: tuple[Expression, Expression],
        size: int | None,
    ) -> None:
        """Take the arguments: of inclusion its slot and density, of entries that are not zero mean and precision."""
        kind, own = type(self).__name__, as_plates(plates, name)
        slot, included, density = inclusion
        mean = _given(f"'mean' of {kind} '{name}'", slab[0], own, LINEAR, EACH_LINEAR)
        precision = _given(f"'precision' of {kind} '{name}'", slab[1], own, PRECISION, EACH_PRECISION)
        has_mean = isinstance(mean.expression, Algebra) or bool(np.any(mean.expression))
        density += _of_slab(mean.letters, precision.letters, has_mean=has_mean)
        given = {slot: included, "mean": mean, "precision": precision}
        sizes = [own.along.size for own in given.values() if own.along is not None]
        self._state(
            name,
            plates,
            {key: (value.expression, value.role) for key, value in given.items()},
            density=density,
            dimension=next((known for known in (size, *sizes) if known is not None), None),
            along={key: value.along for key, value in given.items() if value.along is not None},
        )
        if self.dimension is None:
            raise ModelError(
                f"the length of {kind} '{name}' does not follow from its arguments; give length=D"
            )
        for key, value in given.items():
            if value.along is not None and value.along.size != self.dimension:
                raise ModelError(
                    f"'{key}' of {kind} '{name}' is repeated over plate '{value.along.name}' of size "
                    f"{value.along.size}, but '{name}' has length {self.dimension}"
                )
        self._refuse_zero_precision()

    def _of_entries(self, key: str, slots: Mapping[str, Any]) -> Array:
        """Return an argument for each entry."""
        value, slot = np.asarray(slots[key], dtype=np.float64), self.slots[key]
        if slot.role.rank or slot.along is not None:
            return value
        return np.broadcast_to(value[..., None], (*value.shape, self.dimension or 1))

    def _refuse_zero_precision(self) -> None:
        known = self.known("precision")
        if known is not None and not np.all(known > 0):
            raise ModelError(
                f"'precision' of {type(self).__name__} '{self.name}' must be positive: with a flat prior of the "
                f"entries that are not zero, none would ever be chosen"
            )

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Refuse: these are coefficients, whose mean and variance are those of their factor."""
        slots.refuse(f"a {type(self).__name__} is the coefficients of a predictor")


class SingleEffect(SparseVector):
    r"""A vector with exactly one nonzero entry: one effect at one of many candidates.

    .. math:: \gamma \sim \mathrm{Categorical}(\pi), \qquad b_\gamma \sim N(m_\gamma, \tau^{-1})

    A predictor with several SingleEffects is the sum of single effects model (SuSiE); the factor of each says where one
    effect is, and how certainly. An update takes a pass over the columns, O(N D), and does not form the D x D matrix of
    their products.

    Parameters
    ----------
    name
        Name of the variable and of its factor in the posterior, unique within the model.
    probabilities
        :math:`\pi`, the probability that the effect is at each entry: a vector of positive numbers that sum to one, a
        Dirichlet, or the number D of entries, for probabilities 1/D.
    mean
        Mean of the nonzero entry: a number, a vector with a value for each entry, or a Normal.
    precision
        Inverse variance of the nonzero entry: a number, a vector with a value for each entry, or a Gamma, which may
        have a plate along the entries.
    plates
        Plates along which the variable is repeated.

    Notes
    -----
    Use it in ``dot(X, b)`` with a known array or a MultivariateNormal. Its factor in the posterior has ``inclusion``,
    the probability of each entry; :meth:`Posterior.credible_sets` and :meth:`Posterior.inclusion_probabilities` combine
    several effects.

    Source: Wang, Sarkar, Carbonetto and Stephens, "A simple new approach to variable selection in regression, with
    application to genetic fine mapping" (JRSS B 2020).

    Examples
    --------
    >>> import numpy as np
    >>> import caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(100, 8))
    >>> y = 2.0 * X[:, 3] + rng.normal(size=100)
    >>> b = cv.SingleEffect("b", 8, precision=1.0)
    >>> obs = cv.Plate("obs")
    >>> model = cv.Model(
    ...     cv.Normal("y", cv.dot(cv.Data("X", plates=obs), b), cv.Gamma("tau", 1, 1), plates=obs)
    ... )
    >>> posterior = model.fit({"y": y, "X": X})
    >>> posterior["b"].inclusion.round(2)
    array([0., 0., 0., 1., 0., 0., 0., 0.])
    """

    family = families.SingleEffect
    has_products = False
    density = _OF_ONE_ENTRY + _of_slab("", "", has_mean=True)

    def __init__(
        self,
        name: str,
        probabilities: Expression,
        mean: Expression = 0.0,
        precision: Expression = None,
        *,
        plates: Plates = (),
    ) -> None:
        where, size = f"'probabilities' of SingleEffect '{name}'", None
        if isinstance(probabilities, int | np.integer) and not isinstance(probabilities, bool):
            if probabilities < 1:
                raise ModelError(
                    f"{where} must be a number of entries from 1, or a vector; got {probabilities}"
                )
            size = int(probabilities)
            probabilities = np.full(size, 1.0 / size)
        included = _Given(probabilities, POSITIVE_PROBABILITIES)
        slab = mean, precision
        self._state_entries(name, plates, ("probabilities", included, _OF_ONE_ENTRY), slab, size)

    def distribution_given(self, slots: Mapping[str, Any]) -> families.SingleEffect:
        """Return the vector with these probabilities, means and precisions of the entries."""
        mean, precision = (self._of_entries(key, slots) for key in ("mean", "precision"))
        return families.SingleEffect(np.asarray(slots["probabilities"]), mean, precision)


class SpikeSlab(SparseVector):
    r"""A vector whose entries are independently zero or Normal.

    .. math:: \gamma_j \sim \mathrm{Bernoulli}(\pi_j), \qquad
              b_j \mid \gamma_j = 1 \sim N(m_j, \tau_j^{-1}), \quad b_j \mid \gamma_j = 0 \text{ is } 0

    The factor has a joint distribution of :math:`(\gamma_j, b_j)` for each entry. Entries are updated one after another
    given the others; in a regression each takes O(N).

    Parameters
    ----------
    name
        Name of the variable and of its factor in the posterior, unique within the model.
    probability
        :math:`\pi`, the probability that an entry is not zero: a number between 0 and 1, a vector with a value for each
        entry, or a Beta, which may have a plate along the entries.
    mean
        Mean of a nonzero entry: a number, a vector with a value for each entry, or a Normal.
    precision
        Inverse variance of a nonzero entry: a number, a vector, or a Gamma, which may have a plate along the entries
        (automatic relevance determination).
    length
        Number of entries D, if no vector and no plate determines it.
    plates
        Its repetitions: as loadings, one vector for each column.

    Notes
    -----
    Use it in ``dot(X, b)`` with a known array, or in ``dot(w, z)`` with a MultivariateNormal z. Its factor in the
    posterior has ``inclusion``, the probability that each entry is not zero.

    Source: Carbonetto and Stephens, "Scalable variational inference for Bayesian variable selection in regression"
    (Bayesian Analysis 2012); with factors, Titsias and Lázaro-Gredilla, "Spike and slab variational inference for
    multi-task and multiple kernel learning" (NIPS 2011).

    Examples
    --------
    >>> import numpy as np
    >>> import caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(400, 6))
    >>> y = 2.0 * X[:, 1] - 1.0 * X[:, 4] + rng.normal(size=400)
    >>> b = cv.SpikeSlab("b", cv.Beta("share", 1, 1), precision=1.0, length=6)
    >>> obs = cv.Plate("obs")
    >>> model = cv.Model(
    ...     cv.Normal("y", cv.dot(cv.Data("X", plates=obs), b), cv.Gamma("tau", 1, 1), plates=obs)
    ... )
    >>> model.fit({"y": y, "X": X})["b"].inclusion.round(1)
    array([0. , 1. , 0.1, 0. , 1. , 0.1])
    """

    family = families.SpikeSlab
    is_sequential = True
    density = _of_inclusion("") + _of_slab("", "", has_mean=True)

    def __init__(
        self,
        name: str,
        probability: Expression,
        mean: Expression = 0.0,
        precision: Expression = None,
        *,
        length: int | None = None,
        plates: Plates = (),
    ) -> None:
        where, size = f"'probability' of SpikeSlab '{name}'", None if length is None else int(length)
        included = _given(where, probability, as_plates(plates, name), OPEN_PROBABILITY, EACH_PROBABILITY)
        density = _of_inclusion(included.letters)
        self._state_entries(name, plates, ("probability", included, density), (mean, precision), size)

    @property
    def arguments(self) -> dict[str, Any]:
        """What it was stated with besides its name and plates."""
        return {**super().arguments, "length": self.dimension}

    def distribution_given(self, slots: Mapping[str, Any]) -> families.SpikeSlab:
        """Return the vector with these probabilities, means and precisions of the entries."""
        return families.SpikeSlab(
            *(self._of_entries(key, slots) for key in ("probability", "mean", "precision"))
        )
