"""Latent Dirichlet allocation under scikit-learn's contract."""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import csr_array
from sklearn.base import ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import _check_sample_weight, check_is_fitted, validate_data

from .._errors import DataError, ParameterError
from .._model import _Evaluator
from .._posterior import Posterior
from .._typing import Array
from ..engine.evaluate import objective_at
from ..engine.loop import Progress
from ..engine.schedules import Schedule, as_schedule
from ..engine.schedules import Stochastic as StochasticSteps
from ..engine.status import Status
from ..families import Dirichlet
from ..models import latent_dirichlet_allocation
from ._arguments import as_broadcast, as_generator, executor_of, require_choice, require_number, require_whole
from ._checkpointing import Checkpointing
from ._mixture import UnsettledWarning
from ._saveable import Saveable

__all__ = ["LatentDirichletAllocation"]

_ENTRIES = 8_192
"""Counts above zero whose probabilities are found at once."""


class LatentDirichletAllocation(ClassNamePrefixFeaturesOutMixin, TransformerMixin, Saveable):
    r"""Documents as mixtures of topics, which are distributions over words; names as in scikit-learn.

    .. math::
        \theta_d \sim \mathrm{Dir}(\alpha), \quad \beta_k \sim \mathrm{Dir}(\eta), \quad
        z_{dn} \sim \mathrm{Cat}(\theta_d), \quad w_{dn} \mid z_{dn} \sim \mathrm{Cat}(\beta_{z_{dn}})

    Stated by :func:`caviar.models.latent_dirichlet_allocation`. Data are counts of words, documents x words, dense or
    sparse; they need not be whole numbers.

    Parameters
    ----------
    n_components
        Number of topics K.
    doc_topic_prior
        :math:`\alpha`, a number or shape (K,); by default 1/K.
    topic_word_prior
        :math:`\eta`, a number or shape (V,) for V words; by default 1/K.
    learning_method
        ``"batch"``: topics are updated after a pass over all documents; the bound rises to the end. ``"incremental"``:
        after each of 16 batches, the sums of the others kept, with the exact bound too. ``"online"``: steps of falling
        size, each from ``batch_size`` documents.
    learning_decay, learning_offset
        :math:`\kappa` (above 0.5, at most 1) and :math:`\tau` of the size :math:`(t + \tau)^{-\kappa}` of online steps.
    max_iter
        Largest number of passes over the documents, after those of the start.
    batch_size
        Documents of an online step.
    tol
        The fit has converged when a pass changes the bound by less than this, in nats per document.
    n_init
        Number of starts; the best end is kept.
    random_state
        Whole number, Generator or RandomState: of the starts.
    n_jobs
        Number of threads; None or -1 for one on each core that this process may use. It does not change the result.
    executor
        Where blocks of documents are mapped, in the place of threads: see :meth:`caviar.Model.fit`.
    verbose
        Whether to print a line on each pass; or a function that is called with the progress of each.

    Attributes
    ----------
    components_
        :math:`\eta_{kv}`, concentrations of :math:`q(\beta_k)`, shape (K, V). The mean of a topic is its row over the
        sum of that.
    exp_dirichlet_component_
        :math:`\exp\langle\log\beta_{kv}\rangle`, shape (K, V).
    doc_topic_prior_, topic_word_prior_
        The priors that were used.
    elbo_
        Lower bound of the log evidence of the words in their order, in nats, every constant included; for the topics
        that are returned, and after :meth:`partial_fit` of the last documents given what was known before.
    elbo_trace_
        The bound at the start and after each pass, shape (n_iter_ + 1,).
    bound_
        Perplexity that the bound stands for, :math:`\exp(-\mathrm{ELBO} / \mathrm{words})`.
    n_iter_, converged_
        Passes of the kept start, and whether the bound settled.
    posterior_
        The :class:`caviar.Posterior`.
    n_features_in_
        V.

    Notes
    -----
    A pass takes time in proportion to K times the counts above zero; nothing of documents x vocabulary x topics is
    made. Memory beyond the data: documents x K for ``"batch"``, topics x words for each of a few batches.

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

    def __init__(
        self,
        n_components: int = 10,
        *,
        doc_topic_prior: ArrayLike | None = None,
        topic_word_prior: ArrayLike | None = None,
        learning_method: str = "batch",
        learning_decay: float = 0.7,
        learning_offset: float = 10.0,
        max_iter: int = 100,
        batch_size: int = 128,
        tol: float = 1e-2,
        n_init: int = 1,
        random_state: Any = None,
        n_jobs: int | None = None,
        executor: Any = None,
        verbose: bool | int | Callable[[Progress], None] = False,
    ) -> None:
        self.n_components = n_components
        self.doc_topic_prior = doc_topic_prior
        self.topic_word_prior = topic_word_prior
        self.learning_method = learning_method
        self.learning_decay = learning_decay
        self.learning_offset = learning_offset
        self.max_iter = max_iter
        self.batch_size = batch_size
        self.tol = tol
        self.n_init = n_init
        self.random_state = random_state
        self.n_jobs = n_jobs
        self.executor = executor
        self.verbose = verbose

    def __sklearn_tags__(self) -> Any:
        """Return what scikit-learn is told: counts are not negative, and may be sparse."""
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
            Counts of words, documents x words, an array or a sparse matrix; not negative.
        y
            Ignored.
        sample_weight
            Weight of each document; 2 is the document twice.
        checkpoint
            Path of a file that says where the fit stands, as for :meth:`caviar.Model.fit`: the same call on an
            estimator with the same arguments goes on from there. It needs a ``random_state``.
        checkpoint_every
            Seconds between two writings of it; 0 writes it after every pass.

        Returns
        -------
        self

        Raises
        ------
        DataError, ParameterError
            If counts or an argument are impossible.
        """
        Checkpointing(checkpoint, checkpoint_every).check(self.random_state)
        counts = self._validated(X, reset=True)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, counts, dtype=np.float64, ensure_non_negative=True
            )
        schedule = self._check_settings()
        k, n_words = self.n_components, counts.shape[1]
        priors = (self.doc_topic_prior, self.topic_word_prior)
        alpha, eta = (1 / k if prior is None else prior for prior in priors)
        self.doc_topic_prior_ = as_broadcast("doc_topic_prior", alpha, (k,), "one for each topic", above=0)
        self.topic_word_prior_ = as_broadcast(
            "topic_word_prior", eta, (n_words,), "one for each word", above=0
        )
        model = latent_dirichlet_allocation(
            k, n_words, concentration=self.doc_topic_prior_, word_concentration=self.topic_word_prior_
        )
        generator = as_generator(self.random_state)
        posterior = model.fit(
            {"word": counts},
            seed=generator,
            max_iter=self.max_iter,
            tol=self.tol,
            n_restarts=self.n_init,
            sample_weight=sample_weight,
            schedule=schedule,
            executor=executor_of(self),
            progress=self.verbose if callable(self.verbose) else bool(self.verbose),
            checkpoint=checkpoint,
            checkpoint_every=checkpoint_every,
        )
        if posterior.status in (Status.MAX_ITER, Status.INTERRUPTED) and not isinstance(
            schedule, StochasticSteps
        ):
            message = f"{type(self).__name__}: {posterior.status.explanation}"
            warnings.warn(message, UnsettledWarning, stacklevel=2)
        self._keep(posterior)
        self._set_perplexity(counts, sample_weight)
        self._generator = generator.spawn(1)[0]
        return self

    def partial_fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Self:
        """Add documents to what the topics were fitted to: their posterior is the prior of what comes.

        The first call is a fit. The order of the documents matters, and the first ones should have all topics.

        Parameters
        ----------
        X, y, sample_weight
            As for :meth:`fit`; other documents than before, with the same words.

        Returns
        -------
        self
        """
        if not hasattr(self, "posterior_"):
            return self.fit(X, y, sample_weight=sample_weight)
        counts = self._validated(X, reset=False)
        if sample_weight is not None:
            sample_weight = _check_sample_weight(
                sample_weight, counts, dtype=np.float64, ensure_non_negative=True
            )
        self._check_settings()
        if not counts.nnz:
            return self
        posterior = self.posterior_.update(
            {"word": counts},
            max_iter=self.max_iter,
            tol=self.tol,
            sample_weight=sample_weight,
            executor=executor_of(self),
            progress=self.verbose if callable(self.verbose) else bool(self.verbose),
        )
        self._keep(posterior)
        self._set_perplexity(counts, sample_weight)
        return self

    def transform(self, X: Any, *, normalize: bool = True) -> Array:
        """Return the expected proportions of documents, shape (documents, K), the topics as they are.

        Parameters
        ----------
        X
            Counts, as for :meth:`fit`.
        normalize
            False for the concentrations of the factors of the proportions.
        """
        check_is_fitted(self)
        concentration = self._concentrations(self._validated(X, reset=False))
        return concentration / concentration.sum(axis=1, keepdims=True) if normalize else concentration

    def score(self, X: Any, y: Any = None) -> float:
        r"""Return a lower bound of the log probability of documents given what is believed of the topics, in nats.

        .. math:: \sum_d \mathrm E[\log p(w_d, z_d, \theta_d \mid \beta)] + \mathrm H[z_d] + \mathrm H[\theta_d]

        under the optimal factors of each document. scikit-learn's takes off the topics' divergence from their prior
        besides, whichever documents are scored: of those of the fit this gives ``elbo_``, and of a few new ones a
        number that says little about them.

        Parameters
        ----------
        X, y
            Counts, as for :meth:`fit`; ``y`` is ignored.
        """
        check_is_fitted(self)
        return self._score(self._validated(X, reset=False))

    def perplexity(self, X: Any) -> float:
        """Return ``exp(-score(X) / words)``, an upper bound on the perplexity of documents.

        Parameters
        ----------
        X
            Counts, as for :meth:`fit`.
        """
        check_is_fitted(self)
        counts = self._validated(X, reset=False)
        if not counts.nnz:
            raise DataError("the perplexity of documents without any word is not defined; X is all zero")
        return float(np.exp(-self._score(counts) / counts.sum()))

    def completion_perplexity(self, X: Any, held_out: Any = None, *, random_state: Any = 0) -> float:
        r"""Return how well words of documents are told from the others: the perplexity of document completion.

        .. math:: \exp\Bigl(-\frac{\sum_{dv} n_{dv} \log \sum_k \mathrm E[\theta_{dk}] \mathrm E[\beta_{kv}]}{\sum_{dv}
                  n_{dv}}\Bigr)

        with the proportions found from the words of ``X`` and the sums over those held out. Unlike the bound it is a
        measure of the predictive distribution, whatever method found the topics.

        Parameters
        ----------
        X
            Counts of the words that are seen.
        held_out
            Counts of those that are to be told, of the same shape. Without it each word of ``X``, whole numbers, is
            held out with probability one half.
        random_state
            Of that division.

        Notes
        -----
        Wallach, Murray, Salakhutdinov and Mimno, "Evaluation methods for topic models" (2009), section 5.1.

        Examples
        --------
        >>> import caviar as cv
        >>> counts = cv.datasets.load_political_blogs().counts
        >>> lda = cv.LatentDirichletAllocation(5, random_state=0, tol=1.0).fit(counts[:400])
        >>> bool(lda.completion_perplexity(counts[400:]) < 2632 / 1.5)  # of 2,632 words
        True
        """
        check_is_fitted(self)
        seen = self._validated(X, reset=False)
        if held_out is None:
            seen, rest = _divided(seen, as_generator(random_state))
        else:
            rest = self._validated(held_out, reset=False)
        if rest.shape != seen.shape:
            raise DataError(f"held_out must have the shape of X, {seen.shape}; got {rest.shape}")
        if not rest.nnz:
            raise DataError(
                "no word is held out, so there is none to be told; give documents with more words"
            )
        concentration = self._concentrations(seen)
        proportions = concentration / concentration.sum(axis=1, keepdims=True)
        topics = np.ascontiguousarray(self.posterior_["topics"].mean.T)
        owners, total = np.repeat(np.arange(rest.shape[0]), np.diff(rest.indptr)), 0.0
        for start in range(0, rest.nnz, _ENTRIES):
            some = slice(start, start + _ENTRIES)
            each = np.einsum("ek,ek->e", proportions[owners[some]], topics[rest.indices[some]])
            total += float(rest.data[some] @ np.log(each))
        return float(np.exp(-total / rest.sum()))

    def _concentrations(self, counts: csr_array) -> Array:
        """Return the concentrations of the proportions of documents, shape (documents, K)."""
        if not counts.nnz:
            return np.tile(
                np.broadcast_to(self.doc_topic_prior_, (len(self.components_),)), (counts.shape[0], 1)
            )
        return self.posterior_.local({"word": counts})["proportions"].concentration

    def _score(self, counts: csr_array) -> float:
        if not counts.nnz:
            raise DataError("documents without any word have no score; X is all zero")
        # measured from the prior of the statement, whatever the last documents of partial_fit were measured from
        plan, passes = _Evaluator(self.posterior_.model, (), None).bind({"word": counts}, None)
        topics = self.posterior_["topics"]
        prior = Dirichlet(np.broadcast_to(self.topic_word_prior_, topics.concentration.shape))
        return objective_at(plan, {"topics": topics}, passes) + float(topics.kl(prior).sum())

    def _keep(self, posterior: Posterior) -> None:
        self.posterior_ = posterior
        topics = posterior["topics"]
        self.components_ = np.ascontiguousarray(topics.concentration)
        self.elbo_, self.elbo_trace_ = posterior.elbo, posterior.elbo_trace
        self.converged_, self.n_iter_ = posterior.converged, posterior.n_iter

    def _set_perplexity(self, counts: csr_array, weights: Array | None) -> None:
        n_words = counts.sum() if weights is None else weights @ counts.sum(axis=1)
        self.bound_ = float(np.exp(-self.elbo_ / n_words))

    @property
    def exp_dirichlet_component_(self) -> Array:
        """``exp`` of the expected log of the topics, shape (K, V)."""
        check_is_fitted(self)
        return np.exp(self.posterior_["topics"].expected_statistics[0])

    @property
    def _n_features_out(self) -> int:
        """Number of columns of :meth:`transform`."""
        return len(self.components_)

    def _validated(self, X: Any, *, reset: bool) -> csr_array:
        X = validate_data(
            self,
            X,
            reset=reset,
            accept_sparse="csr",
            dtype=np.float64,
            ensure_non_negative=True,
        )
        counts = csr_array(X)
        if counts is X or np.shares_memory(
            counts.data, getattr(X, "data", None) if hasattr(X, "indptr") else ()
        ):
            counts = counts.copy()
        counts.sum_duplicates()
        counts.eliminate_zeros()
        return counts

    def _check_settings(self) -> Schedule:
        """Return the schedule of the fit, after checking the arguments."""
        require_whole("n_components", self.n_components, 1)
        require_whole("max_iter", self.max_iter, 0)
        require_whole("n_init", self.n_init, 1)
        require_whole("batch_size", self.batch_size, 1)
        require_number("tol", self.tol)
        require_number("learning_decay", self.learning_decay)
        require_number("learning_offset", self.learning_offset)
        require_choice("learning_method", self.learning_method, ("batch", "incremental", "online"))
        if self.learning_method == "online":
            if not 0.5 < self.learning_decay <= 1:
                raise ParameterError(
                    f"learning_decay must be above 0.5 and at most 1, for which the steps end in a stationary point; "
                    f"got {self.learning_decay!r}"
                )
            return StochasticSteps(self.batch_size, self.learning_offset, self.learning_decay)
        return as_schedule(self.learning_method)


def _divided(counts: csr_array, rng: np.random.Generator) -> tuple[csr_array, csr_array]:
    """Return counts of words that are seen and of those held out, each word with probability one half."""
    if (counts.data != np.floor(counts.data)).any():
        raise DataError("only whole numbers of words can be divided at random; give the others as held_out=")
    seen, rest = counts.copy(), counts.copy()
    seen.data = rng.binomial(counts.data.astype(np.int64), 0.5).astype(np.float64)
    rest.data = counts.data - seen.data
    for part in (seen, rest):
        part.eliminate_zeros()
    return seen, rest
