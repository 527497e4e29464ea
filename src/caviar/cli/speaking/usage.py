"""Refusals of wrong usage, in the words and the form of all other errors."""

from __future__ import annotations

import re
import sys
from difflib import SequenceMatcher
from typing import Any

import typer
from typer.core import TyperGroup

from .outputs import BAD_INPUT, FAILURE, complain

_USAGE: type[Exception] = next(
    kind
    for kind in typer.BadParameter.__mro__
    if issubclass(kind, Exception) and kind.__name__ == "UsageError"
)

_ALIKE, _CLEARLY = 0.6, 0.05
"""How alike an option must be to what was typed to be suggested; by how much more than the next, to be the only one."""

_IN_WORDS = (
    (r"^Invalid value for (.*?): ", r"\1: "),
    (r"^Invalid value: ", ""),
    # an option is named as it is typed, by its long name
    (r"^'(--[\w-]+)'(?: / '-\w')?: ", r"\1: "),
    (r"^Missing option '(--[\w-]+)'(?: / '-\w')?\.?", r"missing option \1"),
    (r"^Missing argument '(\w+)'\.?", r"missing argument \1"),
    (r"^Got unexpected extra arguments? ?(?:\(s\) )?\((.*)\)\.?", r"unexpected argument: \1"),
    (r"\. Did you mean '?(.*?)'?\?$", r"; did you mean \1?"),
    (r"^No such option: (\S+?)\.?(?= |$)", r"no such option \1"),
    (r"^Option '(--?[\w-]+)' requires an argument\.?$", r"\1 needs a value"),
    (r"^Option '(--?[\w-]+)' does not take a value\.?$", r"\1 takes no value"),
    (r"Value error, ", ""),
    (r"Input should be a valid (integer|number)(, unable to parse string as an? \w+)?", r"expected a \1"),
    (r"\bexpected a integer", "expected a whole number"),
    (r"Input should be greater than or equal to ", "expected at least "),
    (r"Input should be less than or equal to ", "expected at most "),
    (r"Input should be ", "expected "),
)
"""What libraries below say, and what is said in its place."""


class CommandsInWords(TyperGroup):
    """The commands, whose errors are all one line that begins with "error:"."""

    def main(self, *args: Any, standalone_mode: bool = True, **extra: Any) -> Any:
        """Run a command; end the process with its status, if it is run by itself."""
        if not standalone_mode:
            return super().main(*args, standalone_mode=False, **extra)
        try:
            status = super().main(*args, standalone_mode=False, **extra)
        except _USAGE as error:
            # without any argument the help text is shown, which is not an error of the user
            if type(error).__name__ == "NoArgsIsHelpError":
                return super().main(*args, standalone_mode=True, **extra)
            complain("error", told(error))
            sys.exit(BAD_INPUT)
        except typer.Abort:
            complain("error", "interrupted; nothing was kept")
            sys.exit(FAILURE)
        sys.exit(status if isinstance(status, int) else 0)


def told(error: Any) -> str:
    """Return what is wrong with the usage, and where the right one is described."""
    text = in_words(error.format_message())
    if hasattr(error, "possibilities"):
        near = _meant(error)
        several = "one of " if len(near) > 1 else ""
        text = in_words(error.message) + (f"; did you mean {several}{', '.join(near)}?" if near else "")
    context = getattr(error, "ctx", None)
    if context is None:
        return text
    clause = text if text.endswith("...") else text.rstrip(".")
    if clause.endswith("?"):
        return f"{clause} See {context.command_path} --help"
    return f"{clause}; see {context.command_path} --help"


def _meant(error: Any) -> list[str]:
    """Return the options that may be meant by one that does not exist, the most alike first; one, if it is clear."""
    given = str(getattr(error, "option_name", "")).strip("-")
    alike = {
        own: SequenceMatcher(None, own.strip("-"), given).ratio()
        for own in getattr(error, "possibilities", None) or ()
    }
    near = sorted((own for own, ratio in alike.items() if ratio >= _ALIKE), key=lambda own: -alike[own])
    begun = [own for own in near if own.strip("-").startswith(given)]
    if len(begun) == 1:
        return begun
    is_clear = len(near) > 1 and alike[near[0]] - alike[near[1]] >= _CLEARLY
    return near[:1] if is_clear else near


def in_words(message: str) -> str:
    """Return a message without the words of libraries.

    Examples
    --------
    >>> in_words("Invalid value for '--covariance': Value error, 'ful' is not one of 'full', 'tied'.")
    "--covariance: 'ful' is not one of 'full', 'tied'."
    >>> in_words(
    ...     "Invalid value for '--tol': Input should be a valid number, unable to parse string as a number"
    ... )
    '--tol: expected a number'
    >>> in_words("Missing option '--output' / '-o'.")
    'missing option --output'
    >>> in_words("Invalid value: DATA or --sql QUERY is needed")
    'DATA or --sql QUERY is needed'
    """
    for pattern, plain in _IN_WORDS:
        message = re.sub(pattern, plain, message)
    # what begins with a name in capitals keeps them
    return message if message[:2].isupper() else message[:1].lower() + message[1:]
