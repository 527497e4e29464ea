"""Where blocks are mapped: in this process, over threads; over the workers of a cluster; or on an accelerator."""

from .connection import is_client
from .dask import DaskExecutor
from .device import Device
from .threads import Threads

__all__ = ["DaskExecutor", "Device", "Threads", "is_client"]
