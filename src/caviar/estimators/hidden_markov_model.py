"""Hidden Markov models under scikit-learn's contract."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import field, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.utils.validation import check_is_fitted

from .._errors import ParameterError
from .._typing import AnyArray, Array
from ..engine.ascent.status import Status
from ..fitting.model import Model
from ..language import Categorical, Data, Dirichlet, MarkovChain, Plate
from ..names import Placed, with_columns
from ..numerics.arguments import require_whole
from ..posterior.posterior import Posterior
from ..posterior.prediction.prediction import Prediction
from .arguments.checkpointing import Checkpointing, NextFit
from .arguments.checks import as_generator, require_choice
from .arguments.declared import estimator
from .arguments.fitted import Fitted, keep
from .automatic.arguments import AUTO_CONCENTRATION, is_auto, refuse_one_per_component
from .automatic.best import best_search
from .automatic.sequences import SequenceProblem
from .emissions import EMISSIONS, Emission
from .evidence import HasEvidence
from .mixtures.components import Component, Estimate
from .priors.transitions import StepsPrior, largest_first, stationary, steps_prior
from .saveable import PlainForm
from .searched import Searched
from .tables.labels import known_labels
from .tables.lazy_rows import mean_of_rows
from .tables.sequences import (
    checked_lengths,
    continued,
    log_densities_in_turn,
    refuse_steps_alone,
    starts_of,
    steps_after,
    weights_of_rows,
)

_REMEDY = "Fit again"
_ALGORITHMS = ("viterbi", "map")


@estimator
class HiddenMarkovModel(HasEvidence, Searched):
    r"""Hidden Markov model: sequences of rows, each emitted by a hidden state that depends on the state before.

    .. math::
        \pi \sim \mathrm{Dir}(\alpha), \quad A_k \sim \mathrm{Dir}(\beta_k), \quad
        s_1 \sim \mathrm{Cat}(\pi), \quad s_t \mid s_{t-1} \sim \mathrm{Cat}(A_{s_{t-1}}), \quad
        x_t \mid s_t \sim p(x \mid \theta_{s_t})

    All states of a sequence are in one factor of the posterior, computed exactly by forward-backward, so their
    dependence is kept.

    Parameters
    ----------
    n_components
        Number of states K, or ``"auto"``: splits, merges and deletions of states find the number, as in
        :class:`BayesianGaussianMixture`; if no such move helps, fits from new starts with one more state are tried,
        then splits of a state between its stays, and new states for successive rows that are badly explained. A move
        is kept if it raises the ELBO of all sequences.
    emission
        Distribution of a row given its state: ``"gaussian"`` for D numbers, ``"categorical"`` for one column of
        categories (texts or numbers), ``"poisson"`` for D counts that are independent given the state.
    covariance_type
        Structure of Gaussian emissions: ``"full"``, ``"tied"``, ``"diag"``, ``"spherical"`` or ``"unit"``, as in
        :class:`BayesianGaussianMixture`.
    transition_prior_type
        ``"dirichlet_distribution"``: the rows of the transition matrix have independent Dirichlet priors.
        ``"dirichlet_process"``: their priors are centred on common stick-breaking weights, a hierarchical Dirichlet
        process; superfluous states become empty, so ``n_components`` is an upper bound.
    initial_prior
        :math:`\alpha`, a number or shape (K,). With a Dirichlet process, a number: the sum of the concentrations.
    transition_prior
        :math:`\beta`, a number, or shape (K,) or (K, K) with a row for each current state. With a Dirichlet process, a
        number: the sum of the concentrations of a row.
    state_concentration
        With a Dirichlet process, the concentration of the stick-breaking weights. Larger values mean more states.
    stickiness
        Added to the diagonal of ``transition_prior``, as if this number of steps had stayed in each state. Large values
        favour states that last long.
    mean_precision_family, mean_prior, mean_precision_prior, degrees_of_freedom_prior, covariance_prior
        Prior of Gaussian emissions, as in :class:`BayesianGaussianMixture`.
    categories
        The categories in order; by default those in the data, sorted. List them to include categories that do not occur
        in the data.
    category_prior
        Concentration of the Dirichlet prior of the M category probabilities in each state: a number, or shape (M,) or
        (K, M).
    count_prior
        Shape and rate of the Gamma prior of each Poisson rate. By default 1 and the inverse of the mean of the column.
    {tol}
    {max_iter}
    {n_init}
    {random_state}
    {n_jobs}
    {executor}
    {verbose}
    {uncertainty}

    Attributes
    ----------
    initial_
        Expected probabilities of the first state, shape (K,).
    transition_
        Expected probabilities of the next state, shape (K, K), a row for each current state.
    stationary_
        Stationary distribution of ``transition_``, shape (K,).
    state_weights_
        With a Dirichlet process, the expected common weights, shape (K,).
    occupancy_
        Expected share of the rows of the fit in each state, shape (K,).
    means_, covariances_, precisions_
        Parameters of Gaussian emissions, as in :class:`BayesianGaussianMixture`.
    emission_probabilities_
        Expected probabilities of the categories in each state, shape (K, M).
    categories_
        The categories, in the order of the columns of ``emission_probabilities_``.
    rates_
        Expected Poisson rates, shape (K, D).
    elbo_, lower_bound_
        Lower bound of the log evidence in nats, including all constants.
    elbo_trace_
        The ELBO at the start and after each iteration, shape (n_iter_ + 1,). It never decreases.
    n_iter_, converged_
        Number of iterations of the best start, and whether the fit converged.
    posterior_
        The :class:`caviar.Posterior`, with the variables ``initial``, ``transition``, ``s``, ``x`` and the parameters
        of the emissions.
    n_components_
        K.
    moves_
        With ``n_components="auto"``, every :class:`caviar.Move` that was tried.
    {columns}

    Notes
    -----
    ``X`` contains all sequences, one below the other, and ``lengths`` their numbers of rows. Missing rows or entries
    (NaN) are integrated out.

    :meth:`predict` and :meth:`predict_proba` use the factor of the states, q(s), as the fit does. :meth:`score_samples`
    is the predictive density of each row given the rows before it, with expected transition probabilities and the
    predictive density of each state (Student-t for Gaussian emissions, negative binomial for counts). It integrates to
    one.

    For users of hmmlearn: ``initial_`` is its ``startprob_``, and ``transition_`` its ``transmat_``. :meth:`score` is
    the mean over rows, as in scikit-learn; the log density of all sequences is ``score_samples(X, lengths).sum()``.
    :meth:`fit` takes ``lengths=`` by name only. For a transition that is impossible, as in a left-to-right model, set
    its entry of ``transition_prior`` near 0, such as 1e-6.

    Examples
    --------
    >>> import caviar as cv
    >>> rng = np.random.default_rng(0)
    >>> path = np.arange(400) // 50 % 2
    >>> X = rng.normal(4.0 * path, 1.0)[:, None]
    >>> hmm = cv.HiddenMarkovModel(2, random_state=0).fit(X, lengths=[200, 200])
    >>> order = hmm.means_[:, 0].argsort()
    >>> hmm.means_[order].round(1)
    array([[0. ],
           [3.9]])
    >>> hmm.transition_[np.ix_(order, order)].round(2)
    array([[0.98, 0.02],
           [0.02, 0.98]])
    >>> print((order.argsort()[hmm.predict(X, lengths=[200, 200])] == path).mean())
    1.0
    >>> hmm.forecast(X, 3).mean.shape
    (3, 1)
    """

    n_components: Any = field(default=2, kw_only=False)
    emission: str = "gaussian"
    covariance_type: str = "full"
    transition_prior_type: str = "dirichlet_distribution"
    initial_prior: ArrayLike = 1.0
    transition_prior: ArrayLike = 1.0
    state_concentration: float = 5.0
    stickiness: float = 0.0
    mean_precision_family: str = "joint"
    mean_prior: ArrayLike | None = None
    mean_precision_prior: ArrayLike | str | None = "auto"
    degrees_of_freedom_prior: ArrayLike | None = None
    covariance_prior: ArrayLike | str | None = "auto"
    categories: Sequence[Any] | None = None
    category_prior: ArrayLike = 1.0
    count_prior: Sequence[float] | None = None

    _kind_in_words = "Hidden Markov model"
    _not_of_the_table = ("starts",)
    _plain_forms: ClassVar = {**Searched._plain_forms, "categories_": PlainForm(list, tuple)}
    initial_: ClassVar[Any] = Fitted(_REMEDY)
    transition_: ClassVar[Any] = Fitted(_REMEDY)
    stationary_: ClassVar[Any] = Fitted(_REMEDY)
    state_weights_: ClassVar[Any] = Fitted("Fit with transition_prior_type='dirichlet_process'")
    occupancy_: ClassVar[Any] = Fitted(_REMEDY)
    means_: ClassVar[Any] = Fitted(_REMEDY)
    covariances_: ClassVar[Any] = Fitted(_REMEDY)
    precisions_: ClassVar[Any] = Fitted(_REMEDY)
    emission_probabilities_: ClassVar[Any] = Fitted(_REMEDY)
    categories_: ClassVar[Any] = Fitted("Fit again: categories= says what they are")
    rates_: ClassVar[Any] = Fitted(_REMEDY)
    lower_bound_: ClassVar[Any] = Fitted()
    elbo_trace_: ClassVar[Any] = Fitted()
    n_components_: ClassVar[Any] = Fitted()

    def __sklearn_tags__(self) -> Any:
        """Say which entries are welcome."""
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        tags.input_tags.categorical = self.emission == "categorical"
        tags.input_tags.positive_only = self.emission == "poisson"
        return tags

    @property
    def _emission(self) -> Emission:
        return EMISSIONS[self.emission]

    def fit(
        self,
        X: Any,
        y: Any = None,
        *,
        lengths: Any = None,
        states: Any = None,
        sequence_weight: Any = None,
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
    ) -> Self:
        """Fit the model to sequences.

        Parameters
        ----------
        X
            Rows of all sequences in order of time, shape (N, D): an array or a table. NaN marks missing entries.
        y
            Ignored; present so that pipelines can pass it.
        lengths
            Number of rows of each sequence. By default all rows are one sequence.
        states
            Known states, shape (N,): 0 to K - 1 for each row, and -1 where the state is unknown.
        sequence_weight
            Weight of each sequence, not negative. A sequence of weight 2 counts as two equal sequences. By default all
            weights are 1.
        {checkpoint}

        {end_of_fit}
        """
        checkpointing = Checkpointing(checkpoint, checkpoint_every)
        checkpointing.check(self.random_state)
        self._check_settings()
        _refuse_lengths_in_place_of_y(y, X, lengths)
        rows = self._emission.rows(self, X, reset=True)
        lengths = checked_lengths(lengths, len(rows))
        data, weights = self._data(rows, lengths), weights_of_rows(sequence_weight, lengths)
        if states is not None:
            if is_auto(self.n_components):
                raise ParameterError(
                    "known states need a number of components; got n_components='auto', which changes the "
                    "states"
                )
            data["s"] = known_labels(states, len(rows), self.n_components, "states")
        generator = as_generator(self.random_state)
        with checkpointing.opened() as next_fit:
            if is_auto(self.n_components):
                posterior = self._searched(rows, lengths, weights, generator, next_fit)
            else:
                posterior = self._fitted(rows, data, weights, generator, next_fit)
        self._settle(posterior, data, weights)
        self._tell_end(posterior)
        self._keep(posterior)
        shares = posterior.local(data)["s"].probabilities
        keep(self, occupancy_=np.average(shares, axis=0, weights=weights))
        self._generator = generator.spawn(1)[0]
        return self

    def _fitted(
        self,
        rows: Array,
        data: dict[str, Any],
        weights: Array | None,
        generator: np.random.Generator,
        next_fit: NextFit,
    ) -> Posterior:
        """Return the fit with the given number of states."""
        model, own = self._stated(rows, weights)(self.n_components), self._arguments_of_model()
        found = model.fit(
            data,
            seed=generator,
            n_restarts=self.n_init,
            sample_weight=weights,
            checkpoint=next_fit(),
            **own,
        )
        if "weights" not in found or "s" in data or found.status is Status.INTERRUPTED:
            return found

        def again(probabilities: Array) -> Posterior:
            init = {"s": probabilities}
            return model.fit(data, seed=0, init=init, sample_weight=weights, checkpoint=next_fit(), **own)

        return largest_first(found.local(data)["s"].probabilities, weights, again, found)

    def _searched(
        self,
        rows: Array,
        lengths: AnyArray,
        weights: Array | None,
        generator: np.random.Generator,
        next_fit: NextFit,
    ) -> Posterior:
        """Return the fit with the number of states that splits, merges and deletions find."""
        refuse_one_per_component(
            {
                "initial_prior": (self.initial_prior, 0),
                "transition_prior": (self.transition_prior, 0),
                "mean_prior": (self.mean_prior, 1),
                "mean_precision_prior": (self.mean_precision_prior, 0),
                "degrees_of_freedom_prior": (self.degrees_of_freedom_prior, 0),
                "category_prior": (self.category_prior, 1),
            }
        )
        counts = np.ones(len(rows)) if weights is None else weights
        kept = counts > 0
        problem = SequenceProblem(
            self._stated(rows, weights),
            rows[kept],
            counts[kept],
            self.max_iter,
            self.tol,
            self._place,
            next_fit=next_fit,
            values=self._emission.values,
            starts=starts_of(lengths)[kept],
            mixture_of=self._mixture(rows, weights),
        )
        posterior, self.moves_ = best_search(problem, None, generator, self.n_init, self.verbose)
        return posterior

    def _mixture(self, rows: Array, weights: Array | None) -> Callable[[int], Model]:
        """Return number of components -> the mixture of rows by themselves, with the same emissions."""
        observe_of = self._emission.stated(self, rows, weights)

        def mixture_of(n_components: int) -> Model:
            state = Plate("state", n_components)
            shares = Dirichlet("weights", np.full(n_components, AUTO_CONCENTRATION))
            return Model(observe_of(n_components)(Categorical("z", shares, plates=Plate("time")), state))

        return mixture_of

    def _stated(self, rows: Array, weights: Array | None) -> Callable[[int], Model]:
        """Return number of states -> the model of these rows."""
        observe_of, steps = self._emission.stated(self, rows, weights), self._steps_prior()

        def model_of(n_states: int) -> Model:
            state, time = Plate("state", n_states), Plate("time")
            chain = MarkovChain(
                "s", *steps.state(n_states, state), along=time, starts=Data("starts", plates=time)
            )
            return Model(observe_of(n_states)(chain, state))

        return model_of

    def _steps_prior(self) -> StepsPrior:
        return steps_prior(
            self.transition_prior_type,
            self.initial_prior,
            self.transition_prior,
            self.stickiness,
            self.state_concentration,
        )

    def _data(self, rows: Array, lengths: AnyArray) -> dict[str, Any]:
        """Return rows as the model takes them."""
        return Placed({"x": self._emission.values(rows), "starts": starts_of(lengths)})

    def _as_data(self, X: Any) -> dict[str, Any]:
        """Return rows by name; of several sequences ``X`` is a mapping with ``"X"`` and ``"lengths"``."""
        given = X if isinstance(X, Mapping) else {"X": X}
        if set(given) - {"X", "lengths"} or "X" not in given:
            raise ParameterError(
                f"data of several sequences are {{'X': rows, 'lengths': lengths}}; got {', '.join(map(repr, given))}"
            )
        return self._data(*self._sequences(given["X"], given.get("lengths")))

    def _check_settings(self) -> None:
        """Refuse impossible arguments, and those of another emission, which would change nothing."""
        if not is_auto(self.n_components):
            require_whole("n_components, if it is not 'auto',", self.n_components, 1)
        self._check_fit_arguments()
        require_choice("emission", self.emission, tuple(EMISSIONS))
        self._steps_prior()
        defaults = type(self)().get_params(deep=False)
        for other in EMISSIONS.values():
            for name in other.arguments:
                own = getattr(self, name)
                if (
                    name not in self._emission.arguments
                    and own is not defaults[name]
                    and own != defaults[name]
                ):
                    raise ParameterError(
                        f"{name} belongs to emission={other.name!r}, and this model has emission={self.emission!r}; "
                        f"leave it out"
                    )
        self._emission.check(self)

    def _keep(self, posterior: Posterior) -> None:
        super()._keep(posterior)
        keep(self, lower_bound_=posterior.elbo, elbo_trace_=posterior.elbo_trace)
        if hasattr(self, "feature_names_in_"):
            # for its summary and plots
            posterior.data_summary = with_columns(posterior.data_summary, "x", self.feature_names_in_)
        if hasattr(self, "categories_"):
            posterior.data_summary = with_columns(posterior.data_summary, "x", self.categories_, "categories")
        transition = posterior["transition"].mean
        keep(self, initial_=posterior["initial"].mean, transition_=transition, n_components_=len(transition))
        keep(self, stationary_=stationary(transition))
        if "weights" in posterior:
            keep(self, state_weights_=posterior["weights"].mean)
        self._emitted = self._emission.emitted(self, posterior)
        keep(self, **self._emitted.attributes())

    def _check_restored(self) -> None:
        self._check_settings()
        shape = (self.n_components_,)
        if np.shape(self.occupancy_) != shape or not np.isclose(np.sum(self.occupancy_), 1.0):
            raise ValueError("shares of the states that are none")
        width = len(self._emitted.figures(0.95)[0][0])
        if type(self.n_features_in_) is not int or self.n_features_in_ != width:
            raise ValueError(f"it has {width} columns, and says {self.n_features_in_!r:.40}")

    def _sequences(self, X: Any, lengths: Any) -> tuple[Array, AnyArray]:
        """Return rows, and the lengths of their sequences, after they were checked."""
        check_is_fitted(self)
        rows = self._emission.rows(self, X, reset=False)
        return rows, checked_lengths(lengths, len(rows))

    def _states(self, rows: Array, lengths: AnyArray) -> Any:
        """Return q of the states of rows.

        Data cannot be missing altogether, so a sequence of one row that is there comes first.
        """
        first = np.zeros((1, rows.shape[1]))
        data = self._data(np.vstack([first, rows]), np.append(1, lengths))
        return self.posterior_.local(data)["s"]

    def predict(self, X: Any, lengths: Any = None) -> AnyArray:
        """Return the most probable path of states of each sequence, shape (N,).

        Parameters
        ----------
        X, lengths
            As for :meth:`fit`.
        """
        return self.decode(X, lengths)[1]

    def decode(self, X: Any, lengths: Any = None, algorithm: str = "viterbi") -> tuple[float, AnyArray]:
        """Return the log probability of the decoded states given the rows, in nats, and the states, shape (N,).

        Parameters
        ----------
        X, lengths
            As for :meth:`fit`.
        algorithm
            ``"viterbi"`` finds the most probable path. ``"map"`` takes the most probable state of each row separately;
            such a path may be impossible, and its log probability is then minus infinity.

        Returns
        -------
        log_probability, states
            The log probability log q(s) of these states, summed over all sequences, and the states.
        """
        require_choice("algorithm", algorithm, _ALGORITHMS)
        chain = self._states(*self._sequences(X, lengths))
        path = chain.mode() if algorithm == "viterbi" else chain.probabilities.argmax(axis=1)
        # the sequence of one row that comes first has no part in it
        path[0] = (own := chain.probabilities[0]).argmax()
        return float(chain.log_density(path) - np.log(own[path[0]])), path[1:]

    def predict_proba(self, X: Any, lengths: Any = None) -> Array:
        """Return the probability of each state at each row given all rows of its sequence, q(s), shape (N, K).

        Parameters
        ----------
        X, lengths
            As for :meth:`fit`.
        """
        return self._states(*self._sequences(X, lengths)).probabilities[1:]

    def score_samples(self, X: Any, lengths: Any = None) -> Array:
        """Return the log density of each row given the rows before it in its sequence, shape (N,), in nats.

        The sum over a sequence is the log density of the sequence.

        Parameters
        ----------
        X, lengths
            As for :meth:`fit`. The log density of a missing row is 0.
        """
        rows, lengths = self._sequences(X, lengths)
        found = log_densities_in_turn(
            self._emitted.log_densities(rows), starts_of(lengths), self.initial_, self.transition_
        )
        return np.where(np.isnan(rows).all(axis=1), 0.0, found)

    def score(self, X: Any, y: Any = None, lengths: Any = None, sequence_weight: Any = None) -> float:
        """Return the mean log density of the rows, in nats per row.

        Parameters
        ----------
        X, lengths, sequence_weight
            As for :meth:`fit`.
        y
            Ignored.
        """
        _refuse_lengths_in_place_of_y(y, X, lengths)
        densities = self.score_samples(X, lengths)
        weights = weights_of_rows(sequence_weight, checked_lengths(lengths, len(densities)))
        return mean_of_rows(densities, weights)

    def sample(
        self, n_samples: int = 1, random_state: Any = None, first_state: int | None = None
    ) -> tuple[AnyArray, AnyArray]:
        """Return a new sequence of rows, (n, D), and its states, (n,).

        Parameters
        ----------
        {sample}
        first_state
            State of the first row, 0 to K - 1; by default it is drawn from ``initial_``.
        """
        check_is_fitted(self)
        require_whole("n_samples", n_samples, 1)
        if first_state is not None:
            require_whole("first_state", first_state, 0)
            if first_state >= self.n_components_:
                raise ParameterError(
                    f"first_state must be one of the states, 0 to {self.n_components_ - 1}; got {first_state}"
                )
        generator = self._generator_of(random_state)
        u, path = generator.random(n_samples), np.empty(n_samples, dtype=np.intp)
        first, onward = np.cumsum(self.initial_)[:-1], np.cumsum(self.transition_, axis=1)[:, :-1]
        if first_state is not None:
            path[0] = first_state
        for t in range(0 if first_state is None else 1, n_samples):
            path[t] = (u[t] > (onward[path[t - 1]] if t else first)).sum()
        return self._emitted.draw(path, generator), path

    def forecast(self, X: Any, n_steps: int = 1, lengths: Any = None) -> Prediction:
        """Return the prediction of the steps after the last row of each sequence.

        Parameters
        ----------
        X, lengths
            As for :meth:`fit`.
        n_steps
            Number of steps after each sequence; by default the next one.

        Returns
        -------
        Prediction
            Its rows are the steps after the first sequence, then those after the second, and so on, so ``mean`` has
            shape (sequences * n_steps, D). For categories, ``mean`` has the probability of each category. With
            ``lengths``, its ``index`` and the index of its ``to_frame()`` say the sequence and the step of each row;
            sequences have the names in the index of ``lengths``, a pandas Series, or else numbers from 0.
        """
        found = self._emitted.prediction(self.forecast_proba(X, n_steps, lengths))
        columns, index = getattr(self, "feature_names_in_", None), steps_after(lengths, n_steps)
        names = found.names if found.is_label or columns is None else tuple(map(str, columns))
        return replace(found, names=names, index=index)

    def forecast_proba(self, X: Any, n_steps: int = 1, lengths: Any = None) -> Array:
        """Return the probability of each state at the steps after the last row of each sequence.

        Parameters
        ----------
        X, n_steps, lengths
            As for :meth:`forecast`.

        Returns
        -------
        Array
            Shape (sequences * n_steps, K), with rows in the order of :meth:`forecast`.
        """
        refuse_steps_alone(X)
        require_whole("n_steps", n_steps, 1)
        rows, lengths = self._sequences(X, lengths)
        rows, lengths, ahead = continued(rows, lengths, n_steps)
        return self._states(rows, lengths).probabilities[1 + ahead]

    def _components(self, level: float) -> list[Component]:
        return [
            Component(
                label=k,
                weight=Estimate(float(self.occupancy_[k])),
                mean=mean,
                standard_deviation=spread,
                probabilities=shares if any(own is not None for own in shares) else (),
            )
            for k, (mean, spread, shares) in enumerate(self._emitted.figures(level))
        ]


def _refuse_lengths_in_place_of_y(y: Any, X: Any, lengths: Any) -> None:
    """Refuse lengths that were passed as the second argument, where scikit-learn has ``y``.

    Raises
    ------
    ParameterError
        If that is what ``y`` looks like.
    """
    if y is None or lengths is not None:
        return
    try:
        given, n_rows = np.asarray(y), len(X)
    except (TypeError, ValueError):
        return
    if given.ndim == 1 and given.dtype.kind in "iu" and len(given) != n_rows and given.sum() == n_rows:
        raise ParameterError(
            "the second argument is y, which is ignored, and these look like the lengths of sequences: pass them "
            "by name, lengths=..."
        )
