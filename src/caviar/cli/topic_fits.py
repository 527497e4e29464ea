"""``caviar fit --model topics``: topics, fitted to documents of words."""

from __future__ import annotations

from typing import Any

import typer

from .documents import documents_to_fit
from .fit_options import FitOptions
from .fits import deliver, fitted, origin_of, pictures
from .non_numeric import NonNumeric
from .topics import TopicsOfFile


def fit_to_documents(request: FitOptions, data: str | None, arguments: dict[str, Any]) -> None:
    """Fit topics to documents in files, and print and save the result."""
    _require_topics(request, arguments)
    found = documents_to_fit(data, request.sql, request.column_names, request.options, quiet=request.quiet)
    if found.words is not None:
        arguments = {**arguments, "vocabulary": list(found.words)}
    lda = fitted(request.kind, found.counts, arguments, quiet=request.quiet, checkpoint=request.checkpoint)
    texts = {"texts": dict(found.how)} if found.how else {}
    lda.about_ = {**origin_of(request), "rows": found.counts.shape[0], **texts}
    deliver(request, TopicsOfFile, lda, lambda path: pictures().draw_topics(lda, path))


def _require_topics(request: FitOptions, arguments: dict[str, Any]) -> None:
    """Refuse what topics do not have.

    Raises
    ------
    BadParameter
        If the user asked for it.
    """
    if request.non_numeric is not NonNumeric.ERROR:
        what = f"leave --non-numeric {request.non_numeric.value} out; --text COLUMN takes a column of texts"
    elif arguments["uncertainty"] in ("integrated", "linear_response", "second_order"):
        what = "linear response of topics is not asked for here, but in Python; leave --uncertainty out"
    else:
        return
    raise typer.BadParameter(f"--model topics fits topics: {what}")
