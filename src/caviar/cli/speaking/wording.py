"""Messages of the library in the words of the command line: options in the place of arguments of Python."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any


def _quoted(text: str) -> str:
    r"""Return a text as a word of the shell, in quotes that it does not have itself, if there are such.

    Examples
    --------
    >>> print(_quoted('SELECT "a" FROM data'), _quoted("it's"))
    'SELECT "a" FROM data' "it's"
    """
    if "'" not in text or any(mark in text for mark in "$`!\\"):
        return shlex.quote(text)
    return '"' + text.replace('"', '\\"') + '"'


def _literal(text: str) -> str:
    """Return a text of SQL; the function of the library loads NumPy, which messages do without."""
    return "'" + text.replace("'", "''") + "'"


def _number_query(found: re.Match[str]) -> str:
    """Return the query that makes texts numbers, from calls of pandas that do."""
    name, expression = found[1], f'"{found[1]}"'
    for mark, plain in re.findall(r"\.str\.replace\('(.)', '(.?)'\)", found[2]):
        expression = f"replace({expression}, {_literal(mark)}, {_literal(plain)})"
    query = f'SELECT * REPLACE ({expression}::DOUBLE AS "{name}") FROM data'
    return f"ake them numbers, by --sql {_quoted(query)}"


def _indicator_query(found: re.Match[str]) -> str:
    """Return the query that makes a value 1 and the other 0, from the line of pandas that does."""
    is_it = f'("{found[1]}" = {_literal(found[2])})::INTEGER'
    return "--sql " + _quoted(f'SELECT * REPLACE ({is_it} AS "{found[1]}") FROM data')


_OPTIONS = {
    "n_components": "--components",
    "n_draws": "--draws",
    "n_init": "--restarts",
    "held_out": "--held-out",
    "max_iter": "--max-iter",
    "random_state": "--seed",
    "n_jobs": "--threads",
    "covariance_type": "--covariance",
    "mean_precision_family": "--mean-precision",
    "prior_mean": "--prior-mean",
    "prior_variance": "--prior-variance",
    "doc_topic_prior": "--doc-topic-prior",
    "topic_word_prior": "--topic-word-prior",
    "stop_words": "--stop-words",
}
"""Argument of an estimator -> its option."""

_IN_WORDS = (
    # the copy that is made of what came there
    (r"\S*[/\\]standard-input\.(?:csv|parquet)", "standard input"),
    (
        r"([Rr])ead (?:it by )?the query \(sql=, --sql\) (SELECT .*? FROM data(?: WHERE .*)?)(?=[.;] |$)",
        lambda found: f"{'Say' if found[1] == 'R' else 'say'} --sql {_quoted(found[2])}",
    ),
    (
        r"ake them numbers, as by table\['(.*)'\]((?:\.str\.replace\('.', '.?'\))*)\.astype\(float\)",
        _number_query,
    ),
    (r"table\['(.*)'\] = \(table\['\1'\] == '(.*)'\)\.astype\(int\)(?= makes)", _indicator_query),
    (r"; pandas keeps them by read_csv\(.*\)$|, with size=1e6 nearly a Poisson$", ""),
    (r"\(columns=, (--columns)\)", r"by \1"),
    # what is chosen is told twice, for Python and for the command line
    (r"columns=\[[^\]]*\], on the command line (?=--columns)", ""),
    (r"take caviar\.data\.read_texts, on the command line (?=--model)", "say "),
    (
        r"give categories=\[\.\.\.\], the lowest first, of (.*), or a column of an ordered type",
        r"say --categories with \1, the lowest first",
    ),
    (r"(?<![\w'])categories=", "--categories"),
    (r"or pass a mapping, \{'.*\}$", "or give the arrays as a NumPy .npz file"),
    (r"uncertainty='linear_response'", "--uncertainty linear-response"),
    (r"(?<![\w'])(checkpoint|emission|encoding|family|uncertainty|vocabulary)='([\w-]*)'", r"--\1 \2"),
    (r"(?<![\w'])(checkpoint|encoding|uncertainty|vocabulary)=", r"--\1"),
    (r"^(emission|encoding|family|tol|variance) must be", r"--\1 must be"),
    (
        r"('([^']*)' has dates as texts, such as '(\d{4}-\d\d-\d\d)[^']*'.*) such as the days since the first date",
        r"""\1 such as the days since a date, by --sql "SELECT *, DATE_DIFF('day', DATE '\3', CAST(\2 AS DATE)) AS """
        r'''days FROM data"''',
    ),
    (r"\b(less than|or) tol\b", r"\1 --tol"),
    (r"^X has ", "the table has "),
    (r"\bof X has ", "of the table has "),
    (r"(?<![\w'])(" + "|".join(_OPTIONS) + r")=(?=['\d])", lambda found: f"{_OPTIONS[found[1]]} "),
    (r"(?<![\w'])(" + "|".join(_OPTIONS) + r")(?!\w)=?", lambda found: _OPTIONS[found[1]]),
)


_NO_COLUMN = r"^[^;]* has no column (?:'[^']*'|\"[^\"]*\")(?=;)"


def of_table(message: str, data: str, model: Path | None) -> str:
    """Return a message about a table with its name, and with the model that needs a column.

    Examples
    --------
    >>> of_table("the table has no column 'a'; it has 'b'.", "new.csv", Path("m.caviar"))
    "new.csv has no column 'a', which m.caviar needs; it has 'b'."
    >>> of_table("the table has no column 'a'; it has 'b'.", "-", None)
    "standard input has no column 'a'; it has 'b'."
    """
    message = re.sub(r"^the table(?= has )", lambda _: "standard input" if data == "-" else data, message)
    if model is None:
        return message
    return re.sub(_NO_COLUMN, lambda found: f"{found[0]}, which {model} needs", message)


def status_in_options(status: Any) -> str:
    """Return why a fit stopped, with options in the place of arguments.

    Examples
    --------
    >>> from caviar.engine.ascent.status import Status
    >>> status_in_options(Status.CONVERGED)
    'converged: the objective changed by less than --tol per row'
    """
    return f"{status.value}: {in_options(status.explanation)}"


def in_options(message: str) -> str:
    """Return a message of the library with options in the place of arguments; what is in quotes stays.

    Examples
    --------
    >>> in_options("n_components must be a whole number of at least 1; got 0")
    '--components must be a whole number of at least 1; got 0'
    >>> in_options("fit with uncertainty='linear_response' to have it")
    'fit with --uncertainty linear-response to have it'
    >>> in_options("Choose another path for checkpoint=; column 'max_iter' stays")
    "Choose another path for --checkpoint; column 'max_iter' stays"
    """
    for pattern, plain in _IN_WORDS:
        message = re.sub(pattern, plain, message)
    return message
