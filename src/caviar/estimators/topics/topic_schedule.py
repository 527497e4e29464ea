"""The schedule that arguments of topics ask for, after these were checked."""

from __future__ import annotations

from typing import Any

from ..._errors import ParameterError
from ...engine.ascent.schedule import StatedSchedule
from ...engine.ascent.schedules.stochastic import Stochastic
from ...engine.assemble import as_schedule
from ...numerics.arguments import require_whole
from ..arguments.checks import require_choice, require_number
from .collapsed import UNHEEDED, learnt_of, refuse_beside
from .statement import check_process

_UNCERTAINTIES = ("auto", "mean_field")


def schedule_of(lda: Any) -> StatedSchedule:
    """Return the schedule of a :class:`caviar.LatentDirichletAllocation`.

    Raises
    ------
    ParameterError
        If an argument is impossible, or has no place beside another; the message names it.
    """
    require_choice(
        "uncertainty of topics (lda.posterior_.linear_response(data) has that of linear response)",
        lda.uncertainty,
        _UNCERTAINTIES,
    )
    check_process(lda)
    require_whole("batch_size", lda.batch_size, 1)
    require_number("learning_decay", lda.learning_decay)
    require_number("learning_offset", lda.learning_offset)
    require_number("perp_tol", lda.perp_tol)
    require_whole("evaluate_every", lda.evaluate_every, at_least=None)
    if lda.total_samples is not None:
        require_number("total_samples, if it is not None,", lda.total_samples, above=0)
    _refuse_effort(lda)
    require_choice("learning_method", lda.learning_method, ("batch", "incremental", "online"))
    learnt = learnt_of(lda.doc_topic_prior, lda.topic_word_prior)
    refuse_beside(lda.method, learnt, {name: getattr(lda, name) for name in UNHEEDED})
    if not 0.5 <= lda.learning_decay <= 1:
        raise ParameterError(
            f"learning_decay must be from 0.5 to 1, or the steps would not converge; got "
            f"{lda.learning_decay!r}"
        )
    if lda.learning_method == "online":
        return Stochastic(lda.batch_size, lda.learning_offset, lda.learning_decay)
    return as_schedule(lda.learning_method)


def _refuse_effort(lda: Any) -> None:
    """Refuse scikit-learn's settings of the updates of a document."""
    for name in ("mean_change_tol", "max_doc_update_iter"):
        value = getattr(lda, name)
        if value is not None:
            raise ParameterError(
                f"{name}={value!r} is not used here: each pass continues a document where the last pass "
                f"left it, and transform finds its optimum. Leave it out; tol and max_iter limit the fit"
            )
