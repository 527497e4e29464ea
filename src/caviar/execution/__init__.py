"""Where blocks are mapped: in this process, over threads; or over the workers of a cluster."""

from .connection import is_client
from .dask import DaskExecutor
from .threads import Threads

__all__ = ["DaskExecutor", "Threads", "is_client"]
