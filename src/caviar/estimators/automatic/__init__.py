"""The number of components of a mixture found by splits, merges and deletions that raise the ELBO."""

from .best import best_search
from .columns import ColumnsProblem
from .move import Move
from .problem import Problem
from .sequences import SequenceProblem

__all__ = ["ColumnsProblem", "Move", "Problem", "SequenceProblem", "best_search"]
