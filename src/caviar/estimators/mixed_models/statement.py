r"""The model that a formula states.

.. math::
    y_n \sim p(y_n \mid x_n' \beta + \textstyle\sum_t z_{tn}' u_{t, g_t(n)}), \quad
    u_{tj} \sim N(0, \Sigma_t), \quad \beta \sim N(m, S)

With several correlated effects of a group, the precision :math:`\Sigma_t^{-1}` is a Wishart whose inverse scale is
learnt (Huang and Wand, 2013): the standard deviations have half-t priors, and each correlation is uniform.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..._errors import DataError
from ..._typing import Array
from ...fitting.model import Model
from ...language import Data, Gamma, MultivariateNormal, Normal, Plate, Wishart, diagonal, dot
from .columns import Rows, mean_and_sd
from .design import COMMON, INTERCEPT, Encoding, name_of, refuse_collinear, refuse_far, refuse_useless_groups
from .families import RESIDUAL, Family, free_name, half_t
from .formula import GroupTerm

MATRIX = "matrix of common effects"
"""The known values that these are multiplied with."""
OFFSET = "offset"
"""The known values that are added to the predictor as they are."""
_WIDE = 2.5
"""Standard deviation of the priors of coefficients, in units of the predictor for a standard deviation of a column."""

_EXACT = 1e-13
"""Share of the response, beyond the common effects, below which these explain it exactly."""

_DF, _DF_OF_ONE = 2.0, 4.0
"""Degrees of freedom of the half-t priors of standard deviations: of correlated effects, and of one effect."""


_PRECISION = "precision of "

AT_MEANS = "Intercept at the mean"
"""The name of intercepts where columns are far from zero."""


@dataclass(frozen=True, eq=False)
class Block:
    """Effects of groups with one covariance.

    Attributes
    ----------
    term
        The part of the formula.
    names
        Of its effects, (q,).
    label
        Name of the variable.
    is_centred
        Whether columns of slopes are centred; intercepts are then those at the means of the columns.
    """

    term: GroupTerm
    names: tuple[str, ...]
    label: str
    is_centred: bool = False

    @property
    def shown(self) -> tuple[str, ...]:
        """Names of its effects as tables have them."""
        own = AT_MEANS if self.is_centred else "Intercept"
        return tuple(own if name == "Intercept" else name for name in self.names)

    @property
    def precision(self) -> str:
        """Name of the variable of its precision."""
        return f"{_PRECISION}{self.label}"

    @property
    def is_intercept(self) -> bool:
        """Whether it is one number that is added to the predictor."""
        return self.names == ("Intercept",)

    @property
    def labels(self) -> str:
        """Name of the known groups of the rows."""
        return f"groups of {self.term.group}"

    @property
    def matrix(self) -> str:
        """Name of the known values that the effects are multiplied with."""
        return f"matrix of {self.label}"


@dataclass(frozen=True, eq=False)
class Design:
    """The rows of a table as a formula sees them.

    Attributes
    ----------
    data
        Name of known values -> array.
    names
        Of the common effects.
    blocks
        Effects of groups.
    is_new
        What the groups are called -> whether the fit did not have the group of each row.
    """

    data: Mapping[str, Any]
    names: tuple[str, ...]
    blocks: tuple[Block, ...]
    is_new: Mapping[str, Array]


def is_precision(name: str) -> bool:
    """Whether a variable is the precision of the effects of groups, or of the noise."""
    return name.startswith(_PRECISION) or name == RESIDUAL


def design_of(encoding: Encoding, rows: Rows, *, known: bool = True, may_lack: bool = False) -> Design:
    """Return the rows of a table.

    Parameters
    ----------
    known
        Whether groups of the fit are known; else all are new.
    may_lack
        Whether a row may lack its group, which is a new one then.
    """
    matrix, names = encoding.common(rows)
    data: dict[str, Any] = {MATRIX: matrix}
    offset = encoding.offset(rows)
    if offset is not None:
        data[OFFSET] = offset
    blocks: list[Block] = []
    is_new = {}
    for term in encoding.formula.groups:
        effects, own_names = encoding.matrix(term.effects, rows)
        effects = encoding.measured(name_of(term), effects, own_names)
        is_centred = bool(encoding.centres.get(name_of(term)))
        own = [replace(block, is_centred=is_centred) for block in _blocks(term, own_names)]
        data[own[0].labels], is_new[term.group] = encoding.places(term, rows, known=known, may_lack=may_lack)
        for block in own:
            columns = effects[:, [own_names.index(name) for name in block.names]]
            if not block.is_intercept:
                data[block.matrix] = columns if len(block.names) > 1 else columns[:, 0]
        blocks += own
    return Design(data, tuple(names), tuple(blocks), is_new)


def _blocks(term: GroupTerm, names: Sequence[str]) -> Sequence[Block]:
    """Return the effects of a term: together if they are correlated, or else one by one.

    Raises
    ------
    DataError
        If there are none.
    """
    if not names:
        raise DataError(f"({term.effects} | {term.group}) has no effects; write (1 | {term.group})")
    if term.correlated and len(names) > 1:
        return [Block(term, tuple(names), name_of(term))]
    return [Block(term, (name,), f"{'1' if name == 'Intercept' else name} | {term.group}") for name in names]


def check_design(design: Design, encoding: Encoding, is_noisy: bool) -> None:
    """Refuse matrices and groups that leave effects undetermined.

    Raises
    ------
    DataError
        If so; the message says which.
    """
    if not design.names:
        raise DataError("the formula has no common effects; add an intercept (1) or a column")
    refuse_collinear(design.data[MATRIX], design.names)
    refuse_far(design.data[MATRIX], design.names)
    for block in design.blocks:
        texts = design.data[block.labels]
        n_levels = len(encoding.groups[block.term.group])
        refuse_useless_groups(block.term, texts, n_levels, len(texts) if is_noisy else 0)
        if len(block.names) > 1:
            refuse_collinear(design.data[block.matrix], block.names)
        if not block.is_intercept:
            refuse_far(design.data[block.matrix].reshape(len(texts), -1), block.names)


def check_response(design: Design, name: str, y: Array) -> None:
    """Refuse a response of real numbers that leaves the noise undetermined.

    Raises
    ------
    DataError
        If its values are far from zero beside their spread, or the common effects explain it exactly.
    """
    refuse_far(y[:, None], [name])
    matrix, y = design.data[MATRIX], y - design.data.get(OFFSET, 0.0)
    if len(y) <= matrix.shape[1]:
        return
    unit = matrix / np.sqrt((matrix**2).mean(axis=0))
    left = y - unit @ np.linalg.lstsq(unit, y, rcond=None)[0]
    if np.linalg.norm(left) <= _EXACT * np.linalg.norm(y):
        raise DataError(
            f"the response '{name}' is a combination of the columns of the formula, "
            f"{', '.join(map(repr, design.names))}, without noise; there is nothing to estimate"
        )


def stated(
    design: Design, encoding: Encoding, family: Family, response: str, y: Array, weights: Array | None
) -> Model:
    """Return the model of the rows of a fit, with their weights if they have any."""
    offset = design.data.get(OFFSET)
    plate, unit = Plate(free_name("row", encoding.group_names)), family.scale(y, weights, offset)
    common = _common(
        design,
        unit,
        family.centre(y, weights, offset),
        weights,
        is_centred=bool(encoding.centres.get(COMMON)),
    )
    predictor: Any = dot(Data(MATRIX, plates=plate), common)
    if offset is not None:
        predictor = predictor + Data(OFFSET, plates=plate)
    plates = {name: Plate(name, names=own) for name, own in encoding.group_names.items()}
    labels: dict[str, Data] = {}
    for block in design.blocks:
        known = labels.setdefault(block.labels, Data(block.labels, plates=plate))
        predictor = predictor + _of_groups(
            block, design, plates[block.term.group], known, plate, unit, weights
        )
    return Model(family.leaf(response, predictor, plate, unit))


def _common(
    design: Design, unit: float, centre: float, weights: Array | None, *, is_centred: bool
) -> MultivariateNormal:
    """Return the common effects: slopes about 0, and the intercept at the mean of the columns about its centre."""
    matrix, names = design.data[MATRIX], design.names
    means, sds = mean_and_sd(matrix, weights)
    wide = _WIDE * unit
    precision = np.diag([(sd / wide) ** 2 if sd > 0 else wide**-2.0 for sd in sds])
    mean = np.zeros(len(names))
    if "Intercept" in names:
        place = names.index("Intercept")
        precision[place, place] = 0.0
        at_means = np.where(np.arange(len(names)) == place, 1.0, means)
        precision += np.outer(at_means, at_means) / wide**2
        mean[place] = centre
    shown = [AT_MEANS if is_centred and name == INTERCEPT else name for name in names]
    return MultivariateNormal(COMMON, mean, precision, names=shown)


def _of_groups(
    block: Block,
    design: Design,
    plate: Plate,
    labels: Data,
    row: Plate,
    unit: float,
    weights: Array | None,
) -> Any:
    """Return what a block adds to the predictor."""
    if len(block.names) > 1:
        _, sds = mean_and_sd(design.data[block.matrix], weights)
        scales = _WIDE * unit / np.where(sds > 0, sds, 1.0)
        effect = Plate(f"effect of {block.label}", len(scales))
        inverse_scale = Gamma(
            f"scale of {block.precision}", 0.5, 1.0 / (2.0 * _DF * scales**2), plates=effect
        )
        precision = Wishart(block.precision, _DF + len(scales) - 1.0, diagonal(inverse_scale))
        effects = MultivariateNormal(
            block.label, np.zeros(len(scales)), precision, plates=plate, names=list(block.names)
        )
        return dot(Data(block.matrix, plates=row), effects[labels])
    sd = 0.0 if block.is_intercept else float(mean_and_sd(design.data[block.matrix], weights)[1])
    precision = half_t(block.precision, _WIDE * unit / (sd if sd > 0 else 1.0), _DF_OF_ONE)
    effects = Normal(block.label, 0.0, precision, plates=plate)
    return effects[labels] if block.is_intercept else effects[labels] * Data(block.matrix, plates=row)
