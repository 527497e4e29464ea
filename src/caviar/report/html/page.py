"""The page: sections, style, script and figures in one file that needs nothing else."""

from __future__ import annotations

import base64
import hashlib
import json
import os
from functools import cache
from html import escape
from importlib.resources import files
from string import Template
from typing import Any

from ..._errors import DataError
from ..._files import replacing
from . import sections
from .gather import gather

__all__ = ["page_of", "write"]

_SCRIPTS = ("elements.js", "tables.js", "axes.js", "components.js", "pairs.js", "density.js", "trace.js")
_SECTIONS = (
    ("trust", "Trust", sections.trust),
    ("components", "Components", sections.components),
    ("plots", "Plots", sections.plots),
    ("rows", "Outliers", sections.rows),
    ("quality", "Data quality", sections.quality),
    ("progress", "Convergence", sections.progress),
    ("reproduce", "Reproduce", sections.reproduce),
)


def page_of(estimator: Any, data: Any = None, *, source: str | None = None) -> str:
    """Return a page of HTML about a fitted mixture of Gaussians, and about data; nothing else is needed to read it.

    Parameters
    ----------
    estimator
        A fitted mixture of Gaussians.
    data
        Rows, shape (N, D), as the methods of the estimator take them; None says less.
    source
        What the data are called on the page.
    """
    page = gather(estimator, data, source=source)
    script, style = _script(), _part("style.css")
    return Template(_part("page.html")).substitute(
        title=escape(sections.title(page)),
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:",
        style=style,
        script=script,
        header=sections.header(page),
        links="".join(f'<a href="#{name}">{escape(word)}</a>' for name, word, _ in _SECTIONS),
        sections="".join(build(page) for _, _, build in _SECTIONS),
        data=_embedded(
            {"plot": page["plot"], "trace": page["fit"]["trace"], "name": page["fit"]["objective"]}
        ),
    )


def write(
    estimator: Any, path: str | os.PathLike[str], data: Any = None, *, source: str | None = None
) -> None:
    """Write a report about a fitted mixture of Gaussians: one HTML file, to be read without a network.

    It says what was fitted and whether it is to be trusted, shows the components, plots of the rows under them, the
    rows that are least expected, the quality of the data, and how to fit the same again.

    Parameters
    ----------
    estimator
        A fitted ``BayesianGaussianMixture``, ``GaussianMixture`` or ``KnownVarianceMixture``.
    path
        Of the file, which ends with ``.html``; written whole or not at all.
    data
        Rows, shape (N, D), as the methods of the estimator take them: those it was fitted to, or new ones. Without
        them, less is shown, and the page says so.
    source
        What the data are called on the page.

    Raises
    ------
    DataError
        If the name does not end with ``.html``, or the file cannot be written.
    ParameterError
        If the estimator is another one, or is not fitted.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import caviar as cv
    >>> X = cv.datasets.load_faithful().values
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "faithful.html"
    >>> write(cv.BayesianGaussianMixture(2, n_init=5, random_state=0).fit(X), path, X)
    >>> "Nothing speaks against this fit." in path.read_text(encoding="utf-8")
    True
    """
    if not str(path).lower().endswith((".html", ".htm")):
        raise DataError(f"cannot write {path}: a report is a page of HTML; its name must end with .html")
    text = page_of(estimator, data, source=source)
    with replacing(path) as file:
        # Names of columns may hold halves of characters, which no encoding has.
        file.write(text.encode("utf-8", errors="replace"))


@cache
def _part(name: str) -> str:
    return (files("caviar.report.html") / "parts" / name).read_text(encoding="utf-8")


@cache
def _script() -> str:
    own = "\n".join(_part(name) for name in _SCRIPTS)
    return f'(function () {{\n"use strict";\n{own}\n}})();'


def _hash(text: str) -> str:
    """Return how a content security policy names the one script, or style, that it lets run."""
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


def _embedded(value: Any) -> str:
    """Return JSON that nothing in a page can end."""
    text = json.dumps(_short(value), separators=(",", ":"), allow_nan=False)
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _short(value: Any) -> Any:
    """Return plain values whose numbers have the digits that a plot can show, and null where they are not finite."""
    if isinstance(value, float):
        rounded = float(f"{value:.9g}")
        return rounded if abs(rounded) < float("inf") else None
    if isinstance(value, dict):
        return {key: _short(own) for key, own in value.items()}
    if isinstance(value, (list, tuple)):
        return [_short(own) for own in value]
    return value
