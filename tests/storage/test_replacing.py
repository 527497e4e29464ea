"""A file is replaced whole or not at all, whatever happens on the way."""

import os
import stat
import subprocess
import sys

import pytest

from caviar import DataError
from caviar.files import whole
from caviar.files.whole import replacing


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
from caviar.files.whole import replacing
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
        process.kill()
    assert old.read_bytes() == b"old"


@pytest.mark.posix
def test_the_file_behind_a_link_is_replaced_and_the_link_stays(old):
    link = old.with_name("link")
    link.symlink_to(old)
    with replacing(link) as file:
        file.write(b"new")
    assert link.is_symlink()
    assert old.read_bytes() == b"new"


@pytest.mark.posix
def test_a_new_file_has_the_usual_permissions(tmp_path):
    with replacing(tmp_path / "new") as file:
        file.write(b"x")
    (tmp_path / "other").write_bytes(b"x")
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "other").stat().st_mode


@pytest.mark.posix
def test_places_that_are_no_files_are_refused(tmp_path):
    for path in (tmp_path, tmp_path / "no" / "file", "/dev/null"):
        with pytest.raises(DataError, match="cannot write"), replacing(path):
            pass


def test_a_file_that_somebody_reads_for_a_moment_is_replaced_on_windows(old, monkeypatch):
    attempts, really = [], os.replace

    def replace(source, target):
        attempts.append(source)
        if len(attempts) < 3:
            raise PermissionError(13, os.strerror(13))
        really(source, target)

    monkeypatch.setattr(whole, "os", WindowsLike(replace))
    with replacing(old) as file:
        file.write(b"new")
    assert len(attempts) == 3
    assert old.read_bytes() == b"new"


def test_a_file_that_is_held_open_stays_on_windows(old, monkeypatch):
    def refuse(source, target):
        raise PermissionError(13, os.strerror(13))

    monkeypatch.setattr(whole, "os", WindowsLike(refuse))
    monkeypatch.setattr(whole, "_WAITS", (0.0, 0.0))
    with pytest.raises(DataError, match=r"cannot write .*: Permission denied"), replacing(old) as file:
        file.write(b"new")
    assert old.read_bytes() == b"old"
    assert list(old.parent.iterdir()) == [old]


@pytest.mark.posix
def test_a_folder_that_cannot_be_flushed_has_the_new_file(old, monkeypatch):
    really = os.fsync

    def fsync(descriptor):
        if stat.S_ISDIR(os.fstat(descriptor).st_mode):
            raise OSError(22, os.strerror(22))
        really(descriptor)

    monkeypatch.setattr(whole.os, "fsync", fsync)
    with replacing(old) as file:
        file.write(b"new")
    assert old.read_bytes() == b"new"


class WindowsLike:
    """The module os as Windows has it, with another ``replace``."""

    name = "nt"

    def __init__(self, replace):
        self.replace = replace

    def __getattr__(self, name):
        return getattr(os, name)
