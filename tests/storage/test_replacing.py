"""A file is replaced whole or not at all, whatever happens on the way."""

import os
import signal
import subprocess
import sys

import pytest

from caviar import DataError
from caviar._files import replacing


@pytest.fixture
def old(tmp_path):
    path = tmp_path / "file"
    path.write_bytes(b"old")
    return path


def test_the_new_file_is_seen_at_the_end_and_whole(old):
    with replacing(old) as file:
        file.write(b"new" * 100_000)
        file.flush()
        assert old.read_bytes() == b"old"
    assert old.read_bytes() == b"new" * 100_000
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.parametrize("failure", [ValueError, KeyboardInterrupt, MemoryError])
def test_the_old_file_stays_when_writing_fails(old, failure):
    def write():
        with replacing(old) as file:
            file.write(b"ne")
            raise failure

    with pytest.raises(failure):
        write()
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


def test_a_full_disk_is_an_error_in_words(old):
    with pytest.raises(DataError, match=r"cannot write .*: No space left on device"), replacing(old):
        raise OSError(28, os.strerror(28))
    assert old.read_bytes() == b"old"


def test_the_old_file_stays_when_the_program_is_killed(old):
    program = """
import sys
from caviar._files import replacing
with replacing(sys.argv[1]) as file:
    file.write(b"ne")
    file.flush()
    print("writing", flush=True)
    sys.stdin.read()
"""
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE}
    with subprocess.Popen([sys.executable, "-c", program, str(old)], **pipes) as process:
        assert process.stdout is not None
        process.stdout.readline()
        process.send_signal(signal.SIGKILL)
    assert old.read_bytes() == b"old"


def test_the_file_behind_a_link_is_replaced_and_the_link_stays(old):
    link = old.with_name("link")
    link.symlink_to(old)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert old.read_bytes() == b"new"


def test_a_new_file_has_the_usual_permissions(tmp_path):
    with replacing(tmp_path / "new") as file:
        file.write(b"x")
    (tmp_path / "other").write_bytes(b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


def test_places_that_are_no_files_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "file", "/dev/null"):
        with pytest.raises(DataError, match="cannot write"), replacing(path):
            pass
