"""Damaged and made-up files: what bytes, archives, arrays and documents can be made into. The same number, the same file."""

from __future__ import annotations

import io
import json
import struct
import warnings
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

__all__ = ["bombs", "mutant"]

Entries = list[tuple[str, bytes]]

VALUES: list[Any] = [
    None, True, False, -1, 0, 1, 2, 10**9, 10**30, -(10**30), 0.5, 1e308, "", "x", "obs", "os.system", "__class__",
    "\u0000", "\u202e", "Normal", "NormalWishart", "StickBreaking", "Constant", [], {}, [[]], [None], ["x"], [1, 2],
    {"$array": "nope"}, {"$array": []}, {"$names": ["x"]}, {"$names": 3}, {"$tuple": [1]}, {"$float": "nan"},
    {"$float": "inf"}, {"$x": 1}, {"node": "x"}, {"node": "x", "by": "z"}, {"sum": []}, {"sum": [{"coefficient": 1}]},
    {"link": "probit", "sum": [{"coefficient": 1.0}]}, {"diagonal": "x"}, {"value": [1.0]}, {"point": 1.0},
]  # fmt: skip
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
        entries.append((f"more/{at}.npy", content) if rng.random() < 0.5 else (str(rng.choice(NAMES)), content))
    elif kind == 4:
        entries.insert(int(rng.integers(len(entries))), entries.pop(at))
    elif kind == 5:
        entries[at] = (name, content[: int(rng.integers(len(content)))])
    else:
        return archive(entries, int(rng.choice([zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])))
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
    except (ValueError, TypeError, MemoryError):
        # changed before
        return entries
    if array.dtype.kind not in "bif":
        return entries
    if kind in (2, 3) and array.size and array.dtype.kind == "f":
        array = array.copy()
        array.flat[int(rng.integers(array.size))] = rng.choice(NUMBERS)
    elif kind == 4:
        shapes = [(), (0,), (1,), (array.size,), (1, *array.shape), (*array.shape, 1), array.shape[::-1], (2, 2, 2)]
        array = np.resize(array, shapes[int(rng.integers(len(shapes)))])
    else:
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
        inner[str(rng.choice(["x", "$array", "kind", "node", "by", "sum", "point", "natural", "learnt"]))] = inner.pop(key)
    elif kind == 3 and isinstance(inner[key], list):
        inner[key] = inner[key] * int(rng.choice([2, 50]))
    else:
        inner[key] = VALUES[int(rng.integers(len(VALUES)))]
    text = json.dumps(document)
    if kind == 5 and ": 1" in text:
        text = text.replace(": 1", str(rng.choice([": 1e999", ": NaN", ": 00", ': "\\ud800"', ": 1" + "0" * 5000])), 1)
    entries[at] = ("header.json", text.encode())
    return entries


def bombs(content: bytes) -> Iterator[tuple[str, bytes]]:
    """Yield files that ask for far more than they hold, made from a saved one: what they are, and their bytes."""
    entries = entries_of(content)
    header = json.loads(dict(entries)["header.json"])
    rest = [entry for entry in entries if entry[0] != "header.json"]

    def with_text(text: bytes) -> bytes:
        return archive([("header.json", text), *rest])

    def with_document(**changes: Any) -> bytes:
        return with_text(json.dumps({**header, **changes}).encode())

    for size in (3_900_000, 20_000_000):
        yield f"a list of {size} bytes", with_text(b'{"format": "caviar", "x": [' + b"{}," * (size // 3) + b"1]}")
        yield f"a text of {size} bytes", with_text(b'{"format": "caviar", "x": "' + b"x" * size + b'"}')
    yield "deep lists", with_text(b'{"format": "caviar", "format_version": 2, "x": ' + b"[" * 100_000)
    deep = b'{"a":' * 900 + b"1" + b"}" * 900
    yield "deep document", with_text(json.dumps(header).encode()[:-1] + b', "deep": ' + deep + b"}")
    yield "many names", archive([*entries, *((f"a{i}.npy", b"") for i in range(60_000))])
    directory = bytearray(content)
    directory[-12:-8] = struct.pack("<HH", 65535, 65535)[:4]
    yield "many entries declared", bytes(directory)
    for field in (20, 24, 42):
        bomb = bytearray(content)
        where = bomb.rindex(b"PK\1\2") + field
        bomb[where : where + 4] = struct.pack("<I", 2**32 - 2)
        yield f"a size of 4 GB at {field}", bytes(bomb)
    yield "deflated zeros", archive([entries[0], ("x.npy", b"\0" * 50_000_000)], zipfile.ZIP_DEFLATED)
    yield "far too many nodes", with_document(model={
        "plates": [], "leaves": ["n0"], "nodes": [{"kind": "Data", "name": f"n{i}", "plates": []} for i in range(40_000)],
    })  # fmt: skip
    stick = {"kind": "StickBreaking", "plates": [], "slots": {"concentration": {"node": "c"}}, "truncation": 10**6}
    for kind in ("Model", "Posterior"):
        model = {"plates": [], "leaves": ["s0"], "nodes": [{**stick, "name": f"s{i}"} for i in range(5_000)]}
        yield f"many sticks in a {kind}", with_document(**{"class": kind, "model": model, "posterior": {"model": model}})
    operand = {"node": "a"}
    long = {"sum": [{"coefficient": 1.0, "numbers": [operand]}] * 5_000}
    sums = {"plates": [], "leaves": ["x"], "nodes": [
        {"kind": "Data", "name": "a", "plates": []},
        {"kind": "Normal", "name": "x", "plates": [], "slots": {"mean": long, "precision": {"node": "a"}}},
    ]}  # fmt: skip
    yield "a long sum", with_document(**{"class": "Model", "model": sums})
    plates = [{"name": f"p{i}", "size": None} for i in range(9_000)]
    names = [plate["name"] for plate in plates]
    wide = {"plates": plates, "leaves": ["x"], "nodes": [
        {"kind": "Data", "name": "a", "plates": names},
        {"kind": "Normal", "name": "x", "plates": names[::-1], "slots": {"mean": {"node": "a"}, "precision": {"node": "a"}}},
    ]}  # fmt: skip
    yield "many plates", with_document(**{"class": "Model", "model": wide})
    chain = [{"kind": "Data", "name": "n0", "plates": []}]
    for i in range(1, 3_000):
        slots = {"shape": {"node": "n0"}, "rate": {"node": f"n{i - 1}"}}
        chain.append({"kind": "Gamma", "name": f"n{i}", "plates": [], "slots": slots})
    yield "a deep hierarchy", with_document(**{"class": "Model", "model": {"plates": [], "leaves": ["n2999"], "nodes": chain}})
    large = np.zeros(300_000)
    buffer = io.BytesIO()
    np.save(buffer, large)
    for kind in ("Constant", "value"):
        shared = [{"kind": "Constant", "name": f"c{i}", "plates": [], "value": {"$array": "x"}} for i in range(3_000)]
        document = {"format": "caviar", "format_version": 2, "class": "Model", "arrays": ["x"],
                    "model": {"plates": [], "leaves": ["c0"], "nodes": shared}}  # fmt: skip
        yield f"one array many times ({kind})", archive([("header.json", json.dumps(document).encode()), ("x.npy", buffer.getvalue())])
