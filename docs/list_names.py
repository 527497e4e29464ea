"""List the public names with the first line of each docstring: ``docs/api/names.md``.

python docs/list_names.py            # writes the page; a test compares it with what the package has
"""

from __future__ import annotations

import ast
import inspect
import re
from itertools import pairwise
from pathlib import Path
from types import ModuleType

import caviar

__all__ = ["MODULES", "page"]

API = Path(__file__).parent / "api"
MODULES = ("data", "datasets", "densities", "families", "models", "plot", "report", "testing")
HEAD = """# All names

Every public name with the first line of its docstring; each links to the rest. `python docs/list_names.py` writes this
page from the package.
"""


def page() -> str:
    """Return the text of the page.

    Raises
    ------
    KeyError
        If a public name is on no page of the reference.
    """
    pages = {
        name: file.name
        for file in sorted(API.glob("*.md"))
        for name in re.findall(r"^::: (\S+)$", file.read_text(encoding="utf-8"), re.MULTILINE)
    }
    sections = [_section(caviar, pages), *(_section(getattr(caviar, name), pages) for name in MODULES)]
    return "\n".join([HEAD, *sections])


def _section(module: ModuleType, pages: dict[str, str]) -> str:
    """Return the table of a module; a name that caviar itself has as well is listed there only."""
    title = module.__name__
    rows = [f"## {title}", "", "| name | what it is |", "|---|---|"]
    for name in sorted(module.__all__, key=str.lower):
        found = getattr(module, name)
        if name == "__version__" or (module is not caviar and getattr(caviar, name, None) is found):
            continue
        full = f"{title}.{name}"
        rows.append(f"| [`{name}`]({pages[full]}#{full}) | {_first_line(_docstring(module, name))} |")
    return "\n".join([*rows, ""])


def _docstring(module: ModuleType, name: str) -> str:
    """Return the docstring of a class or function, or the text below the assignment of a value."""
    found = getattr(module, name)
    if callable(found):
        return found.__doc__ or ""
    lines = ast.parse(inspect.getsource(module)).body
    below = next(after for line, after in pairwise(lines) if ast.unparse(line).startswith(f"{name}:"))
    return ast.literal_eval(ast.unparse(below))


def _first_line(docstring: str) -> str:
    line = " ".join(docstring.strip().split("\n\n")[0].split())
    line = re.sub(r":math:`([^`]+)`", r"\\(\1\\)", line).replace("``", "`")
    line = re.sub(r":[a-z]+:`~?(?:caviar\.)?([^`]+)`", r"`\1`", line)
    return line.replace("|", r"\|")


if __name__ == "__main__":
    (API / "names.md").write_text(page(), encoding="utf-8")
