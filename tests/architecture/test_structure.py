"""How the package is built: imports without circles, few levels, small folders, files and functions, no hooks.

All of it is read from the source. Each list of exceptions says why, or holds today's figure, and may only shrink: an
entry that is no longer needed fails, and so does a figure that could be lower.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path

ROOT = Path(__file__).parents[2] / "src" / "caviar"
ENGINE = "caviar.engine"
ASSEMBLING = "engine/assemble.py"

MOST_MODULES = 12
"""Unlike modules of a folder."""
MOST_LINES, MOST_LINES_OF_A_FUNCTION = 350, 45
"""Lines of code: docstrings, comments and blank lines do not count."""
MOST_LEVELS_OF_FOLDERS = 10
"""Of the engine: a folder is one level above the highest that it imports from."""
MOST_LEVELS_OF_FILES = 16
"""Of the engine; lower it whenever the longest chain of imports gets shorter."""

FOLDERS_OF_LIKE_MODULES = {
    "engine/ascent/schedules": "a file for each schedule",
    "families": "a file for each exponential family",
    "models": "a file for each model",
    "plot": "a file for each plot",
}

LONG_FILES: dict[str, int] = {}

LONG_FUNCTIONS = {
    "fitting/model.py:fit": (59, "a line for each argument; what checks and orders them is not apart yet"),
}

CORE = (
    "densities",
    "engine",
    "execution",
    "families",
    "fitting",
    "language",
    "lazy",
    "numerics",
    "posterior",
)
"""Where objects are ours, so that a protocol says what they can do; elsewhere much comes from users and libraries."""

_OTHERS = "an object of the user or of another library"
HOOKS = {
    "engine/ascent/lost_digits.py": (2, "families name the precision of their location in two ways"),
    "engine/ascent/schedules/moves/saddles.py": (1, "only families of locations can be moved"),
    "fitting/data_summary.py": (2, _OTHERS),
    "engine/binding/nested.py": (3, _OTHERS),
    "engine/binding/values.py": (
        2,
        "an object of another library; whether a variable has a support of its own",
    ),
    "engine/checkpoint/states.py": (2, "what a class of a checkpoint has is asked of the class"),
    "engine/rows/subsample.py": (2, "only some sources of rows are made of arrays"),
    "engine/starts/guesses/clusterwise.py": (1, "links hold a sum, and a sum is one"),
    "execution/connection.py": (3, _OTHERS),
    "execution/dask.py": (3, "an object of another library; only some sources of rows can be sent in parts"),
    "execution/on_worker.py": (2, "only some sources of rows are columns in memory"),
    "execution/threads.py": (1, "not on every operating system"),
    "families/base/family.py": (1, _OTHERS),
    "fitting/loading.py": (1, "what a file holds"),
    "language/distributions/normal_gammas.py": (
        2,
        "constants and variables name their event axes in two ways",
    ),
    "lazy/graph_rows.py": (2, "only some sources of rows are made of arrays, or can be parted"),
    "lazy/silence.py": (2, _OTHERS),
    "numerics/blas.py": (5, _OTHERS),
}

KINDS_ASKED_FOR = {
    "fitting/rows.py": (1, "rows of documents are columns of their own"),
}


@dataclass(frozen=True)
class Class:
    """A class: its name, and the names of its bases."""

    name: str
    bases: frozenset[str]


@dataclass(frozen=True)
class Module:
    """What is read from a module.

    Attributes
    ----------
    path
        Its file below the root.
    lines
        Lines of code.
    functions
        Names and lines of code of its functions and methods.
    imports
        What its imports name, also those in functions and under TYPE_CHECKING: module and name, or module and nothing.
    aliases
        Names of types that are unions of others.
    hooks
        What is looked up by a name that is written out.
    told_apart
        Classes that objects are told apart by: isinstance, issubclass, a match, a comparison of types.
    """

    name: str
    path: str
    lines: int
    functions: tuple[tuple[str, int], ...]
    imports: frozenset[tuple[str, str]]
    classes: tuple[Class, ...]
    aliases: frozenset[str]
    hooks: tuple[str, ...]
    told_apart: tuple[str, ...]

    @property
    def folder(self) -> str:
        """The package that the module belongs to; a package belongs to itself."""
        return self.name if self.path.endswith("__init__.py") else self.name.rpartition(".")[0]


def names_of(node: ast.AST) -> Iterator[str]:
    """Yield the last part of each name in an expression such as ``A | b.C``, or ``(A, b.C)``."""
    for part in ast.walk(node):
        if isinstance(part, ast.Name):
            yield part.id
        elif isinstance(part, ast.Attribute):
            yield part.attr


def is_call_of(node: ast.AST, *names: str) -> bool:
    """Whether a node calls one of the built-in functions of these names."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names


def lines_of_code(text: str, nodes: Iterable[ast.AST]) -> set[int]:
    """Return the numbers of the lines that are neither blank nor a comment nor part of a docstring."""
    documented: set[int] = set()
    for node in nodes:
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef) and node.body:
            match node.body[0]:
                case ast.Expr(ast.Constant(str()), lineno=first, end_lineno=int(last)):
                    documented |= set(range(first, last + 1))
    lines = ((number, line.strip()) for number, line in enumerate(text.splitlines(), 1))
    return {number for number, line in lines if line and not line.startswith("#")} - documented


def imports_of(folder: str, nodes: Iterable[ast.AST]) -> Iterator[tuple[str, str]]:
    """Yield what imports name, with the absolute names of modules."""
    parts = folder.split(".")
    for node in nodes:
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            above = parts[: len(parts) - node.level + 1] if node.level else []
            source = ".".join([*above, *([node.module] if node.module else [])])
            yield from ((source, alias.name) for alias in node.names)


def class_of(node: ast.ClassDef) -> Class:
    """Return what is read from a class."""
    return Class(node.name, frozenset(name for base in node.bases for name in names_of(base)))


def told_apart_by(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield the names of the classes that objects are told apart by, as they are called where they were defined."""
    own_names = {}
    asked: list[str] = []
    for node in nodes:
        match node:
            case ast.ImportFrom(names=names):
                own_names |= {alias.asname: alias.name for alias in names if alias.asname}
            case ast.Call(args=[_, kinds]) if is_call_of(node, "isinstance", "issubclass"):
                asked += names_of(kinds)
            case ast.MatchClass(cls=kind):
                asked += names_of(kind)
            case ast.Compare(left=left, comparators=others) if is_call_of(left, "type"):
                asked += (name for other in others for name in names_of(other))
    return (own_names.get(name, name) for name in asked)


def looked_up(nodes: Iterable[ast.AST]) -> Iterator[str]:
    """Yield what getattr and hasattr look up by a name that is written out."""
    for node in nodes:
        match node:
            case ast.Call(args=[_, ast.Constant(str(name)), *_]) if is_call_of(node, "getattr", "hasattr"):
                yield name


def module_of(file: Path) -> Module:
    """Return what is read from a file."""
    path = file.relative_to(ROOT)
    name = ".".join(("caviar", *path.with_suffix("").parts)).removesuffix(".__init__")
    folder = name if path.name == "__init__.py" else name.rpartition(".")[0]
    text = file.read_text(encoding="utf-8")
    tree = ast.parse(text)
    nodes = list(ast.walk(tree))
    code = lines_of_code(text, nodes)
    functions = (node for node in nodes if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef))
    return Module(
        name,
        path.as_posix(),
        len(code),
        tuple((f.name, len(code & set(range(f.lineno, (f.end_lineno or 0) + 1)))) for f in functions),
        frozenset(imports_of(folder, nodes)),
        tuple(class_of(node) for node in nodes if isinstance(node, ast.ClassDef)),
        frozenset(
            own.target.id
            for own in tree.body
            if isinstance(own, ast.AnnAssign) and isinstance(own.target, ast.Name)
            if "TypeAlias" in names_of(own.annotation)
        ),
        tuple(looked_up(nodes)),
        tuple(told_apart_by(nodes)),
    )


@cache
def modules() -> dict[str, Module]:
    """Return the modules of the package by name."""
    return {module.name: module for module in map(module_of, sorted(ROOT.rglob("*.py")))}


@cache
def arrows() -> dict[str, frozenset[str]]:
    """Return the modules of the package that each of them imports."""
    known = modules()
    return {
        name: frozenset(
            target
            for source, imported in module.imports
            if (target := own if (own := f"{source}.{imported}") in known else source) in known
            and target != name
        )
        for name, module in known.items()
    }


def levels_of(arrows: Mapping[str, Iterable[str]]) -> tuple[dict[str, int], list[str]]:
    """Return one more than the highest level that each points to, and what is on a circle or points to one."""
    levels: dict[str, int] = {}
    left = {node: set(targets) for node, targets in arrows.items()}
    while ready := [node for node, targets in left.items() if targets <= levels.keys()]:
        for node in ready:
            levels[node] = 1 + max((levels[target] for target in left.pop(node)), default=0)
    return levels, list(left)


def arrows_of_the_engine() -> dict[str, set[str]]:
    """Return which files of the engine each of them imports."""
    files = {name for name in modules() if name.startswith(f"{ENGINE}.")}
    return {name: set(arrows()[name] & files) for name in files}


def arrows_of_its_folders() -> dict[str, set[str]]:
    """Return which folders of the engine the files of each folder import from; a folder within another is apart."""
    found: dict[str, set[str]] = defaultdict(set)
    for name, targets in arrows_of_the_engine().items():
        folder = modules()[name].folder
        found[folder] |= {modules()[target].folder for target in targets} - {folder}
    return dict(found)


def check(found: Mapping[str, int], listed: Mapping[str, int], name: str, aim: str) -> None:
    """Check figures above a limit against the list of exceptions, which has the same ones."""
    worse = {place: figure for place, figure in found.items() if figure > listed.get(place, 0)}
    better = {place: found.get(place, 0) for place in listed if found.get(place, 0) < listed[place]}
    assert worse == {}, f"{aim}; where there is a reason, {name} says it"
    assert better == {}, f"{name} can be shorter: write these figures, and leave out what is 0"


def figures(listed: Mapping[str, tuple[int, str]]) -> dict[str, int]:
    """Return the figures of a list that also says why."""
    assert all(why for _, why in listed.values())
    return {place: figure for place, (figure, _) in listed.items()}


def test_no_imports_go_in_circles():
    _, circles = levels_of(arrows())
    assert circles == []


def test_arrows_between_the_folders_of_the_engine_point_downwards():
    levels, circles = levels_of(arrows_of_its_folders())
    assert circles == []
    assert max(levels.values()) <= MOST_LEVELS_OF_FOLDERS, levels


def test_the_files_of_the_engine_are_on_few_levels():
    levels, _ = levels_of(arrows_of_the_engine())
    highest = {name: level for name, level in levels.items() if level >= MOST_LEVELS_OF_FILES}
    assert set(highest.values()) == {MOST_LEVELS_OF_FILES}, highest or "MOST_LEVELS_OF_FILES can be lower"


def test_a_folder_has_few_modules_that_are_unlike():
    files = [module for module in modules().values() if not module.path.endswith("__init__.py")]
    sizes = Counter(str(Path(module.path).parent.as_posix()) for module in files)
    assert {folder for folder, number in sizes.items() if number > MOST_MODULES} == set(
        FOLDERS_OF_LIKE_MODULES
    )


def test_files_are_short():
    long = {module.path: module.lines for module in modules().values() if module.lines > MOST_LINES}
    check(long, LONG_FILES, "LONG_FILES", f"a file has at most {MOST_LINES} lines of code")


def test_functions_are_short():
    long = {
        f"{module.path}:{function}": lines
        for module in modules().values()
        for function, lines in module.functions
        if lines > MOST_LINES_OF_A_FUNCTION
    }
    aim = f"a function has at most {MOST_LINES_OF_A_FUNCTION} lines of code"
    check(long, figures(LONG_FUNCTIONS), "LONG_FUNCTIONS", aim)


def test_no_hooks_are_looked_up_by_name():
    hooks = {
        module.path: len(module.hooks)
        for module in modules().values()
        if module.hooks and module.path.startswith(CORE)
    }
    aim = "a protocol says what an object can do, and getattr and hasattr are for objects of others"
    check(hooks, figures(HOOKS), "HOOKS", aim)


def kinds_of(base: str) -> set[str]:
    """Return the names of a class and of those that extend it."""
    kinds = {base}
    classes = [own for module in modules().values() for own in module.classes]
    while more := {own.name for own in classes if own.name not in kinds and own.bases & kinds}:
        kinds |= more
    return kinds


def schedules() -> set[str]:
    """Return the names of the kinds of schedules, and of what they have in common."""
    own = [module for module in modules().values() if module.folder == f"{ENGINE}.ascent.schedules"]
    return {kind.name for module in own for kind in module.classes} | {
        name for m in own for name in m.aliases
    }


def test_only_the_assembling_file_asks_what_kind_of_model_it_has():
    kinds = kinds_of("BoundModel") | kinds_of("RowModel") | schedules()
    # else nothing is looked for
    assert {"BoundDocuments", "TruncatedRows", "TiedTopicRows", "Stochastic"} <= kinds
    asked = {
        module.path: number
        for module in modules().values()
        if module.path != ASSEMBLING and (number := sum(kind in kinds for kind in module.told_apart))
    }
    aim = f"a special case is an object behind a protocol: only {ASSEMBLING} tells kinds apart"
    check(asked, figures(KINDS_ASKED_FOR), "KINDS_ASKED_FOR", aim)


SAMPLE = '''
"""A docstring
of two lines."""
from typing import TYPE_CHECKING
from .b import Batch as Plain

if TYPE_CHECKING:
    from ..rows import c

class Thing(Base):
    """One line."""
    field: int = 1
    other = twice = 2

    def method(self, x):
        # a comment

        if isinstance(x, (Plain, b.Second)) or type(x) is Third:
            return getattr(x, "hook", None)
        match x:
            case Fourth():
                return hasattr(x, name)
'''


def test_what_is_read_from_a_module(tmp_path, monkeypatch):
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    folder = tmp_path / "engine" / "ascent"
    folder.mkdir(parents=True)
    (folder / "a.py").write_text(SAMPLE)
    found = module_of(folder / "a.py")
    assert found.imports == {
        ("typing", "TYPE_CHECKING"),
        ("caviar.engine.ascent.b", "Batch"),
        ("caviar.engine.rows", "c"),
    }
    assert (found.lines, found.functions) == (13, (("method", 6),))
    assert found.classes == (Class("Thing", frozenset({"Base"})),)
    assert found.hooks == ("hook",)
    assert sorted(found.told_apart) == ["Batch", "Fourth", "Second", "Third", "b"]


def test_levels_and_circles():
    assert levels_of({"a": [], "b": ["a"], "c": ["a", "b"]}) == ({"a": 1, "b": 2, "c": 3}, [])
    levels, circles = levels_of({"a": [], "b": ["c"], "c": ["b", "a"], "d": ["c"]})
    assert (levels, circles) == ({"a": 1}, ["b", "c", "d"])
