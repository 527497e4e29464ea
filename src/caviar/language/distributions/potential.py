"""The Potential: a term of a user's own, a table of log densities over the categories of a label."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import softmax

from ... import families
from ..._errors import ConjugacyError, ModelError
from ..._typing import AnyArray, Array
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression, Indexed, Label
from ..nodes.plates import Plates
from ..nodes.roles import LABEL
from ..nodes.templates import template
from ..variable import Variable


class Potential(Variable):
    r"""A table of log densities for the categories of a label, computed outside of caviar.

    .. math:: \log p(x \mid z) = \sum_k [z = k]\, x_k

    The table is the data: one number for each repetition and category. So any distribution whose parameters are known
    for each category can be the component density of a mixture or hidden Markov model. A label can also represent a
    grid of values of a parameter.

    Parameters
    ----------
    name
        Name of the variable, unique within the model. Its data are the table, shape (sizes of the plates..., K).
    label
        A Categorical or a MarkovChain, or one indexed by another label, as ``phase[z]``.
    others
        Nothing: a table is over one label.
    plates
        Plates along which the variable is repeated.

    Raises
    ------
    ConjugacyError
        If ``label`` is not a label, or there are several.

    Notes
    -----
    Adding a constant to a row of the table adds it to the ELBO. For an impossible category use a very negative number,
    such as -1e10. A missing row is NaN throughout.

    Examples
    --------
    Three counts, each from one of two known distributions:

    >>> import numpy as np
    >>> from scipy.stats import geom, poisson
    >>> import caviar as cv
    >>> row, counts = cv.Plate("row"), np.array([0, 5, 6])
    >>> table = np.stack([geom(0.7).logpmf(counts + 1), poisson(5).logpmf(counts)], axis=1)
    >>> z = cv.Categorical("z", [0.5, 0.5], plates=row)
    >>> posterior = cv.Model(cv.Potential("table", z, plates=row)).fit({"table": table})
    >>> posterior.local({"table": table})["z"].probabilities.round(3)
    array([[0.99 , 0.01 ],
           [0.01 , 0.99 ],
           [0.003, 0.997]])
    """

    family = families.Categorical
    value_rank = 1
    instead_of_infinity: ClassVar[str] = "give an impossible category a very negative number, such as -1e10"
    letters: ClassVar = {"x": "k"}
    density = template((1, "label.x[k] self.x[k]"))

    def __init__(self, name: str, label: Expression, *others: Expression, plates: Plates = ()) -> None:
        if others:
            raise ConjugacyError(
                f"Potential '{name}' takes one label, not {len(others) + 1}. For a table over pairs of labels state "
                f"one Categorical of all pairs, and give the table with both axes in one, "
                f"table.reshape(len(table), -1)"
            )
        node = label.node if isinstance(label, Indexed) else label
        if not isinstance(node, Label):
            raise ConjugacyError(
                f"'label' of Potential '{name}' takes a Categorical or a MarkovChain, whose categories the table is "
                f"over; got {label!r}"
            )
        self._state(name, plates, {"label": (label, LABEL)}, dimension=node.categories)

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the log density of tables given the label; there is nothing to draw."""
        return Tables(self.name, np.asarray(slots["label"], dtype=np.intp))

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Refuse: a table is not a random number."""
        slots.refuse("its table of log densities is known, and contains nothing about new rows")

    def statistics_of(self, value: AnyArray) -> tuple[Array, ...]:
        """Return the table."""
        return (np.asarray(value, dtype=np.float64),)

    def statistic(self, name: str, value: AnyArray) -> Array:
        """Return the table."""
        return np.asarray(value, dtype=np.float64)

    def evened(self, value: Array) -> Array:
        """Return square roots of the probabilities of the categories if all were as probable before.

        So rows are as far apart as these distributions are by Hellinger's distance.
        """
        return np.sqrt(softmax(value, axis=-1))


@dataclass(frozen=True)
class Tables:
    """The log density of tables given labels.

    Attributes
    ----------
    name
        Of the variable.
    labels
        Of the batch shape.
    """

    name: str
    labels: AnyArray

    @property
    def batch_shape(self) -> tuple[int, ...]:
        """Shape of the labels."""
        return self.labels.shape

    def __getitem__(self, index: Any) -> Tables:
        """Return the part of the batch at ``index``."""
        return Tables(self.name, self.labels[index])

    def sample(self, size: int | tuple[int, ...] | None, seed: int | np.random.Generator | None) -> AnyArray:
        """Refuse: a table is given, and no draw."""
        raise ModelError(
            f"'{self.name}', a Potential, cannot be simulated: its table of log densities comes from the user. Give it "
            f"with given={{'{self.name}': ...}}"
        )

    def log_density(self, value: AnyArray) -> Array:
        """Return the entries of tables (..., K) at the labels."""
        labels = np.broadcast_to(self.labels, np.shape(value)[:-1])
        return np.take_along_axis(np.asarray(value, dtype=np.float64), labels[..., None], axis=-1)[..., 0]
