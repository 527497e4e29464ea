"""Where blocks are mapped: over threads of this process, or on an accelerator."""

from .device import Device
from .threads import Threads

__all__ = ["Device", "Threads"]
