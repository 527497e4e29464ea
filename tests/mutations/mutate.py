"""Change one place of the library at a time, and see whether a test fails: what survives is not tested.

Run from the root of the project::

    python tests/mutations/mutate.py --count 100 --seed 0

First the tests run once on a source whose statements are marked (``marks.py``), which takes as long as the tests do;
what each of them executes is kept in ``.mutations`` until the source changes. Then each mutant is tried by the tests
that execute its statement, the fastest first, up to the first that fails or ``--seconds`` of them. A mutant is one of:
another operator of arithmetic or comparison, a sign or a ``not`` left out, another constant, ``and`` for ``or``. It is
written to a copy of the source, never to the source itself. The table at the end lists what no test has noticed; try
these again with ``--only`` and more seconds before writing a test. Tests run in forks of this process: not on Windows.
"""

from __future__ import annotations

import argparse
import ast
import compileall
import hashlib
import importlib
import json
import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import accumulate
from multiprocessing import get_context
from pathlib import Path
from typing import NoReturn

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src"
WORK = ROOT / ".mutations"
PACKAGES = ("engine", "families")
FOLDERS = (
    "laws",
    "oracles",
    "invariants",
    "edges",
    "schedules",
    "many",
    "truncated",
    "posterior",
    "starts",
    "language",
    "checkpoint",
    "execution",
    "simulation",
    "random_models",
    "densities",
    "data",
    "storage",
    "diagnostics",
    "device",
    "estimators",
)
OPTIONS = ("-q", "--no-header", "--tb=line", "-p", "no:cacheprovider")
PRELOADED = ("hypothesis", "scipy.linalg", "scipy.sparse", "scipy.stats", "sklearn.mixture")
FIRST_SECONDS = 2.0  # processor time of the tests that are run first

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
    """A place that can be changed: the file, its number among the places of the file, and its line.

    ``statement`` is the line at which the innermost statement around it begins, None if that runs on import or in
    compiled code.
    """

    path: Path
    number: int
    line: int
    what: str
    statement: int | None


@dataclass(frozen=True)
class Test:
    """A test that passes: its name and its processor time in seconds."""

    name: str
    seconds: float

    @property
    def file(self) -> str:
        return self.name.split("::")[0]


class _Changer(ast.NodeTransformer):
    """Number the places of a module, and change the one with a given number."""

    def __init__(self, wanted: int | None = None) -> None:
        self.wanted = wanted
        self.found: list[tuple[int, str, int | None]] = []
        self.statement: int | None = None
        self.functions = 0

    def visit(self, node: ast.AST) -> ast.AST:
        if not isinstance(node, ast.stmt):
            return super().visit(node)
        outer, self.statement = self.statement, node.lineno if self.functions else None
        try:
            return super().visit(node)
        finally:
            self.statement = outer

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
        is_marked = not _is_compiled(node)
        self.functions += is_marked
        node.body = [self.visit(statement) for statement in node.body]
        self.functions -= is_marked
        return node

    def _is_wanted(self, node: ast.AST, what: str) -> bool:
        self.found.append((node.lineno, what, self.statement))
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
        value = node.value
        if not isinstance(value, int | float) or isinstance(value, bool):
            return node
        if self._is_wanted(node, f"{value} -> {value + 1}"):
            return ast.copy_location(ast.Constant(value + 1), node)
        return node


class _Marker(ast.NodeTransformer):
    """Call ``mark`` before the statements of functions at the given lines."""

    def __init__(self, numbers: dict[int, int]) -> None:
        self.numbers = numbers

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return node if _is_compiled(node) else self.generic_visit(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if isinstance(node, (ast.Module, ast.ClassDef)):
            return node
        for field in ("body", "orelse", "finalbody"):
            statements = getattr(node, field, None)
            if isinstance(statements, list):
                setattr(node, field, [one for statement in statements for one in self._marked(statement)])
        return node

    def _marked(self, statement: ast.stmt) -> list[ast.stmt]:
        number = self.numbers.get(statement.lineno)
        if number is None:
            return [statement]
        return [*ast.parse(f"_mark({number})").body, statement]


def _is_compiled(node: ast.FunctionDef) -> bool:
    """Whether a function is compiled, in which no statement can call Python."""
    return any("njit" in (words := ast.unparse(own)) or "intrinsic" in words for own in node.decorator_list)


def files() -> list[Path]:
    """Return the files that are changed."""
    return [path for package in PACKAGES for path in sorted((SOURCE / "caviar" / package).rglob("*.py"))]


def places(path: Path) -> list[Place]:
    """Return all places of a file."""
    changer = _Changer()
    changer.visit(ast.parse(path.read_text()))
    return [
        Place(path, number, line, what, statement)
        for number, (line, what, statement) in enumerate(changer.found)
    ]


def mutated(place: Place) -> str:
    """Return the source of a file with one place changed."""
    tree = _Changer(place.number).visit(ast.parse(place.path.read_text()))
    return ast.unparse(ast.fix_missing_locations(tree))


def marked(path: Path, numbers: dict[int, int]) -> str:
    """Return the source of a file whose statements at the given lines call ``mark`` with their number."""
    tree = ast.parse(path.read_text())
    last = max((n for n, one in enumerate(tree.body) if _is_from_future(one)), default=0)
    tree = _Marker(numbers).visit(tree)
    tree.body[last + 1 : last + 1] = ast.parse("from marks import mark as _mark").body
    return ast.unparse(ast.fix_missing_locations(tree))


def importers(path: Path) -> list[Path]:
    """Return the files that import another one, at their beginning or where they need it."""
    parts = path.relative_to(SOURCE).with_suffix("").parts
    found = []
    for other in files():
        package = other.relative_to(SOURCE).parts[:-1]
        for node in ast.walk(ast.parse(other.read_text())):
            if isinstance(node, ast.ImportFrom):
                base = package[: len(package) - node.level + 1] if node.level else ()
                module = (*base, *(node.module or "").split(".")) if node.module else base
                if parts == module or any(parts == (*module, name.name) for name in node.names):
                    found.append(other)
                    break
    return found


def _is_from_future(statement: ast.stmt) -> bool:
    return isinstance(statement, ast.ImportFrom) and statement.module == "__future__"


def copied(name: str) -> Path:
    """Return a fresh copy of the source, compiled."""
    copy = WORK / name
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(SOURCE, copy, ignore=shutil.ignore_patterns("__pycache__"))
    compileall.compile_dir(copy, quiet=1)
    return copy


def environment(source: Path, **more: str) -> dict[str, str]:
    """Return the environment in which tests import a copy of the source."""
    path = os.pathsep.join([str(source), str(Path(__file__).parent)])
    own = {"PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    return {**os.environ, **own, "NUMBA_CACHE_DIR": str(WORK / "compiled"), **more}


class Executed:
    """Which tests execute which statements: measured once, and kept as long as the source is the same."""

    def __init__(self, fresh: bool) -> None:
        self.statements = sorted(
            {(place.path, place.statement) for path in files() for place in places(path) if place.statement}
        )
        digest = hashlib.sha256(b"".join(path.read_bytes() for path in files())).hexdigest()
        kept = WORK / f"executed-{digest[:16]}.jsonl"
        if fresh or not kept.exists():
            self._measure(kept)
        self.tests: list[Test] = []
        self.by_statement: dict[tuple[Path, int], list[Test]] = {}
        self.by_file: dict[Path, list[Test]] = {}
        for line in kept.read_text().splitlines():
            self._add(json.loads(line))

    def _measure(self, kept: Path) -> None:
        source, unfinished = copied("marked"), kept.with_suffix(".unfinished")
        for path in files():
            numbers = {line: n for n, (own, line) in enumerate(self.statements) if own == path}
            (source / path.relative_to(SOURCE)).write_text(marked(path, numbers))
        unfinished.unlink(missing_ok=True)
        tests = [str(ROOT / "tests" / folder) for folder in FOLDERS]
        variables = environment(source, EXECUTED=str(unfinished))
        command = [sys.executable, "-m", "pytest", *OPTIONS, "-p", "marks", *tests]
        end = subprocess.run(command, cwd=ROOT, env=variables, check=False)
        if end.returncode not in (pytest.ExitCode.OK, pytest.ExitCode.TESTS_FAILED):
            raise SystemExit("the tests did not run to their end, so nothing is known of what they execute")
        unfinished.rename(kept)

    def _add(self, found: dict) -> None:
        test = Test(found["test"], found["seconds"])
        self.tests.append(test)
        statements = [self.statements[number] for number in found["marks"]]
        for statement in statements:
            self.by_statement.setdefault(statement, []).append(test)
        for path in {path for path, _ in statements}:
            self.by_file.setdefault(path, []).append(test)

    def by(self, place: Place) -> list[Test]:
        """Return the tests that execute a place, or for one that runs on import its file; the fastest first."""
        if place.statement is None:
            found = self._of_file(place.path)
        else:
            found = self.by_statement.get((place.path, place.statement), [])
        return sorted(found, key=lambda test: test.seconds)

    def _of_file(self, path: Path) -> list[Test]:
        """Return the tests that execute a file; of compiled code, those that execute a file that imports it."""
        if path in self.by_file:
            return self.by_file[path]
        found = {test: None for other in importers(path) for test in self._of_file(other)}
        return list(found)


def rounds(tests: list[Test], most: float) -> Iterator[list[Test]]:
    """Yield the tests in two rounds: those that are done at once, and as many others as there is time for.

    A test counts a little more than its own time, since its file must be read; files take turns.
    """
    seen: dict[str, int] = {}
    turns = []
    for test in tests:
        seen[test.file] = seen.get(test.file, 0) + 1
        turns.append((seen[test.file], test.seconds, test.name, test))
    in_turn = [test for *_, test in sorted(turns)]
    spent = list(accumulate(test.seconds + 0.05 for test in in_turn))
    first = [test for test, until in zip(in_turn, spent, strict=True) if until <= FIRST_SECONDS]
    first = first or in_turn[:1]
    yield first
    rest = [test for test, until in zip(in_turn, spent, strict=True) if until <= most]
    yield rest[len(first) :]


def run(tests: list[Test], source: Path) -> tuple[bool, str]:
    """Run tests on a copy of the source, up to the first that fails; return whether all pass, and what fails.

    They run in a fork of this process, which has imported the large packages already.
    """
    limit = 60 + 10 * sum(test.seconds for test in tests)
    log = WORK / "log"
    child = get_context("fork").Process(target=_run_here, args=([test.name for test in tests], source, log))
    child.start()
    child.join(limit)
    if child.is_alive():
        child.kill()
        child.join()
        return False, f"not done in {limit:.0f} s"
    said = log.read_text()
    if "ERROR: not found:" in said:
        raise SystemExit("a test is no longer there; measure anew with --fresh")
    failed = [line for line in said.splitlines() if line.startswith(("FAILED", "ERROR"))]
    return child.exitcode == 0, failed[0] if failed else said.strip()[-200:]


def _run_here(names: list[str], source: Path, log: Path) -> NoReturn:
    with log.open("w") as file:
        os.dup2(file.fileno(), 1)
        os.dup2(file.fileno(), 2)
    os.environ.update(environment(source))
    sys.dont_write_bytecode = True
    sys.path.insert(0, str(source))
    os.chdir(ROOT)
    code = pytest.main([*OPTIONS, "-x", "-W", "ignore::pytest.PytestAssertRewriteWarning", *names])
    sys.stdout.flush()
    os._exit(code)


def tried(sampled: Iterable[Place], executed: Executed, most: float) -> Iterator[tuple[Place, bool, str]]:
    """Try mutants one after the other; yield the place, whether it survives, and what pytest says."""
    for name in PRELOADED:
        importlib.import_module(name)
    source = copied("mutant")
    for place in sampled:
        tests = executed.by(place)
        if not tests:
            yield place, True, "no test executes this statement"
            continue
        copy = source / place.path.relative_to(SOURCE)
        copy.write_text(mutated(place))
        _forget_compiled(place)
        survives, end = True, ""
        for some in rounds(tests, most):
            if survives and some:
                survives, end = run(some, source)
        shutil.copy2(place.path, copy)
        _forget_compiled(place)
        yield place, survives, f"{len(tests)} tests execute it" if survives else end


def _forget_compiled(place: Place) -> None:
    """Have everything compiled anew that may have a changed function in it."""
    if "numba" in place.path.read_text():
        shutil.rmtree(WORK / "compiled", ignore_errors=True)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--count", type=int, default=100, help="mutants")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", type=int, nargs="*", help="numbers of mutants in the table, from 1")
    parser.add_argument("--seconds", type=float, default=60.0, help="of tests for a mutant, at most")
    parser.add_argument("--fresh", action="store_true", help="measure anew which test executes what")
    arguments = parser.parse_args()
    WORK.mkdir(exist_ok=True)
    executed = Executed(arguments.fresh)
    every = [place for path in files() for place in places(path)]
    sampled = random.Random(arguments.seed).sample(every, min(arguments.count, len(every)))
    numbers = arguments.only or range(1, len(sampled) + 1)
    survivors, start = [], time.monotonic()
    outcomes = tried([sampled[number - 1] for number in numbers], executed, arguments.seconds)
    for number, (place, survives, end) in zip(numbers, outcomes, strict=True):
        where = f"{place.path.relative_to(ROOT)}:{place.line}  {place.what}"
        print(f"{number:4d}  {'SURVIVES' if survives else 'killed':8}  {where}  ({end})", flush=True)
        if survives:
            survivors.append(f"{number:4d}  {where}")
    print(f"\n{len(survivors)} of {len(numbers)} survive, {time.monotonic() - start:.0f} s")
    print("\n".join(survivors))


if __name__ == "__main__":
    main()
