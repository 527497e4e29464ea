"""Run the code of the pages, hold what it prints against the ``text`` blocks that follow, draw the pictures.

    python docs/build_examples.py                              # all pages: writes outputs and docs/pictures/*.png
    python docs/build_examples.py docs/models/poisson_mixture.md
    python docs/build_examples.py --check                      # writes nothing; exit status 1 where something differs

The blocks of a page are one program. What a block prints stands in the ``text`` block after it; where the page shows
how something is refused, that block begins with ``Error`` when it is first written. PNG files go to ``docs/pictures``.

The commands ``caviar ...`` of ``sh`` blocks are run in the same folder, so that one kind of block reads what the other
wrote; lines with other programs (``pip``, ``make``) are left out. What a command says on standard error belongs to its
output, but for the progress of a fit, which a terminal shows only while it lasts.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import matplotlib as mpl

from caviar import CaviarError, CaviarWarning

__all__ = ["PageRun", "agree", "commands", "pages", "run_page"]

DOCS = Path(__file__).parent
STYLE = DOCS.parent / "src" / "caviar" / "plot" / "caviar.mplstyle"
WIDTH = 100
"""Columns at which the message of an error is broken."""

BLOCK = re.compile(
    r"^```(?P<language>python|sh)\n(?P<code>.*?)^```\n(?P<printed>\n*```text\n(?P<output>.*?)^```\n)?",
    re.DOTALL | re.MULTILINE,
)
COMMAND = re.compile(r"^(?:caviar |cat .*\| caviar )(?:.*\\\n)*.*\n", re.MULTILINE)
PROGRESS = re.compile(
    r"^(?:(?:fit \d+/\d+  )?(?:start \d+/\d+  )?(?:iteration \d+/\d+  |searching: )).*\n", re.MULTILINE
)
NUMBER = re.compile(r"-?\d+\.?\d*(?:e[+-]?\d+)?")


@dataclass(frozen=True)
class PageRun:
    """What the program of a page did.

    Attributes
    ----------
    outputs
        For each block of code the line it begins at, what stands in the page, and what it printed.
    text
        The page with what was printed in the place of what stood there.
    pictures
        Name of each PNG file that the page wrote -> its content.
    namespace
        The variables of the program at its end.
    """

    outputs: tuple[tuple[int, str, str], ...]
    text: str
    pictures: dict[str, bytes]
    namespace: dict[str, Any]

    def differences(self, *, exactly: bool = False) -> list[str]:
        """Return a line for each output that is not what the page says; rounding aside, unless ``exactly``."""
        return [
            f"line {line}: the page says\n{stated}but the code printed\n{printed}"
            for line, stated, printed in self.outputs
            if not (stated == printed or (not exactly and agree(stated, printed)))
        ]


def pages() -> list[Path]:
    """Return the pages with code that is run."""
    return sorted(page for page in DOCS.rglob("*.md") if BLOCK.search(page.read_text(encoding="utf-8")))


def commands(page: Path) -> list[str]:
    """Return the commands of a page that are run, and need ``sh``."""
    blocks = BLOCK.finditer(page.read_text(encoding="utf-8"))
    return [line for block in blocks if block["language"] == "sh" for line in COMMAND.findall(block["code"])]


def run_page(page: Path) -> PageRun:
    """Run the Python blocks of a page as one program, and its commands, in a folder of its own."""
    text = page.read_text(encoding="utf-8")
    outputs, pieces, end = [], [], 0
    namespace: dict[str, Any] = {"__name__": page.stem}
    with _workshop() as folder:
        for block in BLOCK.finditer(text):
            line = text.count("\n", 0, block.start("code")) + 1
            refused = re.match(r"\w*(Error|Warning)", block["output"] or "") is not None
            if block["language"] == "sh":
                printed = _run_commands(block["code"], f"{page}:{line}")
            else:
                printed = _run(block["code"], namespace, f"{page}", line, refused)
            outputs.append((line, block["output"] or "", printed))
            pieces += [text[end : block.start()], f"```{block['language']}\n{block['code']}```\n"]
            pieces += [f"\n```text\n{printed}```\n"] if printed else []
            end = block.end()
        pictures = {path.name: _small(path) for path in sorted(folder.glob("*.png"))}
    return PageRun(tuple(outputs), "".join([*pieces, text[end:]]), pictures, namespace)


def agree(stated: str, printed: str) -> bool:
    """Return whether two outputs differ at most by rounding: a unit in the last place of a number, or 1e-3 of it."""
    if NUMBER.sub("#", " ".join(stated.split())) != NUMBER.sub("#", " ".join(printed.split())):
        return False
    return all(
        abs(float(a) - float(b))
        <= max(1.01 * 10.0 ** -len(a.partition(".")[2]) * ("." in a), 1e-3 * abs(float(a)))
        for a, b in zip(NUMBER.findall(stated), NUMBER.findall(printed), strict=True)
    )


@contextlib.contextmanager
def _workshop() -> Iterator[Path]:
    """Enter an empty folder, with the style of the pictures, and warnings that are errors."""
    before = Path.cwd()
    with (
        tempfile.TemporaryDirectory() as folder,
        mpl.rc_context({"figure.max_open_warning": 0}, fname=str(STYLE)),
        warnings.catch_warnings(action="error"),
    ):
        mpl.use("Agg")
        os.chdir(folder)
        try:
            yield Path(folder)
        finally:
            os.chdir(before)
            sys.modules["matplotlib.pyplot"].close("all") if "matplotlib.pyplot" in sys.modules else None


def _run(code: str, namespace: dict[str, Any], file: str, line: int, refused: bool) -> str:
    """Return what a block prints; and the error that refuses it, where the page says that one does."""
    program = compile("\n" * (line - 1) + code, file, "exec")
    with contextlib.redirect_stdout(io.StringIO()) as out:
        try:
            exec(program, namespace)
        except (CaviarError, CaviarWarning) as error:
            if not refused:
                raise
            print(textwrap.fill(f"{type(error).__name__}: {error}", WIDTH, break_long_words=False))
    return out.getvalue()


def _run_commands(block: str, where: str) -> str:
    """Return what the commands of a ``sh`` block print, each below the one before, as a terminal shows it.

    Raises
    ------
    RuntimeError
        If a command ends with another status than 0, unless what stands behind it, ``|| ...``, expects that.
    """
    program = Path(".bin", "caviar")
    if not program.exists():
        program.parent.mkdir()
        program.write_text(f"#!{sys.executable}\nfrom caviar.cli import main\nmain()\n", encoding="utf-8")
        program.chmod(0o755)
    environment = {
        **os.environ,
        "PATH": os.pathsep.join([str(program.parent.resolve()), os.environ["PATH"]]),
        "PYTHONPATH": os.pathsep.join([str(DOCS.parent / "src"), os.environ.get("PYTHONPATH", "")]),
        "PYTHONIOENCODING": "utf-8",
        "COLUMNS": f"{WIDTH}",
    }
    printed = ""
    for command in COMMAND.findall(block):
        run = subprocess.run(
            ["sh", "-c", command],
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            check=False,
        )
        if run.returncode != 0:
            raise RuntimeError(f"{where}: {command}ended with status {run.returncode}\n{run.stdout}")
        printed += PROGRESS.sub("", run.stdout)
    return printed


def _small(path: Path) -> bytes:
    """Return a picture with at most 256 colours: a third of the size, to the same eye."""
    from PIL import Image

    out = io.BytesIO()
    with Image.open(path) as picture:
        picture.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(out, format="png", optimize=True)
    return out.getvalue()


def main() -> int:
    """Run the pages that the command line names, or all."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("pages", nargs="*", type=Path)
    parser.add_argument(
        "--check", action="store_true", help="write nothing, and fail where something differs"
    )
    arguments = parser.parse_args()
    failed = False
    for page in arguments.pages or pages():
        run = run_page(page.resolve())
        differences = run.differences()
        print(
            f"{page}: {len(run.outputs)} blocks, {len(differences)} outputs changed, {', '.join(run.pictures)}"
        )
        if arguments.check:
            failed |= bool(differences)
            print(*differences, sep="\n", end="")
            continue
        if differences:
            page.write_text(run.text, encoding="utf-8")
        for name, content in run.pictures.items():
            (DOCS / "pictures" / name).write_bytes(content)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
