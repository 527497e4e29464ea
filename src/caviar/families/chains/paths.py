"""What all distributions of the paths of hidden sequences have."""

from __future__ import annotations

from typing import Any

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.categorical import Categorical
from caviar.numerics.cached import cached_property


class Sequences:
    """One or several sequences, one after the other.

    Attributes
    ----------
    starts
        Whether a sequence begins at a row, shape (N,); one begins at the first row in any case.
    """

    starts: Any

    @cached_property
    def _is_first(self) -> AnyArray:
        first = np.array(self.starts, dtype=bool)
        first[0] = True
        return first


class StatePaths(Sequences):
    """Sequences of states, one of K at each row.

    Attributes
    ----------
    probabilities
        Probability of each state at each row, shape (N, K).
    """

    probabilities: Any

    @property
    def mean(self) -> Array:
        """Mean of the one-hot states: the probabilities."""
        return self.probabilities

    @property
    def marginals(self) -> Categorical:
        """The marginal distribution of each state, a batch over the rows."""
        return Categorical(self.probabilities)
