"""Files of checkpoints: whole or not at all, refused in words where they are damaged, and never the end of a fit."""

import errno
import os
import shutil
import zipfile

import numpy as np
import pytest
from invariants.registry import CASES
from thinning import amount

import caviar as cv
from caviar import CheckpointError, CheckpointWarning, DataError
from caviar.engine.groups.side_by_side import SideBySide
from caviar.files import whole
from caviar.fitting import checkpointing
from caviar.storage import read_checkpoint, write_checkpoint
from checkpoint.comparing import Broken, after, assert_same_bits

pytestmark = pytest.mark.first_guess

CASE = CASES["joint"]
DATA = CASE.draw(np.random.default_rng(1), 120)
KNOWN = {"max_iter": 12, "tol": 0.0, "n_restarts": 2}


def fit(path=None, every=0.0, **arguments):
    return CASE.fit(DATA, **KNOWN, checkpoint=path, checkpoint_every=every, **arguments)


@pytest.fixture(scope="module", autouse=True)
def one_after_the_other():
    """Starts are made one after the other, as those of larger tables: a file may lie within the second."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(SideBySide, "of", lambda *arguments, **named: None)
        yield


@pytest.fixture(scope="module")
def undisturbed():
    return fit()


@pytest.fixture(scope="module")
def broken_off(tmp_path_factory):
    """The bytes of a checkpoint in the middle of the second start."""
    path = tmp_path_factory.mktemp("broken") / "run.ckpt"
    with pytest.raises(Broken):
        fit(path, progress=after(17))
    return path.read_bytes()


@pytest.fixture
def standing(broken_off, tmp_path):
    """Its file, for each test anew."""
    path = tmp_path / "run.ckpt"
    path.write_bytes(broken_off)
    return path


def refusal(path):
    before = path.read_bytes()
    with pytest.raises(CheckpointError) as caught:
        fit(path)
    assert path.read_bytes() == before, "a file that is refused stays as it is"
    return str(caught.value)


def test_a_truncated_file_is_refused(standing):
    whole = standing.read_bytes()
    for length in range(0, len(whole), amount(1_552, 97)):
        standing.write_bytes(whole[:length])
        message = refusal(standing)
        assert str(standing) in message
        assert "delete the file" in message


def test_a_changed_byte_is_refused_or_changes_nothing(standing, undisturbed):
    whole = standing.read_bytes()
    n_refused = 0
    for number, place in enumerate(range(0, len(whole), amount(796, 199))):
        changed = bytearray(whole)
        changed[place] ^= 1 << number % 8
        standing.write_bytes(changed)
        try:
            found = fit(standing)
        except CheckpointError:
            n_refused += 1
        else:
            # a byte that nothing is read from, as that of a date
            assert_same_bits(found, undisturbed)
    # a zip file of few parts has more bytes of dates and attributes among its own
    assert n_refused > 0.85 * number


@pytest.mark.parametrize("content", [b"", b"x,y\n1,2\n", b"PK\x03\x04" + bytes(50), os.urandom(5000)])
def test_other_files_are_refused_and_stay(content, tmp_path):
    path = tmp_path / "eruptions.csv"
    path.write_bytes(content)
    assert "choose another path" in refusal(path)


@pytest.mark.usefixtures("figures_of_factors")
def test_a_saved_model_is_no_checkpoint_and_a_checkpoint_no_saved_model(tmp_path, standing):
    mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(DATA["x"])
    mixture.save(tmp_path / "m.caviar")
    assert "BayesianGaussianMixture, and no checkpoint" in refusal(tmp_path / "m.caviar")
    with pytest.raises(DataError, match="Checkpoint"):
        cv.load(standing)


def changed(document, *path, to):
    """Return a document with another value at a path of keys and indices."""
    if not path:
        return to
    copy = dict(document) if isinstance(document, dict) else list(document)
    copy[path[0]] = changed(copy[path[0]], *path[1:], to=to)
    return copy


BROADCAST = {"kind": "array", "values": np.ones(1), "shape": [10**9, 10**9], "steps": [0, 0]}
OUTSIDE = {"kind": "array", "values": np.ones(2), "shape": [2], "steps": [10**12]}
BACKWARDS = {"kind": "array", "values": np.ones(2), "shape": [2], "steps": [-1]}


@pytest.mark.parametrize(
    ("place", "value"),
    [
        (("state",), []),
        (("state", "q"), []),
        (("state", "q", 0, 0), "variable nobody"),
        (("state", "q", 0, 1, "name"), "os.system"),
        (("state", "q", 0, 1, "kind"), "module"),
        (("state", "q", 0, 1, "held"), {"__class__": 1}),
        (("state", "q", 0, 1, "held"), {"sample": 1}),
        (("state", "arrays", 0, 0), "part 99"),
        (("state", "values"), np.zeros(1)),
        (("state", "values"), BROADCAST),
        (("state", "values"), OUTSIDE),
        (("state", "values"), BACKWARDS),
        (("state", "own", 0, 1), 0.5),
        (("state", "trace"), np.array([])),
        (("state", "memory"), {"nothing": 1}),
        (("state", "status"), "happy"),
        (("ends", "best", "status"), "happy"),
        (("ends", "best", "q"), None),
        (("ends", "n_ended"), "one"),
        (("ends",), None),
        (("belongs",), {}),
        (("entropy",), -1),
    ],
)
def test_made_up_contents_are_refused(place, value, standing):
    document = read_checkpoint(standing)
    assert document is not None
    write_checkpoint(standing, changed(document, *place, to=value))
    assert "damaged checkpoint" in refusal(standing)


def test_deep_contents_are_refused(standing):
    for depth in (300, 500, 5000, 200_000):
        deep = "[" * depth + "]" * depth
        text = f'{{"format": "caviar", "format_version": 1, "arrays": [], "class": "Checkpoint", "checkpoint": {deep}}}'
        with zipfile.ZipFile(standing, "w") as archive:
            archive.writestr("header.json", text)
        refusal(standing)


def test_checkpoints_of_other_versions_are_refused(standing, monkeypatch):
    monkeypatch.setattr(checkpointing, "__version__", "99.0")
    assert "and this is caviar 99.0" in refusal(standing)


def test_checkpoints_of_another_form_are_refused(standing, monkeypatch):
    monkeypatch.setattr(checkpointing, "_LAYOUT", 99)
    assert "in another form" in refusal(standing)


def test_a_full_disk_is_a_warning_and_the_checkpoint_before_stays(tmp_path, monkeypatch, undisturbed):
    path, n_calls = tmp_path / "run.ckpt", []

    def full(descriptor):
        n_calls.append(descriptor)
        # each writing waits for the file and for its folder
        if len(n_calls) > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(whole.os, "fsync", full)
    with pytest.warns(CheckpointWarning, match="No space left on device. The fit continues"):
        found = fit(path)
    assert_same_bits(found, undisturbed)
    monkeypatch.undo()
    assert [own.name for own in tmp_path.iterdir()] == ["run.ckpt"]
    iterations = []
    assert_same_bits(fit(path, progress=lambda event: iterations.append(event.iteration)), undisturbed)
    assert 1 < iterations[0] < 6


@pytest.mark.posix
def test_a_system_that_refuses_to_write_is_a_warning(standing, undisturbed):
    import resource

    before = standing.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.warns(CheckpointWarning, match=r"cannot write .*run\.ckpt"):
            found = fit(standing)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert_same_bits(found, undisturbed)
    assert standing.read_bytes() == before
    assert list(standing.parent.iterdir()) == [standing]


def test_a_folder_that_vanished_is_a_warning(tmp_path, undisturbed):
    folder = tmp_path / "scratch"
    folder.mkdir()

    def remove(event):
        if event.iteration == 3:
            shutil.rmtree(folder, ignore_errors=True)

    with pytest.warns(CheckpointWarning, match="there is no folder"):
        assert_same_bits(fit(folder / "run.ckpt", progress=remove), undisturbed)


@pytest.mark.posix
def test_a_path_that_cannot_be_written_is_told_before_the_first_iteration(tmp_path):
    for path in (tmp_path / "no" / "run.ckpt", "/dev/null", tmp_path):
        with pytest.raises((DataError, CheckpointError)) as caught:
            fit(path, progress=after(1))
        assert str(path) in str(caught.value)


def test_seconds_between_writings_are_kept(tmp_path, monkeypatch):
    written, clock = [], [0.0]
    monkeypatch.setattr(checkpointing.time, "monotonic", lambda: clock[0])
    real = checkpointing.write_checkpoint
    monkeypatch.setattr(
        checkpointing,
        "write_checkpoint",
        lambda path, document: written.append(clock[0]) or real(path, document),
    )

    def tick(event):
        clock[0] += 1.0

    fit(tmp_path / "a", every=5.0, progress=tick)
    # the first says that the path can be written, the last that the fit has ended
    assert written == [0.0, 5.0, 10.0, 15.0, 20.0, 24.0]


def test_writing_that_takes_long_is_done_less_often(tmp_path, monkeypatch):
    written, clock = [], [0.0]
    monkeypatch.setattr(checkpointing.time, "monotonic", lambda: clock[0])
    real = checkpointing.write_checkpoint

    def slowly(path, document):
        written.append(clock[0])
        real(path, document)
        clock[0] += 0.5

    monkeypatch.setattr(checkpointing, "write_checkpoint", slowly)

    def tick(event):
        clock[0] += 1.0

    fit(tmp_path / "a", every=2.0, progress=tick)
    assert len(written) == 4
    assert written[1] - written[0] >= 10.0


@pytest.mark.parametrize("every", [-1, float("nan"), "1 min", None, True])
def test_impossible_seconds_are_refused(every, tmp_path):
    with pytest.raises(cv.ParameterError, match="checkpoint_every must be a number of seconds"):
        fit(tmp_path / "c", every)


def test_impossible_paths_are_refused():
    with pytest.raises(cv.ParameterError, match="checkpoint must be the path of a file"):
        fit(3)
