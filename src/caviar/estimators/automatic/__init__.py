"""The number of components of a mixture found by splits, merges and deletions that raise the ELBO."""

from .move import Move
from .problem import Problem
from .search import Found, search

__all__ = ["Found", "Move", "Problem", "search"]
