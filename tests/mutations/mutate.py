"""Change one place of the library at a time, and see whether a test fails: what survives is not tested.

Run from the root of the project, with the packages of ``caviar[dev]``::

    python tests/mutations/mutate.py --count 100 --seed 0

First the tests run once under coverage, so that each mutant is tried only by tests that execute its line (the file
``.mutations/coverage`` is kept for the next time; ``--fresh`` makes it anew). A mutant is one of: another operator of
arithmetic or comparison, a sign or a ``not`` left out, another constant, a condition turned round. It is written to
a copy of the source, never to the source itself. The table at the end lists what no test has noticed.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
WORK = ROOT / ".mutations"
PACKAGES = ("engine", "families")
FOLDERS = (
    "laws",
    "oracles",
    "invariants",
    "edges",
    "schedules",
    "posterior",
    "estimators",
    "densities",
    "simulation",
)
MOST_TESTS = 60
SECONDS = 300

ARITHMETIC = {ast.Add: ast.Sub, ast.Sub: ast.Add, ast.Mult: ast.Div, ast.Div: ast.Mult, ast.Pow: ast.Mult}
COMPARISONS = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Is: ast.IsNot,
    ast.IsNot: ast.Is,
    ast.In: ast.NotIn,
    ast.NotIn: ast.In,
}


@dataclass(frozen=True)
class Place:
    """A place that can be changed: the file, its number among the places of the file, and its line."""

    path: Path
    number: int
    line: int
    what: str


class _Changer(ast.NodeTransformer):
    """Number the places of a module, and change the one with a given number."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted, self.found = wanted, []

    def visit_Raise(self, node: ast.Raise) -> ast.AST:
        return node  # words of messages

    def visit_JoinedStr(self, node: ast.JoinedStr) -> ast.AST:
        return node

    def visit_arg(self, node: ast.arg) -> ast.AST:
        return node

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.AST:
        if node.value is not None:
            node.value = self.visit(node.value)
        return node

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        node.body = [self.visit(statement) for statement in node.body]
        return node

    def _is_wanted(self, node: ast.AST, what: str) -> bool:
        self.found.append((node.lineno, what))
        return len(self.found) - 1 == self.wanted

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        self.generic_visit(node)
        other = ARITHMETIC.get(type(node.op))
        if other and self._is_wanted(node, f"{type(node.op).__name__} -> {other.__name__}"):
            node.op = other()
        return node

    def visit_AugAssign(self, node: ast.AugAssign) -> ast.AST:
        self.generic_visit(node)
        other = ARITHMETIC.get(type(node.op))
        if other and self._is_wanted(node, f"{type(node.op).__name__}= -> {other.__name__}="):
            node.op = other()
        return node

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        self.generic_visit(node)
        other = COMPARISONS.get(type(node.ops[0]))
        if other and self._is_wanted(node, f"{type(node.ops[0]).__name__} -> {other.__name__}"):
            node.ops[0] = other()
        return node

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        self.generic_visit(node)
        if isinstance(node.op, (ast.USub, ast.Not)) and self._is_wanted(
            node, f"without {type(node.op).__name__}"
        ):
            return node.operand
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        self.generic_visit(node)
        other = ast.Or if isinstance(node.op, ast.And) else ast.And
        if self._is_wanted(node, f"{type(node.op).__name__} -> {other.__name__}"):
            node.op = other()
        return node

    def visit_Constant(self, node: ast.Constant) -> ast.AST:
        is_number = isinstance(node.value, (int, float)) and not isinstance(node.value, bool)
        if is_number and self._is_wanted(node, f"{node.value} -> {node.value + 1}"):
            return ast.copy_location(ast.Constant(node.value + 1), node)
        return node


def places(path: Path) -> list[Place]:
    """Return all places of a file."""
    changer = _Changer()
    changer.visit(ast.parse(path.read_text()))
    return [Place(path, number, line, what) for number, (line, what) in enumerate(changer.found)]


def mutated(place: Place) -> str:
    """Return the source of a file with one place changed."""
    tree = _Changer(place.number).visit(ast.parse(place.path.read_text()))
    return ast.unparse(ast.fix_missing_locations(tree))


def run(arguments: list[str], source: Path, seconds: float) -> tuple[bool, str]:
    """Run pytest on a copy of the source; return whether it passed, and its last line."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(source),
        "OMP_NUM_THREADS": "1",
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-x",
        "--no-header",
        "-p",
        "no:cacheprovider",
        *arguments,
    ]
    try:
        end = subprocess.run(
            command, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return False, "too slow"
    lines = [line for line in end.stdout.splitlines() if line.strip()]
    return end.returncode == 0, lines[-1] if lines else end.stderr[-200:]


def measure() -> None:
    """Run the tests under coverage, each line with the tests that execute it."""
    settings = WORK / "settings"
    settings.write_text(
        f"[run]\ndata_file = {WORK / 'coverage'}\n"
        f"source = {', '.join(str(ROOT / 'src' / 'caviar' / package) for package in PACKAGES)}\n"
    )
    tests = [str(ROOT / "tests" / folder) for folder in FOLDERS]
    options = [f"--cov-config={settings}", "--cov", "--cov-context=test", "--cov-report="]
    environment = {**os.environ, "PYTHONPATH": str(ROOT / "src"), "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", "pytest", "-q", "--no-header", "-n", "2", *options, *tests]
    subprocess.run(command, cwd=ROOT, env=environment, check=False)


def tests_by_line() -> dict[tuple[str, int], list[str]]:
    """Return the tests that execute each line."""
    from coverage import CoverageData

    data = CoverageData(str(WORK / "coverage"))
    data.read()
    found: dict[tuple[str, int], list[str]] = {}
    for file in data.measured_files():
        for line, contexts in data.contexts_by_lineno(file).items():
            found[file, line] = sorted({name.split("|")[0] for name in contexts if name})
    return found


def chosen(tests: list[str], rng: random.Random) -> list[str]:
    """Return some of the tests, from as many files as there are."""
    by_file: dict[str, list[str]] = {}
    for test in tests:
        by_file.setdefault(test.split("::")[0], []).append(test)
    for own in by_file.values():
        rng.shuffle(own)
    ranked = sorted((number, test) for own in by_file.values() for number, test in enumerate(own))
    return [test for _, test in ranked[:MOST_TESTS]]


def tried(
    count: int, seed: int, executed: dict[tuple[str, int], list[str]]
) -> Iterator[tuple[Place, bool, str]]:
    """Try mutants one after the other; yield the place, whether it survived, and what pytest said."""
    rng = random.Random(seed)
    files = [
        path for package in PACKAGES for path in sorted((ROOT / "src" / "caviar" / package).rglob("*.py"))
    ]
    every = [place for path in files for place in places(path)]
    source = WORK / "src"
    for place in rng.sample(every, min(count, len(every))):
        tests = executed.get((str(place.path), place.line), [])
        if not tests:
            yield place, True, "no test executes this line"
            continue
        shutil.rmtree(source, ignore_errors=True)
        shutil.copytree(ROOT / "src", source, ignore=shutil.ignore_patterns("__pycache__"))
        (source / place.path.relative_to(ROOT / "src")).write_text(mutated(place))
        survived, end = run(chosen(tests, rng), source, SECONDS)
        yield place, survived, end


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100, help="mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--fresh", action="store_true", help="measure anew which test executes which line")
    arguments = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    if arguments.fresh or not (WORK / "coverage").exists():
        measure()
    survivors, start = [], time.monotonic()
    for number, (place, survived, end) in enumerate(
        tried(arguments.count, arguments.seed, tests_by_line()), 1
    ):
        where = f"{place.path.relative_to(ROOT)}:{place.line}  {place.what}"
        print(f"{number:4d}  {'SURVIVED' if survived else 'killed':8}  {where}  ({end})", flush=True)
        if survived:
            survivors.append(where)
    print(f"\n{len(survivors)} of {number} survived, {time.monotonic() - start:.0f} s")
    print("\n".join(survivors))


if __name__ == "__main__":
    main()
