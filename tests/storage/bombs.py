"""Files that ask for far more than they hold: of memory, of time, of the stack."""

from __future__ import annotations

import io
import json
import struct
import zipfile
from collections.abc import Iterator
from typing import Any

import numpy as np

from storage.mutants import archive, entries_of

__all__ = ["bombs"]


def bombs(content: bytes, *, every: bool) -> Iterator[tuple[str, bytes]]:
    """Yield what each is, and its bytes, made from a saved file.

    With ``every`` a statement that costs too much is one of a model and one of a posterior, otherwise of one in turn;
    and there is more than one size or depth of a kind.
    """
    yield from _of_containers(content, every=every)
    entries = entries_of(content)
    header = json.loads(dict(entries)["header.json"])
    rest = [entry for entry in entries if entry[0] != "header.json"]

    def with_text(text: bytes) -> bytes:
        return archive([("header.json", text), *rest])

    for size in (3_900_000, 20_000_000)[: 1 + every]:
        start = b'{"format": "caviar", "format_version": 2, "x": '
        yield f"lists of {size} bytes", with_text(start + b"[" + b"{}," * (size // 3) + b"1]}")
        yield f"a text of {size} bytes", with_text(start + b'"' + b"x" * size + b'"}')
    yield "deep lists", with_text(b'{"format": "caviar", "format_version": 2, "x": ' + b"[" * 100_000)
    for depth in (300, 900, 3_000) if every else (900,):
        deep = b'{"a":' * depth + b"1" + b"}" * depth
        yield f"{depth} levels", with_text(json.dumps(header).encode()[:-1] + b', "deep": ' + deep + b"}")
    for number, (what, model) in enumerate(_statements()):
        for kind in ("Model", "Posterior") if every else (("Model", "Posterior")[number % 2],):
            document = {**header, "class": kind, "model": model, "posterior": {"model": model}}
            yield f"{what} in a {kind}", with_text(json.dumps(document).encode())
    yield "one array many times", _one_array_for_all()


def _of_containers(content: bytes, *, every: bool) -> Iterator[tuple[str, bytes]]:
    entries = entries_of(content)
    yield "many names", archive([*entries, *((f"a{i}.npy", b"") for i in range(60_000 if every else 15_000))])
    changed = bytearray(content)
    changed[-14:-10] = struct.pack("<HH", 65535, 65535)
    yield "many entries declared", bytes(changed)
    for field in (20, 24, 42):
        changed = bytearray(content)
        where = changed.rindex(b"PK\1\2") + field
        changed[where : where + 4] = struct.pack("<I", 2**32 - 2)
        yield f"4 GB at {field}", bytes(changed)
    for method in (zipfile.ZIP_DEFLATED, zipfile.ZIP_LZMA)[: 1 + every]:
        yield f"zeros ({method})", archive([*entries, ("x.npy", b"\0" * 30_000_000)], method)
        zeros = [("header.json", b" " * 30_000_000), *entries[1:]]
        yield f"a header of blanks ({method})", archive(zeros, method)


def _statements() -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield statements that cost more than they are long."""

    def stated(nodes: list[dict[str, Any]], leaf: str, plates: list[str] = []) -> dict[str, Any]:  # noqa: B006
        sized = [{"name": name, "size": None} for name in plates]
        return {"plates": sized, "nodes": nodes, "leaves": [leaf]}

    def data(name: str, plates: list[str] = []) -> dict[str, Any]:  # noqa: B006
        return {"kind": "Data", "name": name, "plates": plates}

    def variable(kind: str, name: str, plates: list[str] = [], **slots: Any) -> dict[str, Any]:  # noqa: B006
        return {"kind": kind, "name": name, "plates": plates, "slots": slots}

    a = {"node": "a"}
    yield "many nodes", stated([data(f"n{i}") for i in range(40_000)], "n0")
    sticks = [
        {**variable("StickBreaking", f"s{i}", concentration=a), "truncation": 10**6} for i in range(3_000)
    ]
    yield "many sticks", stated([data("a"), *sticks], "s0")
    long = {"sum": [{"coefficient": 1.0, "numbers": [a]}] * 5_000}
    yield "a long sum", stated([data("a"), variable("Normal", "x", mean=long, precision=a)], "x")
    several = [variable("Normal", f"x{i}", mean={"sum": long["sum"][:90]}, precision=a) for i in range(60)]
    yield "many sums", stated([data("a"), *several], "x0")
    names = [f"p{i}" for i in range(9_000)]
    wide = [data("a", names), variable("Normal", "x", names[::-1], mean=a, precision=a)]
    yield "many plates", stated(wide, "x", names)
    chain = [
        variable("Gamma", f"n{i}", shape={"node": "n0"}, rate={"node": f"n{i - 1}"}) for i in range(1, 3_000)
    ]
    yield "a deep hierarchy", stated([data("n0"), *chain], "n2999")


def _one_array_for_all() -> bytes:
    buffer = io.BytesIO()
    np.save(buffer, np.zeros(300_000))
    nodes = [
        {"kind": "Constant", "name": f"c{i}", "plates": [], "value": {"$array": "x"}} for i in range(3_000)
    ]
    model = {"plates": [], "leaves": ["c0"], "nodes": nodes}
    document = {"format": "caviar", "format_version": 2, "class": "Model", "arrays": ["x"], "model": model}
    return archive([("header.json", json.dumps(document).encode()), ("x.npy", buffer.getvalue())])
