"""The distribution of a label whose factor has further labels of the row."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from caviar._errors import ParameterError
from caviar._typing import AnyArray, Array
from caviar.families.categorical import Categorical


class JointLabels(Categorical):
    """The Categorical of one label among several that share a factor: its own probabilities, and those of all together.

    Parameters
    ----------
    joint
        Probabilities of the combinations, rows first, then an axis for each label: (N, K, ...).
    names
        The labels, in the order of these axes.
    name
        The one whose probabilities these are.

    Attributes
    ----------
    probabilities
        Marginal probabilities of the label, shape (N, K).

    Examples
    --------
    >>> q = JointLabels(np.array([[[0.5, 0.1], [0.0, 0.4]]]), ("z", "v"), "v")
    >>> q.probabilities
    array([[0.5, 0.5]])
    >>> q.of("v", "z")
    array([[[0.5, 0. ],
            [0.1, 0.4]]])
    """

    joint: Array
    names: tuple[str, ...]
    name: str

    def __init__(self, joint: Array, names: tuple[str, ...], name: str) -> None:
        place = 1 + names.index(name)
        others = tuple(axis for axis in range(1, joint.ndim) if axis != place)
        super().__init__(joint.sum(axis=others))
        vars(self).update(joint=joint, names=names, name=name)

    def __getitem__(self, index: Any) -> Categorical:
        """Return the label by itself at ``index``, which may be anything that indexes an array."""
        return Categorical(self.probabilities)[index]

    @property
    def place(self) -> int:
        """Position of the label among those that share its factor."""
        return self.names.index(self.name)

    def given(self, values: Mapping[str, AnyArray]) -> Categorical:
        """Return the distribution of the label of each row given those before it in the factor, by name."""
        before = self.names[: self.place]
        joint = self.of(*before, self.name)
        chosen = joint[(np.arange(len(joint)), *(np.asarray(values[name]) for name in before))]
        return Categorical(chosen / chosen.sum(axis=-1, keepdims=True))

    def of(self, *names: str) -> Array:
        """Return the probabilities of the combinations of some of the labels, (N, K, ...), in this order.

        Raises
        ------
        ParameterError
            If a name is not one of these labels.
        """
        unknown = [name for name in names if name not in self.names]
        if unknown:
            raise ParameterError(
                f"'{unknown[0]}' shares no factor with '{self.name}'; those that do are {', '.join(self.names)}"
            )
        dropped = tuple(1 + place for place, own in enumerate(self.names) if own not in names)
        kept = [own for own in self.names if own in names]
        return np.moveaxis(
            self.joint.sum(axis=dropped), [1 + kept.index(n) for n in names], range(1, 1 + len(names))
        )
