"""Latent Dirichlet allocation under scikit-learn's contract."""

from __future__ import annotations

import os
from dataclasses import field
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array, issparse
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from .._errors import DataError
from .._typing import Array
from ..data.frames import refuse_other_rows
from ..data.rows import on_host
from ..engine.ascent.schedule import StatedSchedule
from ..engine.ascent.schedules.stochastic import Stochastic as StochasticSteps
from ..engine.ascent.status import Status
from ..engine.evaluation.evaluate import objective_at
from ..fitting.model import Model, _Evaluator
from ..fitting.progress import reporter
from ..lazy.rows import in_memory
from ..lazy.sparse_rows import SparseRows
from ..numerics.arguments import require_whole
from ..posterior.posterior import Posterior
from .arguments.checkpointing import Checkpointing
from .arguments.checks import as_generator
from .arguments.declared import estimator
from .arguments.fitted import Fitted, keep
from .automatic.problem import factors_of
from .evidence import HasEvidence
from .searched import Searched
from .tables.given_tables import require_table, validated, words_told
from .tables.lazy_rows import checked_documents, checked_weights
from .tables.numbers import refuse_no_counts, refuse_texts
from .topics.collapsed import (
    COLLAPSED,
    LEARNING_PASSES,
    CollapsedFit,
    fit_collapsed,
    learnt_of,
    refuse_checkpoint,
    teller,
    watched,
)
from .topics.documents_in_blocks import for_collapsed_passes, total_of
from .topics.perplexity import PerplexityWatch, divided, perplexity_of
from .topics.statement import TopicsPrior, divergence, is_process, moved, topics_prior
from .topics.topic_schedule import schedule_of
from .topics.words import Words

_REMEDY = "Fit again, or add documents by partial_fit"


@estimator
class LatentDirichletAllocation(
    Words, ClassNamePrefixFeaturesOutMixin, TransformerMixin, HasEvidence, Searched
):
    r"""Topic model: documents are mixtures of topics, which are distributions over words. Names are as in scikit-learn.

    .. math::
        \theta_d \sim \mathrm{Dir}(\alpha), \quad \beta_k \sim \mathrm{Dir}(\eta), \quad
        z_{dn} \sim \mathrm{Cat}(\theta_d), \quad w_{dn} \mid z_{dn} \sim \mathrm{Cat}(\beta_{z_{dn}})

    The model is :func:`caviar.models.latent_dirichlet_allocation`. Data are word counts, documents x words, dense or
    sparse; they need not be whole numbers.

    Parameters
    ----------
    n_components
        Number of topics K; with a Dirichlet process, an upper bound.
    doc_topic_prior_type
        ``"dirichlet_distribution"``: the proportions of documents have independent Dirichlet priors.
        ``"dirichlet_process"``: their priors are centred on common stick-breaking weights, a hierarchical Dirichlet
        process; superfluous topics become empty.
    doc_topic_prior
        :math:`\alpha`, a number or shape (K,); by default 1/K. ``"learn"`` estimates an entry for each topic during
        collapsed passes. With a Dirichlet process, a number, the sum of the concentrations; by default 1.
    topic_concentration
        With a Dirichlet process, the concentration of the stick-breaking weights. Larger values mean more topics.
    moves
        With a Dirichlet process, the largest number of rounds of moves. They find the number of topics: fits with 2,
        3, 4, 6, 8, ... topics are made until three in a row have no higher ELBO; from the best of these, topics are
        merged, deleted and split as long as that raises the ELBO of all documents.
    topic_word_prior
        :math:`\eta`, a number or shape (V,) for V words; by default 1/K. ``"learn"`` estimates one number for all words
        during collapsed passes. Learned priors are point estimates, and the ELBO is that of the model with these
        values.
    method
        ``"mean_field"``: coordinate ascent of the ELBO, started from the topics of a few passes that predict each
        block of documents from the others. ``"collapsed"``: only
        collapsed passes, which do not raise a bound but often predict held-out words better (Asuncion et al., 2009).
        They use one thread, and memory for K numbers for each nonzero count. ``max_iter`` is the largest number of
        passes; they have converged when fewer than one token in a thousand changes its topic. With numba
        (``caviar[compiled]``) a pass takes a quarter of the time and updates tokens in another order, so that topics
        differ a little from those without.
    learning_method
        When topics are updated. ``"batch"``: after a pass over all documents. ``"incremental"``: after each of 16
        batches, with the exact ELBO. ``"online"``: by steps of decreasing size, each from ``batch_size`` documents.
        With ``"batch"`` a document of weight 2 counts exactly as two equal documents. With the others the optimum may
        depend on which documents share a batch.
    learning_decay, learning_offset
        :math:`\kappa` (from 0.5 to 1) and :math:`\tau` of the size :math:`(t + \tau)^{-\kappa}` of online steps. Above
        0.5 the steps converge to a stationary point; at 0.5 they need not.
    max_iter
        Largest number of passes over the documents. Passes of the start do not count.
    batch_size
        Number of documents of an online step.
    evaluate_every
        Number of passes between evaluations of the training perplexity :math:`\exp(-\mathrm{ELBO} / \mathrm{words})`,
        which are printed if ``verbose=True``. The fit ends when the perplexity changes by less than ``perp_tol``
        between two evaluations. 0 or a negative number: never. With online steps it is an estimate from the batches of
        the pass.
    vocabulary
        The V words of the columns, as ``CountVectorizer.get_feature_names_out()`` returns them; by default the names of
        the columns, if ``X`` has names. Plots, reports and :meth:`top_words` show these words.
    total_samples
        None: :meth:`partial_fit` adds documents to earlier ones, and each counts once. A number: :meth:`partial_fit`
        makes online steps, as in scikit-learn, as if the corpus had this number of documents. :meth:`fit` does not use
        it.
    perp_tol
        Tolerance of the perplexity, see ``evaluate_every``.
    mean_change_tol, max_doc_update_iter
        Arguments of scikit-learn without a counterpart; must be None. In each pass the proportions of a document
        continue from the last pass, and :meth:`transform` finds their optimum.
    tol
        The fit has converged when a pass changes the ELBO by less than this, in nats per document.
    {n_init}
    random_state
        Seed of the starts: a whole number, a Generator or a RandomState.
    {n_jobs}
    executor
        Where blocks of documents are processed, as for :meth:`caviar.Model.fit`.
    verbose
        By default a fit of more than 5 seconds shows one line that changes, if standard error is a terminal, and in
        notebooks. True prints a line for each pass, False nothing. A function is called with the
        :class:`caviar.Progress` of each pass.
    uncertainty
        Which standard deviations and intervals ``posterior_`` shows. ``"auto"`` takes those of linear response if they
        cost at most as much as the fit, as for few topics and a small vocabulary, and mean field otherwise.
        ``"mean_field"`` takes those of the factors of the topics.

    Attributes
    ----------
    components_
        :math:`\eta_{kv}`, concentrations of :math:`q(\beta_k)`, shape (K, V). The mean of a topic is its row divided by
        the sum of the row.
    exp_dirichlet_component_
        :math:`\exp\langle\log\beta_{kv}\rangle`, shape (K, V).
    doc_topic_prior_, topic_word_prior_
        The priors that were used.
    topic_weights_
        With a Dirichlet process, the expected common weights, shape (K,).
    moves_
        Every :class:`caviar.Move` that was tried.
    elbo_
        Lower bound of the log evidence of the sequences of words, in nats, including all constants. After
        :meth:`partial_fit` it is that of the last documents given the earlier ones.
    elbo_trace_
        The ELBO at the start and after each pass, shape (n_iter_ + 1,); with collapsed passes only that at the end.
    bound_
        Perplexity from the ELBO, :math:`\exp(-\mathrm{ELBO} / \mathrm{words})`; NaN if there are no words.
    n_iter_, converged_
        Number of passes of the best start, and whether the ELBO (or the perplexity, by ``perp_tol``) converged.
    n_batch_iter_
        Number of updates of the topics in :meth:`fit` and all later calls of :meth:`partial_fit`: one for each pass, or
        one for each batch of a pass.
    random_state_
        The random generator, as in scikit-learn.
    posterior_
        The :class:`caviar.Posterior`.
    n_features_in_, feature_names_in_
        Number of words V, and the words if the columns of ``X`` had names.
    topics_in_use_
        Numbers of the topics that have words: all, except with a Dirichlet process.
    vocabulary_
        The word of each column, shape (V,): ``vocabulary``, or the names of the columns.

    Notes
    -----
    The time of a pass is proportional to K times the number of nonzero counts. Memory beyond the data is documents x K
    for ``"batch"`` and ``"incremental"``, and topics x words for each of a few batches; with ``"online"`` and documents
    of :func:`caviar.scan_documents` it does not grow with the number of documents.

    Blei, Ng and Jordan (2003); Hoffman, Blei and Bach (2010) for online steps.

    Examples
    --------
    >>> import caviar as cv
    >>> counts = [[6, 4, 0, 0], [5, 5, 0, 0], [0, 0, 5, 5], [0, 0, 2, 8], [5, 5, 6, 4]]
    >>> lda = cv.LatentDirichletAllocation(2, doc_topic_prior=0.1, topic_word_prior=0.01, random_state=0).fit(
    ...     counts
    ... )
    >>> proportions = lda.transform(counts)
    >>> np.sort(proportions[[0, 2, 4]]).round(1)
    array([[0. , 1. ],
           [0. , 1. ],
           [0.5, 0.5]])
    """

    n_components: int = field(default=10, kw_only=False)
    doc_topic_prior_type: str = "dirichlet_distribution"
    doc_topic_prior: ArrayLike | str | None = None
    topic_concentration: float = 5.0
    moves: int = 0
    topic_word_prior: ArrayLike | str | None = None
    method: str = "mean_field"
    learning_method: str = "batch"
    learning_decay: float = 0.7
    learning_offset: float = 10.0
    max_iter: int = 100
    batch_size: int = 128
    evaluate_every: int = -1
    total_samples: float | None = None
    perp_tol: float = 0.1
    mean_change_tol: None = None
    max_doc_update_iter: None = None
    tol: float = 1e-2
    vocabulary: Any = None

    _kind_in_words = "Topics by latent Dirichlet allocation"
    _label_in_words = "topic"
    components_: ClassVar[Any] = Fitted(_REMEDY)
    doc_topic_prior_: ClassVar[Any] = Fitted(_REMEDY)
    topic_word_prior_: ClassVar[Any] = Fitted(_REMEDY)
    topic_weights_: ClassVar[Any] = Fitted("Fit with doc_topic_prior_type='dirichlet_process'")
    elbo_trace_: ClassVar[Any] = Fitted()

    def __sklearn_tags__(self) -> Any:
        """Return the tags for scikit-learn: counts are not negative, and may be sparse."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.positive_only = True
        return tags

    def fit(
        self,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        *,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Fit the topics to documents.

        Parameters
        ----------
        X
            Word counts, documents x words, not negative: an array or a sparse matrix, or documents on disk that are
            read in blocks, see :func:`caviar.scan_documents`.
        y
            Ignored.
        sample_weight
            Weight of each document. A document of weight 2 counts as two equal documents.
        checkpoint
            Path of a file that keeps the state of the fit, as for :meth:`caviar.Model.fit`. After an interruption, the
            same call on an estimator with the same arguments continues from there. It needs a ``random_state``.
        checkpoint_every
            Seconds between two writes of the file; 0 writes it after every pass.

        Returns
        -------
        self

        Raises
        ------
        DataError, ParameterError
            If counts or an argument is invalid.
        """
        Checkpointing(checkpoint, checkpoint_every).check(self.random_state)
        counts, sample_weight = self._documents(X, sample_weight, reset=True)
        schedule = self._check_settings()
        generator = as_generator(self.random_state)
        collapsed: CollapsedFit | None = None
        if self.method == COLLAPSED or learnt_of(self.doc_topic_prior, self.topic_word_prior).any:
            refuse_checkpoint(checkpoint)
            posterior, collapsed = self._after_collapsed_passes(counts, sample_weight, generator, schedule)
            keep(
                self, doc_topic_prior_=collapsed.doc_topic_prior, topic_word_prior_=collapsed.topic_word_prior
            )
        else:
            kept = {"checkpoint": checkpoint, "checkpoint_every": checkpoint_every}
            posterior = self._settled((counts, sample_weight, generator, schedule), kept)
        if schedule.settles and self.method != COLLAPSED:
            self._tell_end(posterior)
        self._keep(posterior)
        if collapsed is not None and self.method == COLLAPSED:
            self.n_iter_, self.converged_ = collapsed.n_iter, collapsed.converged
        self._set_perplexity(counts, sample_weight)
        self.n_batch_iter_ = posterior.n_updates or 0
        self._generator = generator.spawn(1)[0]
        return self

    def _settled(self, documents: tuple[Any, Any, Any, Any], kept: dict[str, Any]) -> Posterior:
        """Return the posterior of the stated model, after moves if these are asked for."""
        model = self._stated(documents[0].shape[1])
        is_moved = self.moves > 0 and is_process(self)
        if not is_moved:
            return self._fitted(model, *documents, **kept)
        counts, weights, generator, schedule = documents
        arguments = {**self._arguments_of_model(), "schedule": schedule}
        with Checkpointing(kept["checkpoint"], kept["checkpoint_every"]).opened() as next_fit:
            posterior, self.moves_ = moved(self, next_fit, counts, weights, generator, arguments)
        return posterior

    def _after_collapsed_passes(
        self,
        counts: csr_array,
        weights: Array | None,
        generator: np.random.Generator,
        schedule: StatedSchedule,
    ) -> tuple[Posterior, CollapsedFit]:
        """Return the best posterior of as many starts as are asked for, and the collapsed passes that it began from."""
        learnt = learnt_of(self.doc_topic_prior, self.topic_word_prior)
        n_words, is_whole = counts.shape[1], self.method == COLLAPSED
        stated = topics_prior(self, n_words)
        priors = (
            np.broadcast_to(stated.proportions, (self.n_components,)),
            np.broadcast_to(stated.topics, (n_words,)),
        )
        most = self.max_iter if is_whole else LEARNING_PASSES
        seen = for_collapsed_passes(self.method, counts, weights, self.n_components)
        found: list[tuple[Posterior, CollapsedFit]] = []
        with watched(self.verbose) as callback:
            for number, rng in enumerate(generator.spawn(self.n_init)):
                tell = teller(callback, number, self.n_init, most)
                fit = fit_collapsed(*seen, priors, learnt, rng, most, tell)
                keep(self, doc_topic_prior_=fit.doc_topic_prior, topic_word_prior_=fit.topic_word_prior)
                posterior = self._fitted(
                    TopicsPrior(self.n_components, fit.doc_topic_prior, fit.topic_word_prior, None).model(
                        n_words
                    ),
                    counts,
                    weights,
                    rng,
                    schedule,
                    init={"topics": fit.topics},
                    n_restarts=1,
                    **({"max_iter": 0} if is_whole else {}),
                )
                found.append((posterior, fit))
        return max(found, key=lambda each: each[0].elbo)

    def fit_transform(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, normalize: bool = True
    ) -> Array:
        """Fit the topics to documents and return the expected topic proportions, shape (documents, K).

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`.
        normalize
            As for :meth:`transform`.
        """
        return self.fit(X, y, sample_weight=sample_weight).transform(X, normalize=normalize)

    def _documents(self, X: Any, sample_weight: Any, *, reset: bool) -> tuple[csr_array, Array | None]:
        """Return counts of words, and the weights of the documents, after both were checked."""
        refuse_other_rows(X, sample_weight=sample_weight)
        counts = self._validated(X, reset=reset)
        self._check_vocabulary(counts.shape[1])
        return counts, None if sample_weight is None else checked_weights(on_host(sample_weight), counts)

    def _stated(self, n_words: int) -> Model:
        """Return the model, after checking its priors."""
        prior = topics_prior(self, n_words)
        keep(self, doc_topic_prior_=prior.proportions, topic_word_prior_=prior.topics)
        return prior.model(n_words)

    def _fitted(
        self,
        model: Model,
        counts: csr_array,
        weights: Array | None,
        generator: np.random.Generator,
        schedule: StatedSchedule,
        **arguments: Any,
    ) -> Posterior:
        """Return the posterior of a model of these documents."""
        arguments = {**self._arguments_of_model(), **arguments}
        with reporter(arguments["progress"]) as tell:
            progress = tell
            if self.evaluate_every > 0:
                progress = PerplexityWatch(
                    self.evaluate_every, self.perp_tol, total_of(counts, weights), progress
                )
            return model.fit(
                {"word": counts},
                seed=generator,
                sample_weight=weights,
                schedule=schedule,
                **{"n_restarts": self.n_init, **arguments, "progress": progress or False},
            )

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Update the topics with more documents: their posterior is the prior for these.

        The first call is a fit. The order of the documents matters, and the first call should contain all topics. With
        ``total_samples`` each call makes online steps whose size continues to decrease, and ``elbo_`` is the bound for
        a corpus of this many documents like those of the last call.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`: new documents with the same words.

        Returns
        -------
        self
        """
        if self.total_samples is not None:
            return self._step(*self._documents(X, sample_weight, reset=not hasattr(self, "posterior_")))
        if not self._has_met_words:
            return self.fit(X, y, sample_weight=sample_weight)
        counts, sample_weight = self._documents(X, sample_weight, reset=False)
        self._check_settings()
        posterior = self.posterior_.update(
            {"word": counts},
            sample_weight=sample_weight,
            **self._arguments_of_model(),
        )
        self._keep(posterior)
        self._set_perplexity(counts, sample_weight)
        self.n_batch_iter_ += posterior.n_updates or 0
        return self

    def _step(self, counts: csr_array, weights: Array | None) -> Self:
        """Make an online step from each batch of documents, which count as ``total_samples``; return self."""
        self._check_settings()
        is_first = not self._has_met_words
        if is_first:
            self._generator = as_generator(self.random_state)
            self.n_batch_iter_ = 0
        model = self._stated(counts.shape[1]) if is_first else self.posterior_.model
        own = np.ones(counts.shape[0]) if weights is None else weights
        share = own * (float(self.total_samples or 0) / own.sum()) if own.any() else own
        delay = self.learning_offset + self.n_batch_iter_
        posterior = self._fitted(
            model,
            counts,
            share,
            self._generator,
            StochasticSteps(self.batch_size, delay, self.learning_decay),
            max_iter=1,
            n_restarts=1,
            init="auto" if is_first else factors_of(self.posterior_),
        )
        self._keep(posterior)
        self._set_perplexity(counts, share)
        self.n_batch_iter_ += posterior.n_updates or 0
        return self

    def transform(self, X: Any, *, normalize: bool = True) -> Array:
        """Return the expected topic proportions of documents, shape (documents, K); the topics do not change.

        Parameters
        ----------
        X
            Counts, as for :meth:`fit`.
        normalize
            False returns the concentrations of the factors of the proportions instead.
        """
        check_is_fitted(self)
        concentration = self._concentrations(self._validated(X, reset=False))
        return concentration / concentration.sum(axis=1, keepdims=True) if normalize else concentration

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        r"""Return a lower bound of the log probability of documents under the posterior of the topics, in nats.

        .. math:: \sum_d \mathrm E[\log p(w_d, z_d, \theta_d \mid \beta)] + \mathrm H[z_d] + \mathrm H[\theta_d]

        under the optimal factors of each document. The score of scikit-learn also subtracts the divergence of the
        topics from their prior, for any documents. For the documents of the fit this gives ``elbo_``; for a
        few new documents the divergence dominates.

        Parameters
        ----------
        X, y
            Counts, as for :meth:`fit`; ``y`` is ignored.
        sample_weight
            Weight of each document. A document of weight 2 counts as two equal documents.
        """
        check_is_fitted(self)
        return self._score(*self._documents(X, sample_weight, reset=False))

    def perplexity(self, X: Any, sub_sampling: bool = False) -> float:
        """Return ``exp(-score(X) / words)``, an upper bound on the perplexity of documents.

        Parameters
        ----------
        X
            Counts, as for :meth:`fit`.
        sub_sampling
            Whether the documents count as ``total_samples``. It does not change the result here, because score and
            words grow in proportion. (The score of scikit-learn has a part that does not grow, see :meth:`score`.)
        """
        check_is_fitted(self)
        counts = self._validated(X, reset=False)
        n_tokens = counts.sum()
        if not n_tokens:
            raise DataError("the perplexity of documents without any word is not defined; X is all zero")
        return float(np.exp(-self._score(counts) / n_tokens))

    def completion_perplexity(self, X: Any, held_out: Any = None, *, random_state: Any = 0) -> float:
        r"""Return the perplexity of document completion: how well some words of a document predict the others.

        .. math:: \exp\Bigl(-\frac{\sum_{dv} n_{dv} \log \sum_k \mathrm E[\theta_{dk}] \mathrm E[\beta_{kv}]}{\sum_{dv}
                  n_{dv}}\Bigr)

        where the proportions come from the words of ``X``, and the sums run over the held-out words. Unlike the ELBO it
        measures the predictive distribution and can compare methods.

        Parameters
        ----------
        X
            Counts of the observed words.
        held_out
            Counts of the held-out words, in the same shape. Without it, each token of ``X`` (whole numbers) is held out
            with probability one half.
        random_state
            Seed of this division.

        Notes
        -----
        Wallach, Murray, Salakhutdinov and Mimno, "Evaluation methods for topic models" (2009), section 5.1.

        Examples
        --------
        >>> import caviar as cv
        >>> counts = cv.datasets.load_political_blogs().counts
        >>> lda = cv.LatentDirichletAllocation(5, random_state=0, tol=1.0).fit(counts[:200])
        >>> bool(lda.completion_perplexity(counts[200:400]) < 2632 / 1.5)  # of 2,632 words
        True
        """
        check_is_fitted(self)
        seen = in_memory(self._validated(X, reset=False))
        if held_out is None:
            seen, rest = divided(seen, as_generator(random_state))
        else:
            rest = in_memory(self._validated(held_out, reset=False))
        if rest.shape != seen.shape:
            raise DataError(f"held_out must have the shape of X, {seen.shape}; got {rest.shape}")
        if not rest.nnz:
            raise DataError("no word is held out; give documents with more words")
        concentration = self._concentrations(seen)
        proportions = concentration / concentration.sum(axis=1, keepdims=True)
        topics = np.ascontiguousarray(self.posterior_["topics"].mean.T)
        return perplexity_of(rest, proportions, topics)

    def _concentrations(self, counts: csr_array) -> Array:
        """Return the concentrations of the proportions of documents, shape (documents, K)."""
        if isinstance(counts, SparseRows):
            return np.concatenate([self._concentrations(block) for _, block in counts.blocks()])
        return self.posterior_.local({"word": counts})["proportions"].concentration

    def _score(self, counts: csr_array, weights: Array | None = None) -> float:
        # measured from the prior of the statement, not from that of the last call of partial_fit
        plan, row_map = _Evaluator(self.posterior_.model, (), None).bind({"word": counts}, weights)
        return objective_at(plan, factors_of(self.posterior_), row_map) + divergence(self, self.posterior_)

    @property
    def _has_met_words(self) -> bool:
        """Whether the topics were fitted to any word; otherwise they are all alike, and no fit can continue."""
        if not hasattr(self, "posterior_"):
            return False
        prior = np.broadcast_to(self.topic_word_prior_, self.components_.shape)
        return not np.allclose(self.components_, prior, rtol=1e-12, atol=0)

    def _keep(self, posterior: Posterior) -> None:
        super()._keep(posterior)
        self._name_words(posterior)
        if "weights" in posterior:
            keep(self, topic_weights_=posterior["weights"].mean)
        components = np.ascontiguousarray(posterior["topics"].concentration)
        keep(self, components_=components, elbo_trace_=posterior.elbo_trace)
        self.converged_ |= posterior.status is Status.STOPPED and self.evaluate_every > 0

    def _check_restored(self) -> None:
        # earlier versions did not count
        self.__dict__.setdefault("n_batch_iter_", self.n_iter_)
        if type(self.n_batch_iter_) is not int or self.n_batch_iter_ < 0:
            raise ValueError(f"a number of updates {self.n_batch_iter_!r:.40}")

    def _set_perplexity(self, counts: csr_array, weights: Array | None) -> None:
        n_words = total_of(counts, weights)
        with np.errstate(over="ignore"):
            self.bound_ = float(np.exp(-self.elbo_ / n_words)) if n_words else np.nan

    @property
    def random_state_(self) -> np.random.Generator:
        """The random generator, as in scikit-learn."""
        check_is_fitted(self)
        return self._generator

    @property
    def exp_dirichlet_component_(self) -> Array:
        """``exp`` of the expected log of the topics, shape (K, V)."""
        check_is_fitted(self)
        return np.exp(self.posterior_["topics"].expected_statistics[0])

    @property
    def _n_features_out(self) -> int:
        """Number of columns of :meth:`transform`."""
        return len(self.components_)

    def _as_data(self, X: Any) -> dict[str, Any]:
        return {"word": self._validated(X, reset=False)}

    def _validated(self, X: Any, *, reset: bool) -> csr_array:
        if isinstance(X, SparseRows):
            return checked_documents(self, X, reset=reset)
        refuse_texts(X)
        X = on_host(X)
        require_table(X)
        if not reset:
            self._refuse_words_in_another_order(X)
        with words_told(X, "count the words of texts with caviar.data.count_words(texts)"):
            X = validated(
                self,
                # before entries of a short type are added where several are of one word
                X.astype(np.float64, copy=False) if issparse(X) and X.dtype.kind in "biu" else X,
                reset=reset,
                accept_sparse="csr",
                dtype=np.float64,
                # a missing count is refused below, in the words of counts
                ensure_all_finite="allow-nan",
            )
        counts = csr_array(X)
        refuse_no_counts(counts, getattr(self, "feature_names_in_", None))
        if counts is X or np.shares_memory(
            counts.data, getattr(X, "data", None) if hasattr(X, "indptr") else ()
        ):
            counts = counts.copy()
        counts.sum_duplicates()
        counts.eliminate_zeros()
        return counts

    def _check_settings(self) -> StatedSchedule:
        """Return the schedule of the fit, after checking the arguments."""
        require_whole("n_components", self.n_components, 1)
        self._check_fit_arguments()
        return schedule_of(self)
