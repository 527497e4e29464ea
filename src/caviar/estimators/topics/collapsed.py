"""Topics by collapsed passes, and priors that are learnt along them."""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ParameterError
from ..._typing import Array
from ...engine.ascent.driver import Progress
from ...engine.topics.passes.collapsed import CollapsedTopics
from ...engine.topics.passes.left_out import LeftOutTopics
from ...engine.topics.passes.trials import best_of_trials, n_trials
from ...families import Dirichlet
from ...fitting.progress import lines, reporter
from ..arguments.checks import require_choice
from ..arguments.fit_arguments import progress_of

_LEARNS_FROM, _LEARNS_EVERY = 20, 5
"""Pass after which priors are learnt, and passes between two of their updates; sooner, topics run dry."""

_PASSES_BEFORE = 12
"""Passes with blocks of documents left out, which lead to topics sooner, before collapsed ones."""

_SETTLED = 1e-3
"""Share of the tokens that change topics in a pass below which collapsed passes have settled."""


LEARNING_PASSES = 60
"""Collapsed passes by which priors are learnt before coordinate ascent."""

LEARN = "learn"

MEAN_FIELD, COLLAPSED = "mean_field", "collapsed"

UNHEEDED: Mapping[str, Any] = {
    "learning_method": "batch",
    "executor": None,
    "total_samples": None,
    "evaluate_every": -1,
}
"""Arguments that collapsed passes cannot heed, and the values that ask nothing."""

log = logging.getLogger("caviar")


@dataclass(frozen=True)
class Learnt:
    """Which of the priors are learnt."""

    of_documents: bool
    of_words: bool

    @property
    def any(self) -> bool:
        """Whether any prior is."""
        return self.of_documents or self.of_words


def learnt_of(doc_topic_prior: Any, topic_word_prior: Any) -> Learnt:
    """Return which of the priors are learnt.

    Raises
    ------
    ParameterError
        If one is another word than "learn".
    """
    for name, value in (("doc_topic_prior", doc_topic_prior), ("topic_word_prior", topic_word_prior)):
        if isinstance(value, str) and value != LEARN:
            raise ParameterError(
                f"{name} must be a positive number, an array of such, or 'learn'; got {value!r}"
            )
    return Learnt(isinstance(doc_topic_prior, str), isinstance(topic_word_prior, str))


def refuse_beside(method: Any, learnt: Learnt, given: Mapping[str, Any]) -> None:
    """Refuse what collapsed passes, and priors that are learnt by them, cannot heed.

    Parameters
    ----------
    method
        "mean_field" or "collapsed".
    learnt
        Which of the priors are.
    given
        Name -> value of the arguments of :data:`UNHEEDED`.

    Raises
    ------
    ParameterError
        If there is any.
    """
    require_choice("method", method, (MEAN_FIELD, COLLAPSED))
    if learnt.any and given["total_samples"] is not None:
        raise ParameterError(
            "priors are learnt from all documents at once, but total_samples= is for documents that arrive in "
            "parts: give the priors as numbers, such as doc_topic_prior_ of a fit to the first documents"
        )
    if method != COLLAPSED:
        return
    if given["evaluate_every"] > 0:
        raise ParameterError(
            "evaluate_every needs the bound, which collapsed passes do not compute: leave it out"
        )
    for name in ("learning_method", "executor", "total_samples"):
        if given[name] != UNHEEDED[name]:
            raise ParameterError(
                f"{name}={given[name]!r} is for method='mean_field': collapsed passes see all documents in order, on "
                f"one thread. Leave one of the two out"
            )


def refuse_checkpoint(checkpoint: Any) -> None:
    """Refuse a checkpoint of collapsed passes.

    Raises
    ------
    ParameterError
        If one is asked for.
    """
    if checkpoint is not None:
        raise ParameterError(
            "checkpoint= cannot save collapsed passes (of method='collapsed', or to learn priors): leave "
            "it out"
        )


@dataclass(frozen=True)
class CollapsedFit:
    r"""Where collapsed passes ended.

    Attributes
    ----------
    topics
        :math:`\mathrm{Dir}(\eta + N_{kv})`, one for each topic.
    doc_topic_prior, topic_word_prior
        :math:`\alpha`, shape (K,), and :math:`\eta`, shape (V,), as given or as learnt.
    n_iter, converged
        Passes made, and whether fewer than a thousandth of the tokens changed topics in the last.
    """

    topics: Dirichlet
    doc_topic_prior: Array
    topic_word_prior: Array
    n_iter: int
    converged: bool


def fit_collapsed(
    counts: Any,
    weights: Array | None,
    priors: tuple[Array, Array],
    learnt: Learnt,
    rng: np.random.Generator,
    most: int,
    is_to_end: Callable[[int, float], object],
) -> CollapsedFit:
    """Return where collapsed passes end.

    Parameters
    ----------
    counts, weights
        Of words, a sparse array by rows without zeros; and of the documents, or None.
    priors
        Concentrations of proportions, (K,), and of topics, (V,); to begin with, where they are learnt.
    learnt
        Which of them are.
    rng
        Draws where the passes begin.
    most
        Passes at most.
    is_to_end
        Called after each pass with its number and the share of the tokens that changed topics; whether to end there.
    """
    n_before = min(_PASSES_BEFORE, most)
    before = best_of_trials(
        lambda: LeftOutTopics(counts, weights, *priors, rng, n_before),
        n_trials(counts, len(priors[0])),
        n_before,
    )
    topics = CollapsedTopics(counts, weights, *priors, before.responsibilities())
    number, converged = 0, False
    while number < most and not converged:
        moved = topics.sweep()
        number += 1
        if learnt.any and number >= _LEARNS_FROM and number % _LEARNS_EVERY == 0:
            topics.learn(of_documents=learnt.of_documents, of_words=learnt.of_words)
        if is_to_end(number, moved):
            break
        converged = moved < _SETTLED and (not learnt.any or number > 2 * _LEARNS_FROM)
    concentration = np.ascontiguousarray((topics.word_prior + topics.of_words).T)
    return CollapsedFit(
        Dirichlet(concentration), topics.prior, topics.word_prior[:, 0].copy(), number, converged
    )


@contextmanager
def watched(verbose: Any) -> Iterator[Callable[[Progress], object] | None]:
    """Yield what is called after each collapsed pass, if anything; with ``True`` lines are logged meanwhile."""
    progress = progress_of(verbose)
    if progress is True:
        with lines():
            yield None
    else:
        with reporter(progress) as callback:
            yield callback


def teller(verbose: Any, start: int, n_starts: int, most: int) -> Callable[[int, float], object]:
    """Return a reporter of collapsed passes: it logs a line for each, or calls a function, which may stop the passes.

    The function gets a :class:`caviar.engine.ascent.driver.Progress`, whose bound and change are NaN: along collapsed
    passes no bound is known.
    """
    if callable(verbose):
        return lambda number, _: verbose(Progress(start, n_starts, number, most, math.nan, math.nan))
    return lambda number, moved: log.info(
        "start %d/%d  collapsed pass %d/%d  %.2f%% of the tokens changed topics",
        start + 1,
        n_starts,
        number,
        most,
        100 * moved,
    )
