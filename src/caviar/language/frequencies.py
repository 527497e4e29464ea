"""Frequencies of the labels of a group, as a vector of predictors: what a response to a document depends on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, ClassVar

import numpy as np

from .. import families
from .._errors import ConjugacyError, ModelError, PlateError
from .._typing import Array
from .nodes.expected_slots import ExpectedSlots
from .nodes.node import Expression
from .nodes.roles import KNOWN_VECTOR, LABEL, one_hot
from .nodes.templates import template
from .outcomes.discrete import Categorical
from .variable import Variable

_WEIGHTS = replace(KNOWN_VECTOR, name="weights_of_labels", is_apart=True)


class Frequencies(Variable):
    r"""How often each category occurs among the labels of a group: the average of their indicators.

    .. math:: f_k = \sum_n w_n [z_n = k]

    It is a vector of predictors, for ``cv.dot(b, f)`` with a MultivariateNormal: the response of a supervised topic
    model depends on the frequencies of the topics in a document. Frequencies and labels are one factor, a product
    over the labels. Labels are updated one after another, each given the others, so no update lowers the ELBO.

    Parameters
    ----------
    name
        Unique within the model.
    labels
        A Categorical whose last plate runs over the labels of a group, and has a size.
    weights
        :math:`w`, a vector with a weight for each label, or Data with a vector for each group. By default all weights
        are equal. Pad groups of different sizes with labels of weight 0 and without observations below them; these
        have no effect.

    Raises
    ------
    ConjugacyError, PlateError
        If ``labels`` is not such a Categorical.

    Notes
    -----
    A pass takes O(N K²) a group of N labels of K categories. Mcauliffe and Blei (2007), "Supervised topic models".

    Examples
    --------
    >>> import caviar as cv
    >>> document, position, topic = cv.Plate("document"), cv.Plate("position", 3), cv.Plate("topic", 2)
    >>> words = cv.Constant("words", [[0.8, 0.1, 0.1], [0.1, 0.1, 0.8]], plates=topic)
    >>> theta = cv.Dirichlet("theta", np.ones(2), plates=document)
    >>> z = cv.Categorical("z", theta, plates=(document, position))
    >>> word = cv.Categorical("word", words[z], plates=(document, position))
    >>> b = cv.MultivariateNormal("b", np.zeros(2), np.eye(2) / 100)
    >>> y = cv.Normal("y", cv.dot(b, cv.Frequencies("f", z)), 4.0, plates=document)
    >>> data = {"word": [[0, 0, 1], [2, 2, 1], [0, 2, 0]], "y": [-3.0, 3.0, -1.0]}
    >>> cv.Model(word, y).fit(data)["b"].mean.round(1)
    array([-3.,  3.])
    """

    family = families.LabelFrequencies  # type: ignore[assignment]
    value_rank = 1
    letters: ClassVar = {"x": "k", "xx": "kl", "weight": "n"}
    # what the weights say is a natural parameter of the factor; its expected statistic is 0
    density = template((1, "weights.x[n] self.weight[n]"))
    takes_data = False
    is_anchored = True

    def __init__(self, name: str, labels: Expression, *, weights: Expression = None) -> None:
        if not isinstance(labels, Categorical):
            raise ConjugacyError(
                f"'labels' of Frequencies '{name}' takes a Categorical; got {labels!r}. Known labels have "
                f"known frequencies: pass these as Data, a vector for each group"
            )
        if len(labels.plates) < 2 or labels.plates[-1].size is None:
            raise PlateError(
                f"'labels' of Frequencies '{name}': the last plate of '{labels.name}' runs over the labels of a group "
                f"and has a size, as plates=(document, Plate('position', 50)); groups that are shorter are padded with "
                f"missing values (NaN) below, and weights of 0"
            )
        position = labels.plates[-1]
        size: Any = position.size
        self._state(
            name,
            labels.plates[:-1],
            {
                "labels": (labels, LABEL),
                "weights": (np.full(size, 1.0 / size) if weights is None else weights, _WEIGHTS),
            },
            dimension=labels.categories,
            along={"labels": position},
        )
        self.letter_sizes = {**self.letter_sizes, "n": size}

    @property
    def labels(self) -> Categorical:
        """The labels."""
        node: Any = self.slots["labels"].node
        return node

    @classmethod
    def state_again(cls, name: str, plates: Any, arguments: Mapping[str, Any]) -> Variable:
        """Return the variable with this name that has these :attr:`arguments`."""
        return cls(name, **arguments)

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the frequencies of known labels."""
        one = one_hot(self.dimension or 0, np.asarray(slots["labels"]))
        weights = np.broadcast_to(np.asarray(slots["weights"], dtype=np.float64), one.shape[:-1])
        return families.LabelFrequencies(weights, one, self.labels.name)

    def of_labels(self, probabilities: Array, known: Mapping[str, Any]) -> families.LabelFrequencies:
        """Return the frequencies of independent labels with these probabilities, (plates..., N, K).

        Parameters
        ----------
        known
            Name -> values of known arrays.
        """
        own = self.known("weights")
        weights = np.asarray(known[self.slots["weights"].node.name] if own is None else own, dtype=np.float64)
        return families.LabelFrequencies(
            np.broadcast_to(weights, probabilities.shape[:-1]), probabilities, self.labels.name
        )

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Refuse: frequencies follow from the labels."""
        slots.refuse("frequencies follow from the labels of their group")

    def settle(self, functions: Any) -> None:
        """Refuse functions of frequencies."""
        raise ModelError(f"'{self.name}' can only be in a dot product with a MultivariateNormal")
