"""Damaged and made-up files: what bytes, archives, arrays and documents can be made into, each by its number."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["archive", "entries_of", "mutant", "places"]

Entries = list[tuple[str, bytes]]

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 10**9, 10**30, -(10**30), 0.5, 1e308, "", "x", "obs", "os.system", "__class__",
    "\u0000", "\u202e", "Normal", "NormalWishart", "StickBreaking", "Constant", [], {}, [[]], [None], ["x"], [1, 2],
    {"$array": "nope"}, {"$array": []}, {"$names": ["x"]}, {"$names": 3}, {"$tuple": [1]}, {"$float": "nan"},
    {"$float": "inf"}, {"$x": 1}, {"node": "x"}, {"node": "x", "by": "z"}, {"sum": []}, {"sum": [{"coefficient": 1}]},
    {"link": "probit", "sum": [{"coefficient": 1.0}]}, {"diagonal": "x"}, {"value": [1.0]}, {"point": 1.0},
]  # fmt: skip
KEYS = ["x", "$array", "kind", "node", "by", "sum", "point", "natural", "learnt"]
TEXTS = [": 1e999", ": NaN", ": 00", ': "\\ud800"', ": 1" + "0" * 5000]
NUMBERS = [np.nan, np.inf, -np.inf, 0.0, -0.0, -1.0, 1e308, -1e308, 5e-324, 1e-300, 1e300, 0.5, 3.0]
NAMES = [
    "../x.npy", "/etc/passwd", "..\\x.npy", "x.pkl", "header.json", "x\0.npy", "a" * 300 + ".npy", "ü.npy", "",
    "con.npy", "./x.npy", "a//b.npy", "x.npy/../../y.npy", "a/../x.npy",
]  # fmt: skip
DESCRS = ["|O", "<U9", "<c16", "<f2", ">f8", "<i8", "|b1", "<f4", "<V8", "('<f8', (2,))", "<M8[s]", "|u1"]
SHAPES = [
    "()", "(1,)", "(0,)", "(-1,)", "(1000000000000,)", "(99999999999999999999,)", "(0, 4611686018427387904)",
    "(" + "1, " * 70 + ")", "(2, 2)", "(1, 1)", "(3, 1)", "(True,)", "(__import__('os').getpid(),)", "(1e3,)",
]  # fmt: skip


def mutant(content: bytes, number: int) -> bytes:
    """Return a damaged or made-up copy of a saved file."""
    rng = np.random.default_rng([77, number])
    kind = number % 5
    if kind in (0, 1):
        return _changed_bytes(content, rng)
    entries = entries_of(content)
    if kind == 2:
        return _changed_archive(entries, rng)
    changed = _changed_arrays if kind == 3 else _changed_document
    for _ in range(int(rng.integers(1, 3))):
        entries = changed(entries, rng)
    return archive(entries)


def entries_of(content: bytes) -> Entries:
    """Return names and contents of an archive."""
    with zipfile.ZipFile(io.BytesIO(content)) as file:
        return [(name, file.read(name)) for name in file.namelist()]


def archive(entries: Entries, compression: int = zipfile.ZIP_STORED, **more: Any) -> bytes:
    """Return an archive of these entries, as it is written."""
    buffer = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(buffer, "w", compression, **more) as file:
        # of two entries of one name
        warnings.simplefilter("ignore")
        for name, content in entries:
            file.writestr(zipfile.ZipInfo(name), content, compression)
    return buffer.getvalue()


def _changed_bytes(content: bytes, rng: np.random.Generator) -> bytes:
    at, length = int(rng.integers(len(content))), int(rng.integers(1, 60))
    # what tells where things are stands at the end
    at = at if rng.random() < 0.6 else max(0, len(content) - int(rng.integers(1, 2500)))
    kind = int(rng.integers(7))
    if kind == 0:
        return content[:at]
    if kind == 1:
        return content[:at] + bytes([content[at] ^ (1 << int(rng.integers(8)))]) + content[at + 1 :]
    if kind == 2:
        return content[:at] + rng.bytes(length) + content[at + length :]
    if kind == 3:
        return content[:at] + content[at + length :]
    if kind == 4:
        return content[: at + length] + content[at:]
    if kind == 5:
        word = struct.pack("<I", int(rng.choice([0, 1, 2**16, 2**31, 2**32 - 1])))
        return content[:at] + word + content[at + 4 :]
    return rng.bytes(length) + content if rng.random() < 0.5 else content + rng.bytes(length)


def _changed_archive(entries: Entries, rng: np.random.Generator) -> bytes:
    kind, at = int(rng.integers(7)), int(rng.integers(len(entries)))
    name, content = entries[at]
    if kind == 0:
        entries[at] = (str(rng.choice(NAMES)), content)
    elif kind == 1:
        del entries[at]
    elif kind == 2:
        other = int(rng.integers(len(entries)))
        entries[at], entries[other] = (name, entries[other][1]), (entries[other][0], content)
    elif kind == 3:
        new = f"more/{at}.npy" if rng.random() < 0.5 else str(rng.choice(NAMES))
        entries.append((new, content))
    elif kind == 4:
        entries.insert(int(rng.integers(len(entries))), entries.pop(at))
    elif kind == 5:
        entries[at] = (name, content[: int(rng.integers(len(content)))])
    else:
        kinds = [zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
        return archive(entries, int(rng.choice(kinds)))
    return archive(entries)


def _changed_arrays(entries: Entries, rng: np.random.Generator) -> Entries:
    """Return entries with a number, the shape, the type or the header of one array changed."""
    arrays = [i for i, (name, _) in enumerate(entries) if name.endswith(".npy")]
    at = int(rng.choice(arrays))
    name, content = entries[at]
    kind = int(rng.integers(6))
    if kind in (0, 1):
        text = content[10 : content.index(b"\n") + 1].decode("latin-1")
        if "'descr': " not in text or ")" not in text:
            return entries
        start = text.index("(") if kind == 0 else text.index("'descr': ") + 9
        end = text.index(")") + 1 if kind == 0 else text.index(",", start)
        new = str(rng.choice(SHAPES)) if kind == 0 else repr(str(rng.choice(DESCRS)))
        body = (text[:start] + new + text[end:]).encode("latin-1")
        rest = content[content.index(b"\n") + 1 :]
        entries[at] = (name, content[:8] + struct.pack("<H", len(body)) + body + rest)
        return entries
    try:
        array = np.load(io.BytesIO(content), allow_pickle=False)
    except (ValueError, TypeError, MemoryError, OverflowError):
        # changed before
        return entries
    if array.dtype.kind not in "bif":
        return entries
    if kind in (2, 3) and array.size and array.dtype.kind == "f":
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = rng.choice(NUMBERS)
    elif kind == 4:
        shapes = [(), (0,), (1,), (2, 2, 2), (array.size,), array.shape[::-1]]
        shapes += [(1, *array.shape), (*array.shape, 1)]
        array = np.resize(array, shapes[int(rng.integers(len(shapes)))])
    else:
        with np.errstate(all="ignore"):
            array = array.astype(str(rng.choice(["f4", "i8", "i4", "?", "f8"])))
    buffer = io.BytesIO()
    np.lib.format.write_array(buffer, np.asarray(array), version=(1, 0))
    entries[at] = (name, buffer.getvalue())
    return entries


def places(value: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Yield the path of everything inside nested lists and dictionaries."""
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


def _changed_document(entries: Entries, rng: np.random.Generator) -> Entries:
    at = next(i for i, (name, _) in enumerate(entries) if name == "header.json")
    try:
        document = json.loads(entries[at][1])
    except ValueError:
        # changed before
        return entries
    paths = list(places(document))
    path = paths[int(rng.integers(len(paths)))]
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    kind, key = int(rng.integers(6)), path[-1]
    if kind == 0:
        del inner[key]
    elif kind == 1:
        other = paths[int(rng.integers(len(paths)))]
        value = document
        for step in other:
            value = value[step]
        inner[key] = json.loads(json.dumps(value))
    elif kind == 2 and isinstance(inner, dict):
        inner[str(rng.choice(KEYS))] = inner.pop(key)
    elif kind == 3 and isinstance(inner[key], list):
        inner[key] = inner[key] * int(rng.choice([2, 50]))
    else:
        inner[key] = VALUES[int(rng.integers(len(VALUES)))]
    text = json.dumps(document)
    if kind == 5 and ": 1" in text:
        text = text.replace(": 1", str(rng.choice(TEXTS)), 1)
    entries[at] = ("header.json", text.encode())
    return entries
