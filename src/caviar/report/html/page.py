"""The page: sections, style, script and figures in one file that needs nothing else.

Subjects of estimators whose result is known by name: the states of sequences, and topics, come before the model.
"""

from __future__ import annotations

import base64
import hashlib
import json
import os
import warnings
from collections.abc import Callable
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from ..._errors import DataError, ParameterError
from ...estimators.hidden_markov_model import HiddenMarkovModel
from ...estimators.latent_dirichlet_allocation import LatentDirichletAllocation
from ...estimators.mixed_mixture import MixedMixture
from ...estimators.mixed_models.mixed_model import MixedModel
from ...estimators.mixtures.components import column_names
from ...files.whole import replacing
from ...numerics.arguments import require_whole
from ...posterior.posterior import Posterior
from .checks.section import Checks
from .mixture.subject import MixtureSubject
from .provenance import file_name
from .section import rendered
from .shared import Progress, Quality, Reproduce, Trust
from .stated.findings import FEWEST_DRAWS
from .stated.pictures import Pictures
from .stated.rows import Rows
from .stated.statement import Statement
from .stated.subject import ABOUT_THE_MODEL, MixedMixtureSubject, MixedModelSubject, StatedSubject
from .stated.variables import Variables
from .subject import Subject


class SequencesSubject(StatedSubject):
    """A hidden Markov model: the states along time come first."""

    sections = (Trust(), Rows(), Checks(), *ABOUT_THE_MODEL)

    def heading(self) -> list[tuple[str, str]]:
        hmm, facts = self.estimator, [*self.origin, ("Rows", self.n_rows)]
        sequences = self._n_sequences()
        facts += [] if sequences is None else [("Sequences", f"{sequences:,}")]
        return [*facts, ("Columns", f"{len(column_names(hmm)):,}"), ("States", f"{hmm.n_components_:,}")]

    def _n_sequences(self) -> int | None:
        told: Any = self.about.get("sequences")
        if told is None and self.data is not None:
            return int(np.count_nonzero(self.data["starts"]))
        return told


class TopicsSubject(StatedSubject):
    """Topics of documents: the words of each topic come first."""

    sections = (
        Trust(),
        Pictures(),
        Rows(),
        Variables(),
        Checks(),
        Statement(),
        Quality(),
        Progress(),
        Reproduce(),
    )


_SCRIPTS = ("elements.js", "tables.js", "filters.js", "axes.js")
"""The scripts that those of the sections need."""


_SUBJECTS = {
    MixedModel: MixedModelSubject,
    MixedMixture: MixedMixtureSubject,
    HiddenMarkovModel: SequencesSubject,
    LatentDirichletAllocation: TopicsSubject,
}
"""Estimator -> the subject of its page, where that is no mixture of Gaussians."""


def gather(
    fitted: Any, data: Any = None, *, source: str | None = None, n_draws: int | None = None
) -> dict[str, Any]:
    """Return the contents of a report as plain values.

    Parameters
    ----------
    fitted, data, source, n_draws
        As for :func:`write`.

    Raises
    ------
    ParameterError
        If ``fitted`` is not a fitted estimator or posterior, or data are given for a mixture of rows with errors.

    Examples
    --------
    >>> import caviar as cv
    >>> mixture = cv.BayesianGaussianMixture(2, random_state=0).fit(cv.datasets.load_faithful().values)
    >>> page = gather(mixture)
    >>> page["fit"]["kind"], page["fit"]["status"], page["rows"] is None
    ('Bayesian mixture of Gaussians', 'converged', True)
    """
    return _gathered(_subject_of(fitted, data, source, n_draws))


def _gathered(subject: Subject, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Return what the sections show, and what they share."""
    with warnings.catch_warnings():
        # The blocks are arrays; the names of the columns were compared when the data came.
        warnings.filterwarnings("ignore", message="X does not have valid feature names")
        page: dict[str, Any] = {"source": file_name(subject.source), "has_data": subject.has_data}
        for done, section in enumerate(subject.sections, start=1):
            page |= section.gather(subject)
            if progress is not None:
                progress(done, len(subject.sections))
        return {"fit": subject.fit, "facts": subject.facts, **page}


def page_of(
    fitted: Any,
    data: Any = None,
    *,
    source: str | None = None,
    n_draws: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> str:
    """Return a report about a fit as one self-contained HTML page.

    Parameters
    ----------
    fitted, data, source, n_draws, progress
        As for :func:`write`.
    """
    subject = _subject_of(fitted, data, source, n_draws)
    return _rendered(subject, _gathered(subject, progress))


def _rendered(subject: Subject, page: dict[str, Any]) -> str:
    """Return the page of what was gathered for it."""
    figures: dict[str, Any] = {}
    for section in subject.sections:
        figures |= section.figures(page)
    names = (*_SCRIPTS, *(name for section in subject.sections for name in section.scripts))
    script, style = _script(names), _part("style.css")
    return rendered(
        "page.html",
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:",
        style=style,
        script=script,
        figures=_embedded(figures),
        sections=subject.sections,
        **page,
    )


def write(
    fitted: Any,
    path: str | os.PathLike[str],
    data: Any = None,
    *,
    source: str | None = None,
    n_draws: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> None:
    """Write a report about a fit to one HTML file, which can be read offline.

    The report says what was fitted, whether you can trust it, and how to reproduce it. With data it includes posterior
    predictive checks. For a mixture of Gaussians it shows the components, plots of the rows, and the least expected
    rows; for a mixed table the profiles of the clusters; for a mixed model its effects. For all other fits it shows the
    model, every global variable with its prior, and the plots that suit the model: coefficients, weights, loadings,
    words of topics, hidden states, or predictions and observations.

    Parameters
    ----------
    fitted
        A fitted ``BayesianGaussianMixture``, ``GaussianMixture``, ``KnownVarianceMixture``, ``MixedMixture``,
        ``MixedModel``, ``HiddenMarkovModel`` or ``LatentDirichletAllocation``, or a :class:`caviar.Posterior`.
    path
        Path of the file, ending with ``.html``. If writing fails, no partial file is left.
    data
        Data of the fit or new data, as for the methods of the estimator or posterior; for several sequences ``{"X":
        rows, "lengths": lengths}``. Without data the report shows less, and says so.
    source
        Name of the data on the page.
    n_draws
        Number of draws that compare the fit with the exact posterior, where a report does so: for all but mixtures of
        Gaussians, with the data of the fit. By default 1000, and fewer for more than 20,000 rows, but at least 100.
    progress
        Function that is called after each section with the number of finished sections and of all sections.

    Raises
    ------
    DataError
        If the path does not end with ``.html``, or the file cannot be written.
    ParameterError
        If ``fitted`` has another type or is not fitted, or ``n_draws`` are given where none are made.

    Notes
    -----
    With data, a posterior is checked as by :meth:`caviar.Posterior.diagnose`, which takes a pass over the rows for each
    draw.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import caviar as cv
    >>> X = cv.datasets.load_faithful().values
    >>> path = pathlib.Path(tempfile.mkdtemp()) / "faithful.html"
    >>> write(cv.BayesianGaussianMixture(2, n_init=5, random_state=0).fit(X), path, X)
    >>> "speaks against this fit." in path.read_text(encoding="utf-8")
    True
    """
    write_and_gather(fitted, path, data, source=source, n_draws=n_draws, progress=progress)


def write_and_gather(
    fitted: Any,
    path: str | os.PathLike[str],
    data: Any = None,
    *,
    source: str | None = None,
    n_draws: int | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> dict[str, Any]:
    """Write a report as :func:`write` does, and return its contents as :func:`gather` does, found once for both.

    Parameters
    ----------
    fitted, path, data, source, n_draws, progress
        As for :func:`write`.
    """
    if not str(path).lower().endswith((".html", ".htm")):
        raise DataError(f"cannot write {path}: a report is a page of HTML; its name must end with .html")
    subject = _subject_of(fitted, data, source, n_draws)
    page = _gathered(subject, progress)
    text = _rendered(subject, page)
    with replacing(path) as file:
        # Names of columns may hold halves of characters, which no encoding has.
        file.write(text.encode("utf-8", errors="replace"))
    return page


def _subject_of(fitted: Any, data: Any, source: str | None, n_draws: int | None) -> Subject:
    subject = _of_kind(fitted, data, source)
    if n_draws is None:
        return subject
    require_whole("n_draws", n_draws, FEWEST_DRAWS)
    if not subject.makes_draws:
        raise ParameterError(
            "n_draws compares a fit with the exact posterior, which the report on a mixture of Gaussians does not do: "
            "it predicts rows that were left out. Leave n_draws out"
        )
    if not subject.has_data:
        raise ParameterError(
            "n_draws compares a fit with the exact posterior given its data; give the data, too"
        )
    subject.n_draws = int(n_draws)
    return subject


def _of_kind(fitted: Any, data: Any, source: str | None) -> Subject:
    if not isinstance(fitted, Posterior) and not hasattr(fitted, "posterior_"):
        raise ParameterError(
            f"a report is of a fitted estimator of caviar, or of a posterior; got {fitted!r:.200}. Call fit first"
        )
    for kind, subject in _SUBJECTS.items():
        if isinstance(fitted, kind):
            return subject(fitted, data, source)
    is_mixture = hasattr(fitted, "means_") and hasattr(fitted, "weights_")
    return (MixtureSubject if is_mixture else StatedSubject)(fitted, data, source)


@cache
def _part(name: str) -> str:
    return (files("caviar.report.html") / "parts" / name).read_text(encoding="utf-8")


@cache
def _script(names: tuple[str, ...]) -> str:
    own = "\n".join(_part(name) for name in names)
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
