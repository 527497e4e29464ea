"""Where the command line writes: results to standard output; progress, warnings and errors to standard error."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path

import typer
from rich.console import Console
from rich.text import Text

from caviar import CaviarError, ConvergenceWarning, DataError

from .wording import in_options, of_table

BAD_INPUT = 2
FAILURE = 1


def standard_output() -> Console:
    """Return the console for results, as wide as they are where no terminal limits it."""
    return _console(Console(highlight=False, markup=False, emoji=False))


def standard_error() -> Console:
    """Return the console for everything else."""
    return _console(Console(stderr=True, highlight=False, markup=False, emoji=False))


def _console(console: Console) -> Console:
    if not console.is_terminal:
        console.width = 1000
    return console


def plain(text: str) -> str:
    """Return a text with what a terminal would obey, instead of show, written out."""
    return "".join(c if c.isprintable() or c in "\n " else repr(c)[1:-1] for c in text)


def counted(number: int, what: str) -> str:
    """Return how many there are of something.

    Examples
    --------
    >>> counted(1, "row"), counted(1234, "row")
    ('1 row', '1,234 rows')
    """
    return f"{number:,} {what}{'s' * (number != 1)}"


def say(console: Console, text: str = "", style: str = "") -> None:
    """Print a line as it is: no markup, no folding."""
    console.print(Text(plain(text), style), soft_wrap=True)


_MODEL: ContextVar[Path | None] = ContextVar("model", default=None)
"""The one of several models that is spoken of."""


@contextmanager
def speaking_of(model: Path, data: str) -> Iterator[None]:
    """Name one of several models in each warning and error about it, and the table ``data`` in errors.

    Raises
    ------
    DataError
        If there was an error of the library: its message, with the model.
    """
    token = _MODEL.set(model)
    try:
        yield
    except CaviarError as error:
        told = of_table(str(error), data, model)
        raise DataError(told if str(model) in told else f"{model}: {told}") from error
    finally:
        _MODEL.reset(token)


def complain(kind: str, text: str) -> None:
    """Print an error or a warning."""
    console, model = standard_error(), _MODEL.get()
    told = plain(in_options(text if model is None or str(model) in text else f"{model}: {text}"))
    line = Text.assemble((f"{kind}: ", "bold red" if kind == "error" else "bold yellow"), told)
    console.print(line, soft_wrap=True)


@contextmanager
def errors_in_words(data: str = "the query", model: Path | None = None) -> Iterator[None]:
    """Turn what may go wrong into one message and an exit status; a bug keeps its traceback.

    ``data`` is what a message calls the table, and ``model`` the file of a model that needs its columns.
    """
    try:
        yield
    except CaviarError as error:
        complain("error", of_table(str(error), data, model))
        raise typer.Exit(BAD_INPUT) from error
    except ImportError as error:
        complain("error", str(error))
        raise typer.Exit(FAILURE) from error
    except KeyboardInterrupt as error:
        complain("error", "interrupted; nothing was kept")
        raise typer.Exit(FAILURE) from error
    except RuntimeError as error:
        if "interrupted" not in str(error).lower():
            raise
        # DuckDB answers Ctrl-C with an error of its own
        complain("error", "interrupted; nothing was kept")
        raise typer.Exit(FAILURE) from error
    except OSError as error:
        # a reader that has gone away, as head, is not an error; errors of files are DataErrors
        if isinstance(error, BrokenPipeError):
            raise
        complain("error", f"cannot write the result: {error.strerror or error}")
        raise typer.Exit(FAILURE) from error
    except MemoryError as error:
        complain("error", f"out of memory; {error}")
        raise typer.Exit(FAILURE) from error


@contextmanager
def gathered_warnings() -> Iterator[None]:
    """Print each warning once, and after what is drawn meanwhile; that a fit did not converge is told by its status."""
    # it takes NumPy, which help does without
    from caviar.data.columns.missing_codes import OF_CODES

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        # the command line tells of these itself, with the option that leaves them out
        warnings.filterwarnings("ignore", message="column .* seems to number the rows")
        warnings.filterwarnings("ignore", message=OF_CODES)
        yield
    told = (
        str(warning.message) for warning in caught if not issubclass(warning.category, ConvergenceWarning)
    )
    for text in dict.fromkeys(told):
        complain("warning", text)
