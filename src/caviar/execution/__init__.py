"""Where blocks are mapped: in this process, over threads."""

from .threads import Threads, pairwise_sum

__all__ = ["Threads", "pairwise_sum"]
