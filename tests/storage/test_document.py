"""What is written is read again bit by bit; a file that is cut, changed or made up is refused, and runs nothing."""

import json
import pickle
import struct
import zipfile
import zlib

import numpy as np
import pytest
from thinning import amount

from caviar import DataError
from caviar.storage import read, write

HEADER = {
    "class": "Mixture",
    "parameters": {"n": 3, "tol": 1e-8, "names": ["a", "ä"], "none": None, "yes": True},
}
ARRAYS = {
    "means": np.random.default_rng(0).normal(size=(3, 2)),
    "labels": np.arange(5),
    "mask": np.array([True, False]),
    "scalar": np.array(2.5),
    "empty": np.empty((0, 4)),
    "f/deep": np.asfortranarray(np.arange(6, dtype=np.float32).reshape(2, 3)),
    "special": np.array([np.inf, -np.inf, np.nan, -0.0]),
}


@pytest.fixture
def saved(tmp_path):
    path = tmp_path / "m.caviar"
    write(path, HEADER, ARRAYS)
    return path


def refusal(path):
    """Return the message with which a file is refused."""
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(path) in str(caught.value)
    return str(caught.value)


def assert_same(contents):
    header, arrays = contents
    assert {key: header[key] for key in HEADER} == HEADER
    assert arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        assert arrays[name].dtype == array.dtype
        np.testing.assert_array_equal(arrays[name], array)


def test_what_is_written_is_read_again(saved):
    assert_same(read(saved))
    assert all(array.flags.writeable for array in read(saved)[1].values())


def test_the_same_contents_are_the_same_bytes(saved, tmp_path):
    write(tmp_path / "again.caviar", HEADER, ARRAYS)
    assert saved.read_bytes() == (tmp_path / "again.caviar").read_bytes()


def test_numpy_opens_the_arrays(saved):
    with np.load(saved, allow_pickle=False) as arrays:
        np.testing.assert_array_equal(arrays["means"], ARRAYS["means"])


@pytest.mark.parametrize(
    ("header", "arrays"),
    [
        ({"x": np.inf}, {}),
        ({"x": object()}, {}),
        ({}, {"objects": np.array([object()])}),
        ({}, {"texts": np.array(["a"])}),
        ({}, {"../escape": np.zeros(1)}),
    ],
)
def test_what_cannot_be_stored_is_refused_and_leaves_the_old_file(saved, header, arrays):
    before = saved.read_bytes()
    with pytest.raises((TypeError, ValueError)):
        write(saved, header, arrays)
    assert saved.read_bytes() == before
    assert list(saved.parent.iterdir()) == [saved]


def mutations(content, count, rng):
    """Yield damaged copies: cut short, bytes changed, bits flipped, pieces dropped, doubled or swapped."""
    for number in range(count):
        kind, at = number % 6, int(rng.integers(len(content)))
        length = int(rng.integers(1, 40))
        if kind == 0:
            yield content[:at]
        elif kind == 1:
            yield content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
        elif kind == 2:
            yield content[:at] + rng.bytes(length) + content[at + length :]
        elif kind == 3:
            yield content[:at] + content[at + length :]
        elif kind == 4:
            yield content[: at + length] + content[at:]
        else:
            yield content[:at] + struct.pack("<I", int(rng.choice([0, 2**31, 2**32 - 1]))) + content[at + 4 :]


def test_damaged_files_are_refused_or_read_as_they_were(saved):
    content = saved.read_bytes()
    refused, n_files = 0, amount(300, 2400)
    for damaged in mutations(content, n_files, np.random.default_rng(1)):
        saved.write_bytes(damaged)
        try:
            contents = read(saved)
        except DataError:
            refused += 1
        else:
            # Only what says nothing about the contents (times, attributes, comments) may change unnoticed.
            assert_same(contents)
    assert refused > 0.625 * n_files


def archive(path, entries, compression=zipfile.ZIP_STORED):
    """Write a zip archive with these entries."""
    with zipfile.ZipFile(path, "w", compression) as file:
        for name, content in entries:
            file.writestr(name, content)
    return path


GOOD = ("header.json", json.dumps({"format": "caviar", "format_version": 1, "arrays": ["x"]}))


def npy(descr="<f8", shape="(1,)", data=b"\0" * 8, fortran="False"):
    text = f"{{'descr': {descr!r}, 'fortran_order': {fortran}, 'shape': {shape}, }}\n".encode()
    return b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + data


def test_a_made_up_array_of_the_right_form_is_read(tmp_path):
    _, arrays = read(archive(tmp_path / "m", [GOOD, ("x.npy", npy())]))
    assert arrays["x"].tolist() == [0.0]


@pytest.mark.parametrize(
    "content",
    [
        npy(shape="(1000000000000,)"),
        npy(shape="(10, 10)", data=b"\0" * 8),
        npy(shape="(0, " + "9" * 300 + ")", data=b""),
        npy(descr="|O"),
        npy(descr="<U1"),
        npy(shape="__import__('os').system('true')"),
        npy(descr="<f8', 'x': '"),
        b"\x93NUMPY\x02\x00" + npy()[8:],
        b"",
        pickle.dumps([1, 2, 3]),
    ],
)
def test_made_up_arrays_are_refused(tmp_path, content):
    assert "array" in refusal(archive(tmp_path / "m", [GOOD, ("x.npy", content)]))


@pytest.mark.parametrize(
    "header",
    [
        "[]",
        "{}",
        "{",
        '{"format": "caviar"}',
        '{"format": "caviar", "format_version": "1"}',
        '{"format": "caviar", "format_version": 1, "arrays": ["missing"]}',
        '{"format": "other"}',
        '{"format": "caviar", "x": NaN}',
        "[" * 100_000,
        '{"format": "caviar", "x": ' + "9" * 10_000 + "}",
        b"\xff\xfe",
    ],
)
def test_made_up_headers_are_refused(tmp_path, header):
    refusal(archive(tmp_path / "m", [("header.json", header)]))


def test_what_inflates_is_refused_before_it_is_read(tmp_path):
    bomb = archive(tmp_path / "bomb", [GOOD, ("x.npy", npy(data=b"\0" * 10_000_000))], zipfile.ZIP_DEFLATED)
    assert bomb.stat().st_size < 100_000
    assert "compressed" in refusal(bomb)
    # The same bytes claimed again and again by overlapping entries.
    path = archive(tmp_path / "overlap", [GOOD, ("x.npy", npy(data=b"\0" * 1_000_000))])
    content = bytearray(path.read_bytes())
    size = content.rindex(b"x.npy") - 46 + 20
    for offset in (size, size + 4):
        content[offset : offset + 4] = struct.pack("<I", 2**31)
    path.write_bytes(content)
    assert "claim more bytes" in refusal(path)


@pytest.mark.parametrize(
    "name", ["../x.npy", "a/../x.npy", "a//x.npy", "/etc/x.npy", "x.pkl", "x", "a\\b.npy"]
)
def test_other_entries_are_refused(tmp_path, name):
    assert "entry" in refusal(archive(tmp_path / "m", [GOOD, (name, npy())]))


def test_other_files_are_refused(tmp_path):
    assert "there is no file" in refusal(tmp_path / "nope.caviar")
    assert "cannot read" in refusal(tmp_path)
    for content in (b"", b"a,b\n1,2\n", zlib.compress(b"x" * 1000), pickle.dumps({"a": 1})):
        path = tmp_path / "other.caviar"
        path.write_bytes(content)
        assert "is not a model saved by caviar" in refusal(path)
    assert "no header.json" in refusal(archive(tmp_path / "other.npz", [("x.npy", npy())]))


def test_files_of_later_versions_are_named_as_such(tmp_path):
    text = json.dumps({"format": "caviar", "format_version": 99, "caviar_version": "7.0"})
    message = refusal(archive(tmp_path / "m", [("header.json", text)]))
    assert "written by caviar 7.0" in message
    assert "Install a later caviar" in message
