"""List what differs between two sources: ``compare.py OLD_SRC NEW_SRC [-k REGEX] [--quick] [--threads N]``.

Both run here, one after the other, each in a process of its own. With ``--threads`` the new one runs on so many
threads, which must not change a bit. The exit status is 1 if anything differs.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

SINGLE = {f"{library}_NUM_THREADS": "1" for library in ("OMP", "OPENBLAS", "MKL")}


def digests(source: str, folder: str, name: str, more: list[str]) -> dict[str, Any]:
    """Return the digests of a source."""
    output = Path(folder) / name
    script = Path(__file__).with_name("digests.py")
    command = [sys.executable, str(script), "--source", source, "--output", str(output), *more]
    subprocess.run(command, check=True, env={**os.environ, **SINGLE, "PYTHONHASHSEED": "0"})
    return json.loads(output.read_text())


def size_of(old: list[float], new: list[float]) -> str:
    """Return the largest difference of two lists of numbers, relative to the largest of them, in words."""
    if len(old) != len(new):
        return "other shapes"
    largest = max((abs(x) for x in [*old, *new]), default=0.0)
    apart = max((abs(x - y) for x, y in zip(old, new, strict=True)), default=0.0)
    return f"{apart / largest:.1e}" if apart else "not in the numbers that are kept"


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return a line for each case that differs: its name, and the figures with the size of their difference."""
    lines = [
        f"{name}: only in the {'old' if name in old else 'new'} source" for name in old.keys() ^ new.keys()
    ]
    for name in sorted(old.keys() & new.keys()):
        one, other = old[name], new[name]
        told = [f"{figure} (only one has it)" for figure in sorted(one.keys() ^ other.keys())]
        told += [
            f"{figure} ({size_of(one[figure][1], other[figure][1])})"
            for figure in one
            if figure in other and one[figure][0] != other[figure][0]
        ]
        if told:
            lines.append(f"{name}: {', '.join(told)}")
    return lines


def main() -> None:
    """Compare two sources."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("old")
    parser.add_argument("new")
    parser.add_argument("-k", default="", help="regular expression that a case's name contains")
    parser.add_argument(
        "--quick", action="store_true", help="a subset that takes about half a minute a source"
    )
    parser.add_argument("--threads", type=int, default=1, help="threads of the new source")
    asked = parser.parse_args()
    more = ["-k", asked.k, *(["--quick"] if asked.quick else [])]
    with tempfile.TemporaryDirectory() as folder:
        old = digests(asked.old, folder, "old", more)
        new = digests(asked.new, folder, "new", [*more, "--threads", str(asked.threads)])
    lines = differences(old, new)
    print("\n".join(lines))
    print(f"{len(lines)} of {len(old.keys() | new.keys())} cases differ")
    sys.exit(bool(lines))


if __name__ == "__main__":
    main()
