"""Hidden sequences of vectors: each state is a linear function of the one before, plus noise."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from .. import families
from .._errors import ConjugacyError, ModelError, PlateError
from .._typing import Array
from .algebra import Diagonal
from .constants import Constant, as_known
from .nodes import Expression, Indexed, Node
from .normals import MultivariateNormal
from .paths import StatePaths
from .plates import Plate
from .roles import BEGINNING, LINEAR_VECTOR, MATRIX, PRECISION, PRECISION_MATRIX
from .templates import LOG_2PI, template
from .variable import Variable

_FIRST = (
    (-1 / 2, "precision.x[ij] self.first_xx[ij]"),
    (1, "precision.x[ij] mean.x[i] self.first_x[j]"),
    (-1 / 2, "precision.x[ij] mean.xx[ij] self.n_first"),
    (1 / 2, "precision.log_det self.n_first"),
    (-1 / 2 * LOG_2PI, "self.n_first [i]"),
)
_STEPS = (
    (-1 / 2, "noise_precision.x[ij] self.residual_xx[ij]"),
    (1 / 2, "noise_precision.log_det self.n_steps"),
    (-1 / 2 * LOG_2PI, "self.n_steps [i]"),
)
_STEPS_BY_ROW = (
    (-1 / 2, "noise_precision.x[i] self.next_xx[ii]"),
    (1, "noise_precision.x[i] transition.x[ij] self.pairs[ji]"),
    (-1 / 2, "noise_precision.x[i] transition.xx[ijk] self.previous_xx[jk]"),
    (1 / 2, "noise_precision.log_x[i] self.n_steps"),
    (-1 / 2 * LOG_2PI, "self.n_steps [i]"),
)
_OF_FIRST = ("first_x", "first_xx", "n_first")


class LinearGaussianChain(Variable):
    r"""A sequence of hidden vectors, one for each row along a plate: the states of a linear dynamical system.

    .. math::
        s_1 \sim N(m_0, P_0^{-1}), \qquad s_t \mid s_{t-1} \sim N(A s_{t-1}, Q^{-1})

    It can be used like any vector: ``dot(w, s)``, or as the mean of a MultivariateNormal. The rows of the data are
    the steps, in order.

    Parameters
    ----------
    name
        Unique within the model.
    mean
        :math:`m_0`, the mean of the first state: vector of length D or MultivariateNormal.
    precision
        :math:`P_0`, the precision of the first state: array (D, D), Wishart, or ``diagonal(...)``.
    transition
        A: an array (D, D), or its rows, a MultivariateNormal with a plate of size D: row i has the coefficients
        of component i of a state.
    noise_precision
        Q, the precision of a state given the one before it: array (D, D), Wishart, or ``diagonal(...)`` of a Gamma
        with a plate of size D. If the rows of the transition are unknown it must be diagonal, so that they are
        independent.
    along
        The plate of the steps, which must be the data plate.
    starts
        Beginnings of sequences, as for :class:`MarkovChain`: 1 at the first row of each, 0 elsewhere, usually
        ``Data("starts", plates=along)``. By default all rows are one sequence.

    Notes
    -----
    The chain and the parameters are independent under q; inference within the chain is exact (Kalman filter and
    Rauch-Tung-Striebel smoother over each sequence). A row without observations is inferred from its neighbours.
    Rows after the last observation of their sequence, and sequences without observations, integrate to one and do
    not affect the fit; ``posterior.local`` forecasts them.

    If the transition is known, the density is computed from the residuals :math:`s_t - A s_{t-1}`. Otherwise it is
    computed from products of successive states, which loses digits if the noise is much smaller than the states.
    States are not centred automatically; centre columns that are far from zero.

    Examples
    --------
    >>> import numpy as np
    >>> from caviar import Normal, dot
    >>> time = Plate("time")
    >>> level = LinearGaussianChain("level", [0.0], [[0.01]], [[1.0]], [[4.0]], along=time)
    >>> Normal("x", dot([1.0], level), 1.0, plates=time)
    Normal('x', plates=(time))
    """

    family = families.MultivariateNormal
    value_rank = 1
    letters: ClassVar = {
        "x": "i",
        "xx": "ij",
        "first_x": "i",
        "first_xx": "ij",
        "previous_xx": "ij",
        "pairs": "ij",
        "next_xx": "ij",
        "residual_xx": "ij",
        "n_first": "",
        "n_steps": "",
    }
    density = template(*_FIRST, *_STEPS)
    density_by_row = template(*_FIRST, *_STEPS_BY_ROW)

    def __init__(
        self,
        name: str,
        mean: Expression,
        precision: Expression,
        transition: Expression,
        noise_precision: Expression,
        *,
        along: Plate,
        starts: Expression = None,
    ) -> None:
        arguments: dict[str, tuple[Any, Any]] = {
            "mean": (mean, LINEAR_VECTOR),
            "precision": (precision, PRECISION_MATRIX),
        }
        if starts is not None:
            arguments["starts"] = (starts, BEGINNING)
        rows = _plate_of_rows(name, transition)
        if rows is None:
            self.summed = (*_OF_FIRST, "residual_xx", "n_steps")
            arguments["transition"] = (_known_matrix(name, transition), MATRIX)
            arguments["noise_precision"] = (noise_precision, PRECISION_MATRIX)
            self._state(name, along, arguments)
        else:
            self.summed = (*_OF_FIRST, "previous_xx", "pairs", "next_xx", "n_steps")
            diagonal, plate = _as_diagonal(name, noise_precision, rows)
            arguments["transition"] = (transition, LINEAR_VECTOR)
            arguments["noise_precision"] = (diagonal, PRECISION)
            along_states = {"transition": rows, "noise_precision": plate}
            self._state(name, along, arguments, density=self.density_by_row, along=along_states)
            self.stated["noise_precision"] = Diagonal(diagonal)
        self._check()

    @classmethod
    def state_again(
        cls, name: str, plates: tuple[Plate, ...], arguments: Mapping[str, Any]
    ) -> LinearGaussianChain:
        """Return the chain along its one plate."""
        (along,) = plates
        return cls(name, along=along, **arguments)

    def _check(self) -> None:
        where = f"LinearGaussianChain '{self.name}'"
        if len(self.plates) != 1:
            raise PlateError(f"'{self.name}' runs along one plate, its steps; got plates {self.plates!r}")
        for slot in self.slots.values():
            known = self.known(slot.name)
            plates = [plate for plate in slot.node.plates if plate is not slot.along]
            if slot.name != "starts" and (plates or isinstance(slot.expression, Indexed)):
                raise PlateError(
                    f"'{slot.name}' of {where} must be the same for all steps; got {slot.node!r}"
                )
            if slot.along is not None and slot.along.size != self.dimension:
                raise PlateError(
                    f"'{slot.name}' of {where} needs a plate of size {self.dimension}, the length of a state; plate "
                    f"'{slot.along.name}' has size {slot.along.size}"
                )
            if slot.role in (PRECISION, PRECISION_MATRIX) and known is not None and not np.any(known):
                raise ModelError(
                    f"'{slot.name}' of {where} must be positive definite; it is 0, which is no distribution"
                )

    @property
    def density_plates(self) -> tuple[Plate, ...]:
        """None: what it is stated in are sums over the steps."""
        return ()

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of its states given values of its parameters."""
        return StatePaths(
            slots["mean"][0],
            slots["precision"][0],
            slots["transition"].reshape(self.dimension or 1, -1),
            slots["noise_precision"][0],
            np.asarray(slots.get("starts", [False]), dtype=bool),
        )


def _plate_of_rows(name: str, transition: Expression) -> Plate | None:
    """Return the plate that the rows of an unknown transition run over, or None of a known matrix."""
    where = f"'transition' of LinearGaussianChain '{name}'"
    if isinstance(transition, Constant) and not transition.plates:
        return None
    if not isinstance(transition, Node | Indexed):
        return None
    if not isinstance(transition, MultivariateNormal):
        raise ConjugacyError(
            f"{where} cannot be {transition!r}: it is an array (D, D), or its rows, a MultivariateNormal with a plate "
            f"of size D"
        )
    if len(transition.plates) != 1:
        raise PlateError(
            f"{where} is given by its rows: MultivariateNormal '{transition.name}' needs one plate, of size D; it has "
            f"{len(transition.plates)}"
        )
    return transition.plates[0]


def _known_matrix(name: str, transition: Expression) -> Array:
    where = f"'transition' of LinearGaussianChain '{name}'"
    if transition is None:
        raise ModelError(f"{where} is missing: give an array (D, D), or a MultivariateNormal for its rows")
    value = transition.value if isinstance(transition, Constant) else as_known(transition, where)
    if value.ndim != 2 or value.shape[0] != value.shape[1]:
        raise PlateError(f"{where} must be a square matrix, not of shape {value.shape}")
    return value


def _as_diagonal(name: str, noise_precision: Expression, rows: Plate) -> tuple[Node, Plate]:
    """Return the diagonal of the noise's precision, with the plate that it runs over."""
    where = f"'noise_precision' of LinearGaussianChain '{name}'"
    remedy = (
        f"must be diagonal where the transition is unknown, so that its rows are independent: give diagonal(q) with a "
        f"Gamma 'q' over plate '{rows.name}', or a known diagonal matrix"
    )
    if isinstance(noise_precision, Diagonal):
        node = noise_precision.entries
        if not isinstance(node, Node) or len(node.plates) != 1:
            raise PlateError(f"{where} takes diagonal(...) of one plate, of size D; got {node!r}")
        return node, node.plates[0]
    if noise_precision is None or isinstance(noise_precision, Node | Indexed):
        raise ConjugacyError(f"{where} {remedy}; got {noise_precision!r}")
    value = as_known(noise_precision, where)
    if value.ndim != 2 or value.shape != (rows.size, rows.size):
        raise PlateError(f"{where} must be a {rows.size} x {rows.size} matrix, not of shape {value.shape}")
    if np.any(value != np.diag(value.diagonal())):
        raise ConjugacyError(f"{where} {remedy}")
    return Constant(f"{name}.noise_precision", value.diagonal(), plates=rows), rows
