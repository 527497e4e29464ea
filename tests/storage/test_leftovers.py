"""Temporary files of processes that were killed are removed by the next process; those in use stay."""

from __future__ import annotations

import subprocess
import sys

import pytest

from caviar.data.files.raw_file import Workspace
from caviar.files.leftovers import sweep_once
from caviar.files.whole import replacing

pytestmark = pytest.mark.posix

WRITER = """
import sys, time
from pathlib import Path
from caviar.files.whole import replacing
from caviar.data.files.raw_file import Workspace

folder = Path(sys.argv[1])
workspace = Workspace(folder)
(workspace.path / "rows").write_bytes(b"12345")
with replacing(folder / "model.caviar") as file:
    file.write(b"half a model")
    file.flush()
    print(workspace.path, flush=True)
    time.sleep(600)
"""


def started(folder):
    """Return a process in the middle of its writing, and the names that it uses in the folder."""
    before = set(folder.iterdir())
    process = subprocess.Popen([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    process.stdout.readline()
    return process, set(folder.iterdir()) - before


@pytest.mark.slow
def test_what_killed_processes_leave_is_swept_and_nothing_else(tmp_path):
    sweep_once.cache_clear()
    dead, left = started(tmp_path)
    alive, used = started(tmp_path)
    try:
        dead.kill()
        dead.wait()
        foreign = [tmp_path / ".notes.partial", tmp_path / "caviar-notes"]
        foreign[0].write_text("mine")
        foreign[1].mkdir()
        (foreign[1] / "thesis.txt").write_text("mine")
        assert all(path.exists() for path in left)
        workspace = Workspace(tmp_path)
        with replacing(tmp_path / "other.caviar") as file:
            file.write(b"1")
        assert len(left) == len(used) == 2
        assert not any(path.exists() for path in left)
        expected = {*used, *foreign, tmp_path / "other.caviar", workspace.path}
        assert set(tmp_path.iterdir()) == expected
    finally:
        for process in (dead, alive):
            process.kill()
            process.communicate(timeout=60)


def test_what_is_written_in_this_process_is_not_swept(tmp_path):
    sweep_once.cache_clear()
    first = Workspace(tmp_path)
    sweep_once.cache_clear()
    second = Workspace(tmp_path)
    assert first.path.is_dir()
    assert second.path.is_dir()
    with replacing(tmp_path / "a") as outer:
        sweep_once.cache_clear()
        with replacing(tmp_path / "b") as inner:
            inner.write(b"b")
        outer.write(b"a")
    assert (tmp_path / "a").read_bytes() == b"a"
