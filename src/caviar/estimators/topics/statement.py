"""What an estimator of topics states, and what it does with moves of topics."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import csr_array

from ..._errors import ParameterError
from ..._typing import Array
from ...engine.ascent.driver import EndedBy
from ...families import Dirichlet, StickBreaking
from ...fitting.model import Model
from ...models import latent_dirichlet_allocation
from ...numerics.arguments import require_whole
from ...posterior.posterior import Posterior
from ..arguments.checkpointing import NextFit
from ..arguments.checks import as_broadcast, require_choice, require_number
from ..automatic.move import Move, Until
from ..automatic.pace import Pace, watched
from ..automatic.topics import AFTER_INTERRUPTION, PATIENCE, TopicMoves, best_of_numbers
from ..priors.transitions import KINDS
from .collapsed import COLLAPSED, learnt_of


class TopicsPrior(NamedTuple):
    """Priors of proportions and of topics; ``stick`` is that of the common weights, None without these."""

    n_topics: int
    proportions: Any
    topics: Any
    stick: float | None

    def model(self, n_words: int) -> Model:
        """Return the model."""
        return latent_dirichlet_allocation(
            self.n_topics,
            n_words,
            concentration=self.proportions,
            word_concentration=self.topics,
            stick_concentration=self.stick,
        )


def topics_prior(given: Any, n_words: int) -> TopicsPrior:
    """Return the priors that an estimator asks for.

    Raises
    ------
    ParameterError
        If they are impossible.
    """
    k = given.n_components
    eta = _number(given.topic_word_prior, 1 / k)
    eta = as_broadcast("topic_word_prior", eta, (n_words,), "one for each word", above=0)
    if is_process(given):
        alpha = 1.0 if given.doc_topic_prior is None else given.doc_topic_prior
        require_number("doc_topic_prior, of a Dirichlet process,", alpha, above=0)
        return TopicsPrior(k, alpha, eta, given.topic_concentration)
    alpha = _number(given.doc_topic_prior, 1 / k)
    return TopicsPrior(
        k, as_broadcast("doc_topic_prior", alpha, (k,), "one for each topic", above=0), eta, None
    )


def _number(prior: Any, default: float) -> Any:
    """Return a prior, or where to begin if it is learnt or left out."""
    return default if prior is None or isinstance(prior, str) else prior


def is_process(given: Any) -> bool:
    """Return whether proportions are around common weights; one topic has all the weight."""
    return given.doc_topic_prior_type == "dirichlet_process" and given.n_components > 1


def check_process(given: Any) -> None:
    """Refuse impossible arguments of common weights, and moves without these."""
    require_choice("doc_topic_prior_type", given.doc_topic_prior_type, KINDS)
    require_number("topic_concentration", given.topic_concentration, above=0)
    require_whole("moves", given.moves, 0)
    is_learnt = learnt_of(given.doc_topic_prior, given.topic_word_prior).any
    if given.doc_topic_prior_type == "dirichlet_process" and (is_learnt or given.method == COLLAPSED):
        raise ParameterError(
            "collapsed passes (of method='collapsed', or to learn priors) have no common weights: leave "
            "out doc_topic_prior_type='dirichlet_process', or give method='mean_field' and priors as numbers"
        )
    if given.moves and given.doc_topic_prior_type != "dirichlet_process":
        raise ParameterError(
            f"moves={given.moves} empty topics and fill others, which needs doc_topic_prior_type='dirichlet_process'; "
            f"got {given.doc_topic_prior_type!r}"
        )


def moved(
    given: Any,
    next_fit: NextFit,
    counts: csr_array,
    weights: Array | None,
    generator: np.random.Generator,
    arguments: Mapping[str, Any],
) -> tuple[Posterior, list[Move]]:
    """Return the best posterior after rounds of moves, and these.

    Parameters
    ----------
    given
        The estimator.
    next_fit
        Gives each fit the checkpoint from which it continues after an interruption.
    counts, weights
        Documents.
    generator
        Of starts.
    arguments
        Of each fit.
    """
    stated = topics_prior(given, counts.shape[1])
    models: dict[int, Model] = {}
    pace = Pace()
    with watched(given.verbose, pace) as (tell, progress):
        # with True there is a line for each pass as well
        progress = True if arguments["progress"] is True else progress

        def fit(number: int, init: Any, most: int | None, until: Until | None, **others: Any) -> Posterior:
            if number not in models:
                models[number] = stated._replace(n_topics=number).model(counts.shape[1])
            max_iter = given.max_iter if most is None else min(most, given.max_iter)
            # what an interrupted search ends with is no step of it
            kept = None if most == AFTER_INTERRUPTION else next_fit()
            told = progress if until is None else EndedBy(progress, until)
            own = {**arguments, "progress": told, "max_iter": max_iter, "init": init, "checkpoint": kept}
            return models[number].fit(
                {"word": counts}, **{**own, "sample_weight": weights, "seed": 0, **others}
            )

        def anew(number: int, best: float) -> Posterior:
            # with several starts the worst would end them all
            is_one = given.n_init == 1 and np.isfinite(best)
            until = PATIENCE.until(best, best, counts.shape[0]) if is_one else None
            return fit(number, "auto", None, until, seed=generator, n_restarts=given.n_init)

        begun = best_of_numbers(anew, given.n_components, pace)
        prior = np.broadcast_to(stated.topics, counts.shape[1:])
        slack = max(1e-10 * abs(begun.elbo), given.tol * counts.shape[0])
        moves = TopicMoves(
            counts, weights, prior, fit, given.n_components, begun, slack, generator, tell, pace
        )
        return moves.made(given.moves), moves.moves


def divergence(given: Any, posterior: Posterior) -> float:
    """Return the divergence of topics, and of common weights, from their priors."""
    topics = posterior["topics"]
    total = float(
        topics.kl(Dirichlet(np.broadcast_to(given.topic_word_prior_, topics.concentration.shape))).sum()
    )
    if "weights" in posterior:
        weights, ones = posterior["weights"], np.ones(given.n_components - 1)
        prior = StickBreaking(ones, given.topic_concentration * ones)
        total += float(weights.kl(type(weights).widened(prior)))
    return total
