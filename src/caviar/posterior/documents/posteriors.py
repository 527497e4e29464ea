"""A posterior as plain values: its model, its factors, and what it needs to continue with other rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from ...storage import document_of_statement
from .factors import document_of_factor


def document_of_posterior(posterior: Any) -> dict[str, Any]:
    """Return a posterior, with its model, as plain values.

    Nothing in them grows with the rows of data: factors of local variables are functions of the rows and of the global
    factors, and are found again.
    """
    evaluator, local = posterior._evaluator, sorted(posterior._local)
    hidden = {*posterior, *local}
    factors = None if evaluator.factors is None else [list(group) for group in evaluator.factors]
    plate, prior = evaluator.data_plate, evaluator.prior
    return {
        "model": document_of_statement(posterior.model.nodes, posterior.model.leaves),
        "arguments": {
            "point": list(evaluator.point),
            "factors": factors,
            "on_factors": evaluator.on_factors,
            "data_plate": None if plate is None else plate.name,
        },
        "factors": _documents_of(posterior._factors),
        "coupled": _documents_of(posterior._shared.by_name),
        "local": local,
        "has_gaps": posterior._has_gaps,
        "observed": [name for name in posterior.model.variables if name not in hidden],
        "elbo": posterior.elbo,
        "elbo_trace": posterior.elbo_trace,
        "elbo_terms": dict(posterior.elbo_terms),
        "status": posterior.status.value,
        "n_iter": posterior.n_iter,
        "restart_elbos": posterior.restart_elbos,
        "restart_traces": {
            "lengths": np.array([len(trace) for trace in posterior.restart_traces], dtype=np.int64),
            "values": np.concatenate([np.empty(0), *posterior.restart_traces]),
        },
        "beliefs": {
            "of_points": _documents_of(posterior._of_points),
            "prior": prior
            and {"factors": _documents_of(prior.factors), "of_points": _documents_of(prior.of_points)},
        },
        "data": posterior.data_summary,
        "names": evaluator.names.as_plain(posterior.model.axes),
        "uncertainty": posterior._shown_as("auto").as_plain(),
        "row_marks": None if posterior.row_marks is None else posterior.row_marks.as_plain(),
    }


def _documents_of(factors: Any) -> dict[str, Any]:
    return {name: document_of_factor(factor) for name, factor in factors.items()}
