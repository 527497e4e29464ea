"""Temporary files that killed processes leave behind: a lock marks those in use, all others are removed.

The system gives a lock up when the process that holds it ends, however it ends. So a temporary file whose lock can be
had is not used any more.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import IO

try:
    import fcntl
except ImportError:  # Windows, which does not remove a file that somebody has open
    fcntl = None


def hold(file: IO[bytes]) -> bool:
    """Lock an open file until it is closed, or this process ends; return False if it was removed meanwhile."""
    if fcntl is None:
        return True
    # a file system without locks, where nothing is ever swept
    with suppress(OSError):
        fcntl.flock(file.fileno(), fcntl.LOCK_EX)
    return os.fstat(file.fileno()).st_nlink > 0


def remove_if_abandoned(path: Path) -> bool:
    """Remove a file of this user that no process has locked; return whether it was removed."""
    if fcntl is None:
        with suppress(OSError):
            path.unlink()
            return True
        return False
    try:
        descriptor = os.open(path, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK)
    except OSError:
        return False
    try:
        if os.fstat(descriptor).st_uid != os.geteuid():
            return False
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        path.unlink()
    except OSError:
        return False
    else:
        return True
    finally:
        os.close(descriptor)


@cache
def sweep_once(folder: Path, pattern: str, remove: Callable[[Path], object]) -> None:
    """Hand what lies in a folder and matches a pattern to ``remove``, once in the life of this process."""
    with suppress(OSError):
        for path in sorted(folder.glob(pattern)):
            with suppress(OSError):
                remove(path)
