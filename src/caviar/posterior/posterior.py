"""Posterior, the result of a fit."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from .._errors import DataError, ModelError, ParameterError
from .._typing import AnyArray, Array
from .._version import __version__
from ..data import ArrayRows
from ..engine.ascent.beliefs import Beliefs
from ..engine.ascent.driver import Result
from ..engine.ascent.problem import Problem
from ..engine.ascent.status import Status
from ..engine.binding.clamped.given import belongs_to_rows
from ..engine.checkpoint.row_marks import share_seen
from ..engine.design.keys import ColumnKey
from ..engine.evaluation.at_points import row_log_likelihoods
from ..engine.evaluation.evaluate import (
    GivenGlobals,
    factors_at,
    local_distributions,
    objective_at,
    points_at,
    predictive_densities,
)
from ..engine.factorisation import APART
from ..engine.rows.row_map import RowMap
from ..execution.threads import Threads
from ..language import Plate, Variable, nodes_above
from ..names import Names, Placed, by_names, names_with_summary
from ..numerics.randomness import generator
from ..storage import write_saved
from .binds import Binds
from .diagnostics.cross_validation import results_without
from .diagnostics.data_of_the_fit import KnowsItsData, Looks
from .diagnostics.diagnosis import Diagnosis, diagnosis_of, refuse_what_has_no_weights
from .diagnostics.inference_data import inference_data
from .documents.posteriors import document_of_posterior
from .effects.asked import TellsEffects
from .evidence.asked import TellsEvidence
from .integration.asked import Integrates
from .new_rows import check_new_rows
from .pandas_tables import densities_along_rows
from .prediction.absent import inferred, predicted
from .prediction.along_chains import predicted_along_chains
from .prediction.forecasts import with_forecasts
from .prediction.given_in_some_rows import known_inside, nothing_left, numbers_later, without_missing
from .prediction.over import Over
from .prediction.partly_given import vectors_later
from .prediction.prediction import OfRows, Predictions
from .prediction.residuals import Residuals, residuals_of
from .simulation import check_count
from .uncertainty.known import MeanField, Source

_FEW_ROWS = 4096
"""Rows that a posterior may keep until its factors are asked for."""


def _global_factors(problem: Problem, q: Mapping[Variable, Any]) -> dict[str, Any]:
    """Return the global factors of a fit by name, from the user's origin, with forecasts."""
    return with_forecasts(problem, factors_at(problem, q))


class Posterior(KnowsItsData, TellsEvidence, TellsEffects, Integrates):
    """The mean-field posterior q = prod q_j and its evidence lower bound (ELBO).

    ``posterior["mean"]`` is the factor of a global variable: a distribution of its family with a batch axis for each
    plate, or a point mass. If some of its repetitions were given with the data, the factor has mean, variance and draws
    of all repetitions, and ``.unknown`` is the distribution of the others. :meth:`local` returns the factors of local
    variables.

    Attributes
    ----------
    elbo
        The objective in nats, including all constants, at the factors of this posterior. It is a lower bound of log
        p(x) if all priors are proper and no factor is a point mass.
    elbo_trace
        The objective at the start and after each iteration, shape (n_iter + 1,). The passes that find the start are not
        part of it.
    elbo_terms
        The objective by factor: the expected log density of its variables plus its entropy. The terms sum to ``elbo``.
    status
        Why the fit stopped; it prints as a sentence.
    n_iter
        Number of iterations of the best start, without the passes that find it.
    n_updates
        Number of updates of the globals in the best start; None for a posterior from a file.
    restart_elbos
        Final objective of each start.
    restart_traces
        ``elbo_trace`` of each start; empty if the posterior comes from a file of an earlier version.
    data_summary
        Summary of the data of the fit, without single values: ``"rows"``, their total ``"weight"``, and ``"arrays"``,
        with the shape, the number of missing entries, and the mean and standard deviation of each column, by name. A
        fit from the command line also has the ``"categories"`` of text columns, and ``"about"`` with source, query,
        command, seed and versions.
    saved_by
        Version of the library that wrote the file; None for a posterior that was not loaded.
    row_marks
        Hashes of up to 1,024 rows of the fit, which :meth:`share_seen` uses; None if the posterior comes from a file of
        an earlier version.

    Examples
    --------
    >>> import caviar as cv
    >>> x = cv.Normal("x", cv.Normal("mean", 0, 0.01), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
    >>> data = {"x": [1.2, 0.7, 1.9, 1.4, 0.9]}
    >>> posterior = cv.Model(x).fit(data)
    >>> print(round(posterior.elbo, 3), posterior.converged)
    -8.151 True
    >>> print(posterior["mean"].mean.round(3), posterior.sd("mean").round(3), posterior["tau"].mean.round(3))
    1.219 0.402 1.644
    """

    restart_traces: tuple[Array, ...] = ()
    saved_by: str | None = None
    n_updates: int | None = None
    _compiled: GivenGlobals | None = None
    """For complete rows, once these were asked for; see :meth:`_local_of_complete`."""

    def __init__(
        self,
        model: Any,
        result: Result,
        evaluator: Binds,
        restart_elbos: Sequence[float],
        restart_traces: Sequence[Array] = (),
        looks: Looks | None = None,
        uncertainty: Source | None = None,
        n_iter_before: int = 0,
    ) -> None:
        self.model = model
        self.elbo = result.elbo
        self.elbo_trace = result.trace
        self._by_factor = result.by_factor
        self.status = result.status
        self.n_iter, self.n_updates = result.n_iter, result.n_updates
        self.restart_elbos = np.array(restart_elbos)
        self.restart_traces, self._n_iter_before = tuple(restart_traces), n_iter_before
        self._evaluator = evaluator
        hidden = set(result.problem.bound.latent)
        self._local = {v.name for factor in result.problem.factors for v in factor.variables if v in hidden}
        self._has_gaps = bool(result.problem.bound.gathered("entries"))
        self._at_end = partial(_global_factors, result.problem, result.q)
        if result.problem.bound.n_rows > _FEW_ROWS:
            # the data need not stay for them
            self._at_end = partial(dict, self._at_end())
        self._of_points = result.beliefs
        self._looks = looks
        self._show(MeanField() if uncertainty is None else uncertainty)

    @classmethod
    def _of_parts(cls, **attributes: Any) -> Posterior:
        """Return a posterior with these attributes, as a saved one has them."""
        posterior = cls.__new__(cls)
        vars(posterior).update(attributes)
        return posterior

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without data and compiled parts, which are made again when they are needed."""
        self._uncertainty = self._uncertainty.settled(self)
        _ = self.data_summary, self.row_marks, self.elbo_terms, self._factors, self._shared
        dropped = ("_compiled", "_looks", "_by_factor", "_over", "_at_end", "_of_globals")
        return {name: value for name, value in vars(self).items() if name not in dropped}

    @property
    def data_plate(self) -> Plate | None:
        """The plate of the rows of data; None if the model has no such plate, or the next data determine it."""
        return self._evaluator.data_plate

    @property
    def names(self) -> Names:
        """Names of the repetitions of plates and of the entries of vectors, from the model or from the data.

        ``names.plate("school")`` and ``names.entries("slope")`` are in the order of the arrays of factors.
        """
        return names_with_summary(self._evaluator.names, self.model.axes, self.data_summary)

    @property
    def converged(self) -> bool:
        """Whether the fit converged."""
        return self.status is Status.CONVERGED

    def update(self, data: Any, **arguments: Any) -> Posterior:
        """Return the posterior after more rows of data, with this posterior as the prior.

        Short for ``posterior.model.fit(data, prior=posterior, ...)``; see ``prior`` of :meth:`Model.fit`.

        Parameters
        ----------
        data
            As for the fit; new rows only.
        **arguments
            Arguments of :meth:`Model.fit`. Factors that are point masses remain point masses.

        Examples
        --------
        Rows have no hidden variables here, so two halves of the rows give the result of all rows at once:

        >>> import caviar as cv
        >>> p = cv.Beta("p", 1, 1)
        >>> model = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs")))
        >>> first = model.fit({"x": [1, 1, 0]})
        >>> both = first.update({"x": [1, 0, 0, 0]})
        >>> print(both["p"].a, both["p"].b)
        4.0 5.0
        >>> print(round(first.elbo + both.elbo - model.fit({"x": [1, 1, 0, 1, 0, 0, 0]}).elbo, 9))
        0.0
        """
        groups = self._evaluator.factors
        same = {"point": self._evaluator.point, "factors": APART if groups is None else groups}
        return self.model.fit(data, **{"prior": self, **same, **arguments})

    @property
    def beliefs(self) -> Beliefs:
        """The posterior of the globals, as a prior for more rows of data."""
        return Beliefs(self._independent, self._of_points)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the posterior with its model to a file that :func:`caviar.load` reads.

        The file contains arrays and JSON but no code, so loading a file from an unknown source is safe. It contains no
        data, and its size does not grow with the number of rows; :meth:`local` computes the factors of local variables
        again. If saving fails, no partial file is left.

        Parameters
        ----------
        path
            Path of the file, by convention ending in ``.caviar``. An existing file is replaced.

        Raises
        ------
        DataError
            If the file cannot be written.
        ModelError
            If the model has a variable of a user-defined class, or is too large to be rebuilt from a file.

        Examples
        --------
        >>> import pathlib, tempfile
        >>> import caviar as cv
        >>> p = cv.Beta("p", 1, 1)
        >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "coin.caviar"
        >>> posterior.save(path)
        >>> print(
        ...     cv.load(path).update({"x": [1, 0, 0, 0]})["p"].b, posterior.update({"x": [1, 0, 0, 0]})["p"].b
        ... )
        5.0 5.0
        """
        write_saved(path, "Posterior", {"posterior": document_of_posterior(self)})

    def local(self, data: Any, *, anew: bool = True) -> OfRows:
        """Return the factors of the local variables for rows of data, old or new; the globals do not change.

        The data must contain every observed variable; entries may be missing (NaN). To leave out observed variables and
        predict them, use :meth:`predict`.

        If one plate is nested in another, such as tokens in documents, the variables of the outer plate are local too:
        the proportions of new documents are found by coordinate ascent from their prior, with the topics fixed.

        States of a chain after the last observation of their sequence are forecast and do not affect earlier states. A
        :class:`MarkovChain` uses the expected transition probabilities. This is exact for one step; further steps are
        treated as if each had its own draw of the transition matrix. A :class:`LinearGaussianChain` uses the expected
        transition and the expected precision of the noise.

        Local factors that depend on each other, such as a chain and other hidden values of its steps, are found by
        iterating from a new start, and may end at another optimum than in the fit.

        Standard deviations are those of mean field, without the uncertainty of the globals. This matters most in rows
        without any observation. What ``linear_response(data).predict(data)`` says of missing values includes it.

        Parameters
        ----------
        data
            Data as for the fit, with any number of rows.
        anew
            Whether variables of an outer plate are found from scratch. Use False if the data are those of the fit.

        Returns
        -------
        dict
            Name -> distribution with the rows as first batch axis.
        """
        met = self._evaluator.named(data)
        problem, row_map = self._evaluator.bind(met.values)
        found = local_distributions(problem, self._independent, row_map, anew=anew)
        return OfRows(found, self.names, met.index)

    def _local_of_complete(
        self, columns: Mapping[str, Array], example: Callable[[], Mapping[str, Any]]
    ) -> dict[str, Any]:
        """Return the local factors of rows without missing entries: compiled once, for whatever rows come.

        Parameters
        ----------
        columns
            Name -> values in double precision, rows first, (N, ...); all that changes from row to row.
        example
            Returns data of a few such rows, always the same, and what else is known.
        """
        if self._compiled is None:
            problem, _ = self._evaluator.bind(example())
            self._compiled = GivenGlobals.of(problem, self._independent)
        n_rows = len(next(iter(columns.values())))
        rows = ArrayRows({ColumnKey(name): values for name, values in columns.items()}, n_rows)
        return self._compiled.local(rows, Threads())

    def predict(self, data: Any) -> Predictions:
        r"""Return predictions of the variables that are missing in new rows, and the factors of local variables.

        Leave out the observed variables that you want to predict, such as the ``y`` of a regression, or set values to
        NaN in some rows. If every observed value is given, only local variables are returned, as by :meth:`local`. The
        moments are

        .. math:: \mathrm E[y] = \mathrm E_q[\mathrm E[y \mid \theta]], \qquad
                  \mathrm{Var}[y] = \mathrm E_q[\mathrm{Var}[y \mid \theta]] + \mathrm{Var}_q[\mathrm E[y \mid \theta]]

        Parameters
        ----------
        data
            Values for the new rows by name: every known array (``Data``), and those observed variables that are known,
            at least in some rows. If the data do not determine the number of rows, it is one.

        Returns
        -------
        dict
            By name, computed when first accessed. An observed variable that is missing in ``data``: a
            :class:`Prediction`, with ``.mean`` and ``.standard_deviation``, rows first. An observed number or label
            that is missing in some rows or in some cells of a table (``plates=(obs, column)``): a :class:`Prediction`
            in which observed values are kept, with a standard deviation of 0. A Normal vector with missing entries: a
            :class:`Prediction` of these from the observed entries of the row, by 200 draws from q. A local variable
            with an observed child in ``data``: its distribution with the rows as first batch axis; a Categorical has
            ``.probabilities``. Completely given variables are not predicted, and raise ``KeyError``. To forecast a
            chain, add rows of NaN after the last row.

        Raises
        ------
        DataError
            If there is nothing to predict, because all observed values are given and the rows have no hidden variables.
        ModelError
            If a mean or variance has no closed form; the message says why. Use draws of :meth:`predictive` instead.

        Notes
        -----
        Moments are exact under q for Normal variables with any predictor, for other variables with global parents, and
        for a ``probit`` of a predictor that is Normal under q, :math:`\Phi(m / \sqrt{1 + v})`. A ``logistic`` is
        integrated over N(m, v) with 64 Gauss-Hermite nodes, or by the trapezoidal rule if the standard deviation
        exceeds 1. Components of a mixture have the probabilities of the row's local factor if the row has an
        observation below the Categorical, and their expected prior probabilities otherwise. Other local variables
        without an observation below them, and new repetitions of global variables, such as a group without rows, are
        forecast: their distribution given their parents is averaged over q, keeping mean and covariance. If this
        covariance is infinite for a global variable, its factor is the optimum at the expected parents. A dot product
        of D numbers takes O(N D^2).

        With Normal noise of one unknown precision, predictions of fits to few rows or groups are integrated over this
        precision, and those of the effects of groups, if :meth:`summary` is: they are mixtures of those given 40 to 80
        of their values, and not moments under q. Few are at most 100 rows more than coefficients, or 100 groups.

        For fits to at most 1,000 rows that hide something, as behind a link, predictions are mixtures over the weighted
        draws of the globals that :meth:`summary` shows or is checked by, if there are enough of them. ``.remark`` says
        so where new rows have no such prediction.

        Examples
        --------
        >>> import caviar as cv
        >>> obs, w = cv.Plate("obs"), cv.MultivariateNormal("w", [0, 0], [[1, 0], [0, 1]])
        >>> y = cv.Normal("y", cv.dot(cv.Data("X", plates=obs), w), 4.0, plates=obs)
        >>> posterior = cv.Model(y).fit({"X": [[1, 0], [1, 1]], "y": [1, 3]})
        >>> posterior.predict({"X": [[1, 2], [0, 0]]})["y"]
        Prediction(mean=[4.1379, 0.    ], standard_deviation=[1.0545, 0.5   ])
        """
        return self._predicted(data, self._shared.beside(self._factors, ()), over=self._mixed_over)

    def residuals(self, data: Any, variable: str | None = None) -> Residuals:
        """Return the residuals of an observed variable: observed values minus their predictions.

        Parameters
        ----------
        data
            As for the fit, with the observed variable.
        variable
            Name of the observed variable; optional if there is only one.

        Returns
        -------
        Residuals
            With ``.values``, ``.standardised`` (divided by the standard deviation of the prediction) and
            ``.to_frame()``.

        Raises
        ------
        ModelError
            If there is no such observed variable, it is a label, or its prediction has no closed form.

        Examples
        --------
        >>> import caviar as cv
        >>> obs, w = cv.Plate("obs"), cv.Normal("w", 0, 1)
        >>> data = {"x": [1.0, 2.0, 3.0], "y": [1.1, 1.9, 9.0]}
        >>> posterior = cv.Model(cv.Normal("y", cv.Data("x", plates=obs) * w, 4.0, plates=obs)).fit(data)
        >>> posterior.residuals(data).standardised.round(1)
        array([-2.2, -4.6,  3.6])
        """
        return residuals_of(self, self._evaluator.named(data), variable)

    def _predicted(
        self, data: Any, factors: Mapping[str, Any], joint: Any = None, over: Over | None = None
    ) -> Predictions:
        """Return predictions with these global factors, and covariances between them; see :meth:`predict`.

        Over values of the globals they are mixtures of the predictions given each of these.
        """
        met = self._evaluator.named(data)
        data = without_missing(self.model.nodes, met.values, self.data_plate)
        absent = [leaf for leaf in self.model.leaves if isinstance(data, Mapping) and leaf.name not in data]
        there = [leaf for leaf in self.model.leaves if leaf not in absent]
        local = self._local_above(there, data) if absent else self.local(data)
        others = {name: factor for name, factor in factors.items() if name not in local}
        # what the rest of a row tells of a variable, what is below it too, is more than what is above it
        from_the_row = {
            leaf.name: inferred(leaf, local[leaf.name]) for leaf in self.model.leaves if leaf.name in local
        }
        missing = [leaf for leaf in absent if leaf.name not in local]
        nodes, plate = self.model.nodes, self.data_plate
        told = partial(
            predicted, nodes, data=data, factors=others, local=local, data_plate=plate, joint=joint
        )
        told = over.mixed(told, data) if over else told
        found = told(missing) if absent else predicted_along_chains(nodes, data, others, local, plate)
        drawn = partial(self._shared.drawn, self._factors)
        if over:
            from_the_row, drawn = over.inferred(from_the_row, data), over.drawn(drawn)
        later = vectors_later(there, data, plate, local, drawn)
        anew = partial(self._predicted, factors=factors, joint=joint, over=over)
        later |= numbers_later(there, data, plate, anew, told)
        if not (local or found or later):
            raise DataError(nothing_left(there))
        return Predictions(
            {**local, **found, **from_the_row}, data, self._factors, self.names, met.index, later
        )

    def _local_above(self, leaves: Sequence[Variable], data: Mapping[str, Any]) -> dict[str, Any]:
        """Return the factors of the local variables above some of the leaves, and above what else rows have."""
        leaves = [*leaves, *known_inside(self.model.nodes, self.model.leaves, data, self.data_plate)]
        if not leaves:
            return {}
        evaluator = self._evaluator.above(leaves)
        if evaluator.data_plate is None:
            return {}
        names = [node.name for node in nodes_above(leaves)]
        above = Placed({name: value for name, value in data.items() if name in names})
        problem, row_map = evaluator.bind(above)
        return local_distributions(problem, self._shared.beside(self._factors, ()), row_map)

    def sample(self, n: int, seed: int | np.random.Generator | None = None) -> dict[str, Any]:
        """Return draws of all global variables from q.

        Parameters
        ----------
        n
            Number of draws.
        seed
            Seed of the draws; the same seed gives the same values.

        Returns
        -------
        dict
            Name -> array of shape (n, plates..., event...); for a joint factor, a pair (mean, precision) of such
            arrays. Factors are independent under q and are drawn independently; variables that share a factor
            (``factors=``) are drawn jointly. A point mass is repeated n times.
        """
        check_count("n", n)
        return self._shared.drawn(self._factors, n, generator(seed))

    def predictive(
        self,
        sizes: Mapping[str, int] | None = None,
        *,
        data: Any = None,
        n_draws: int = 1,
        seed: int | np.random.Generator | None = None,
    ) -> dict[str, Any]:
        """Return draws of the observed variables for new rows: globals are drawn from q, and the rows given them.

        Parameters
        ----------
        sizes
            Name of a plate -> its size, as ``{"obs": 100}``, if neither its declaration nor an array determines it.
        data
            Name of each known array (``Data``) of the model -> its values for the new rows; and name of each global
            variable whose values were given to the fit -> these values.
        n_draws
            Number of draws of the globals, each with its own draw of the rows.
        seed
            Seed of the draws.

        Returns
        -------
        dict
            Name of each observed variable -> array of shape (n_draws, plates..., event...).
        """
        rng = generator(seed)
        check_count("n_draws", n_draws)
        known = self._known_globals()
        if data is not None:
            data = self._evaluator.named(data).values
        check_new_rows(self.model, sizes or {}, data or {}, known)
        sizes = {**self.names.sizes_of(self.model.nodes), **(sizes or {})}
        arrays = None if data is None else {name: data[name] for name in data if name not in known}
        held = {} if data is None else {name: data[name] for name in known}
        names = [leaf.name for leaf in self.model.leaves]
        draws = []
        for _ in range(n_draws):
            values = self._shared.drawn(self._factors, None, rng)
            drawn = self.model.simulate(rng, sizes=sizes, data=arrays, given={**held, **values})
            draws.append([drawn[name] for name in names])
        return {name: np.stack(values) for name, values in zip(names, zip(*draws, strict=True), strict=True)}

    def _known_globals(self) -> list[str]:
        """Return the names of the global variables without a factor: their values came with the data of the fit."""
        found = {*self._factors, *self._local, *(leaf.name for leaf in self.model.leaves)}
        return [
            name
            for name, variable in self.model.variables.items()
            if name not in found and not belongs_to_rows(variable, self.data_plate)
        ]

    def log_predictive(self, data: Any, *, given: Mapping[str, Any] | None = None) -> Array:
        r"""Return the log posterior predictive density of each row of data, old or new, if it has a closed form.

        .. math:: \log p(x^*_n) = \log \sum_k \mathrm E_q[\pi_k]\, \mathrm E_q[p(x^*_n \mid \theta_k)], \qquad
                  \mathrm E_q[p(x \mid \theta)] = e^{A(\eta + T(x)) - A(\eta) + C(x)}

        where :math:`\eta` is the natural parameter of the factor :math:`q(\theta)`, A its log-partition function, and T
        what a row adds to :math:`\eta`. The result is a Student-t density for a NormalGamma or NormalWishart, a
        negative binomial for counts with a Gamma, and so on. At a point mass it is the density at the point.

        Parameters
        ----------
        data
            Data as for the fit, with any number of rows. Each row is scored separately, as the next row after the fit.
            Missing entries (NaN) are integrated out if the entries of a row are independent given the parents; a
            completely missing row has 0. Partly missing vectors are refused.
        given
            Name of a global variable -> value to condition on, such as one draw of :meth:`sample`, instead of averaging
            over its factor. With a value for every global, this is the density of the model at these parameters, also
            of rows with hidden numbers, as those of factor analysis; the mean density over draws is the predictive one.

        Returns
        -------
        Array
            In nats, shape (rows,). Minus infinity for a row that is impossible because of a known probability of zero
            or a point mass.

        Raises
        ------
        ModelError
            If the density has no closed form, because independent factors occur in the same term (the mean and the
            Gamma precision of a Normal), or because of a local variable other than one Categorical. Average over
            ``given=`` draws, or draw with :meth:`predictive` instead.

        Notes
        -----
        O(N K D^3) for D-dimensional locations whose factor has a covariance matrix, in blocks of rows.

        Examples
        --------
        >>> import caviar as cv
        >>> rate = cv.Gamma("rate", 2, 1)
        >>> posterior = cv.Model(cv.Poisson("x", rate, plates=cv.Plate("obs"))).fit({"x": [3, 1]})
        >>> posterior.log_predictive({"x": [0, 1, 2]}).round(3)  # negative binomial(6, 3/4)
        array([-1.726, -1.321, -1.454])
        >>> posterior.log_predictive({"x": [0, 1, 2]}, given={"rate": 2.0}).round(3)  # Poisson(2)
        array([-2.   , -1.307, -1.307])
        """
        met = self._evaluator.named(data)
        problem, row_map = self._evaluator.bind(met.values)
        given = by_names(self.model.axes, self.names, given or {})
        points = points_at(problem, given)
        try:
            found = predictive_densities(problem, {**self._factors, **points}, row_map)
        except ModelError:
            if not self._factors.keys() <= points.keys():
                raise
            # with all globals at points, other hidden numbers of a row may be integrated out, too
            at_points, rows = self._evaluator.at_points(met.values)
            found = row_log_likelihoods(at_points, given, rows)
        return densities_along_rows(found, data, met.index)

    def diagnose(
        self,
        data: Any,
        *,
        n_draws: int = 1000,
        seed: int | np.random.Generator | None = None,
        sample_weight: Any = None,
    ) -> Diagnosis:
        r"""Return how far q is from the posterior, measured by importance weights of draws of the globals from q.

        The weights are :math:`w_s = p(x, \theta_s) / q(\theta_s)`, with the local variables integrated out exactly.
        They are equal if q is the posterior, and the heavier their tail, the worse q is (PSIS).

        Parameters
        ----------
        data
            The data of the fit; independent rows may be in any order.
        n_draws
            Number of draws, at least 100. Each takes a pass over the rows.
        seed
            Seed of the draws.
        sample_weight
            As for the fit.

        Returns
        -------
        Diagnosis
            With ``.pareto_k`` (good below 0.5, usable below 0.7, poor above) and ``.log_evidence``, each with its
            standard error, ``.effective_draws`` and ``.log_weights``. It prints what they mean.

        Raises
        ------
        DataError
            If the data are not those of the fit: q has another ELBO for them.
        ModelError
            If every global is a point mass, or p(x, globals) has no closed form because local variables that depend on
            each other have separate factors.

        Notes
        -----
        Draws of q cannot show regions that q misses. If the posterior has several modes, as with exchangeable
        components, the weights show how well q fits its own mode. Globals that are point masses stay fixed. With very
        many globals (a thousand, for example) k is large for any factorised q, although each marginal may be good.

        Examples
        --------
        With few rows mean and precision depend on each other, but mean field makes them independent:

        >>> import caviar as cv
        >>> tau = cv.Gamma("tau", 1, 1)
        >>> x = cv.Normal("x", cv.Normal("mean", 0, 0.1), tau, plates=cv.Plate("obs"))
        >>> data = {"x": [1.1, 0.3, 2.2, 1.0]}
        >>> found = cv.Model(x).fit(data).diagnose(data, seed=0)
        >>> print(found.verdict, round(found.log_evidence, 1), round(found.elbo, 1))
        unclear -6.9 -7.0
        """
        check_count("n_draws", n_draws)
        problem, row_map = self._evaluator.at_points(data, sample_weight)
        refuse_what_has_no_weights(self._independent, problem, n_draws)
        elbo = self.elbo_at({}, data, sample_weight=sample_weight)
        self._refuse_other_data(elbo)
        end = self._smallest_eigenvalue(data, sample_weight)
        return diagnosis_of(self._independent, problem, row_map, elbo, n_draws, generator(seed), end)

    def is_fit_of(self, data: Any, *, sample_weight: Any = None) -> bool:
        """Return whether data and weights are those of the fit: whether q has the same ELBO for them up to rounding.

        This compares all data together, including labels and other known values; :meth:`share_seen` looks at single
        rows. If local variables that depend on each other have separate factors, their iteration may end elsewhere, and
        the answer is False.

        Parameters
        ----------
        data
            Data as for the fit; independent rows may be in any order.
        sample_weight
            As for the fit.

        Examples
        --------
        >>> import caviar as cv
        >>> x = cv.Normal("x", cv.Normal("mean", 0, 1), 1.0, plates=cv.Plate("obs"))
        >>> posterior = cv.Model(x).fit({"x": [0.3, -0.8, 1.9]})
        >>> posterior.is_fit_of({"x": [1.9, 0.3, -0.8]}), posterior.is_fit_of({"x": [0.3, -0.8]})
        (True, False)
        """
        try:
            return self._is_own_elbo(self.elbo_at({}, data, sample_weight=sample_weight))
        except ModelError:
            # of documents, or other repetitions of an outer plate, there are more or fewer
            return False

    def share_seen(self, data: Any, *, sample_weight: Any = None) -> float:
        """Return the share of the rows of data that were in the fit, or in earlier fits that it used as priors.

        Rows are recognised by a 32-bit hash of their observed and known values. Hashes of up to 1,024 rows are kept, so
        for larger fits the share is an estimate. Rows of weight zero do not count.

        Parameters
        ----------
        data
            Data as for the fit, with any number of rows in any order.
        sample_weight
            As for the fit.

        Returns
        -------
        float
            Probability, between 0 and 1. NaN if it is unknown: for a file of an earlier version, or for few rows if the
            fit had very many.

        Examples
        --------
        >>> import caviar as cv
        >>> x = cv.Normal("x", cv.Normal("mean", 0, 1), 1.0, plates=cv.Plate("obs"))
        >>> posterior = cv.Model(x).fit({"x": [0.3, -0.8, 1.9, 0.4]})
        >>> posterior.share_seen({"x": [0.4, 0.3, 5.0, 6.0]})
        0.5
        """
        _, row_map = self._evaluator.bind(data, sample_weight)
        if self.row_marks is None:
            return float("nan")
        return share_seen(self.row_marks, self.model._row_names, row_map.source)

    def cross_validate(
        self,
        data: Any,
        *,
        n_folds: int = 10,
        seed: int | np.random.Generator | None = 0,
        sample_weight: Any = None,
    ) -> Iterator[tuple[AnyArray, Posterior]]:
        """Yield the rows of each fold and the posterior given all other rows, to test predictions.

        Predictions look too good on the rows of the fit: intervals contain more of these than of new rows. Each
        posterior is found by coordinate ascent from this one.

        Parameters
        ----------
        data
            The data of the fit.
        n_folds
            Number of random folds of equal size, each of which is left out once. With the number of rows it is
            leave-one-out.
        seed
            Seed of the division into folds.
        sample_weight
            As for the fit.

        Yields
        ------
        rows
            Indices of the rows that were left out.
        posterior
            Posterior given the other rows.

        Raises
        ------
        DataError
            If the data are not those of the fit.
        ModelError
            If rows cannot be left out, because they are steps of a sequence or nested in other rows.
        ParameterError
            If there are fewer rows than folds.

        Notes
        -----
        This is a generator: it fits a fold when the fold is requested. The ascent begins at the posterior of all rows
        and so stays in its mode. Priors do not change, even if they depend on all rows, as the default priors of the
        estimators do.

        Examples
        --------
        With half as many columns as rows, intervals contain fewer new observations than observations of the fit:

        >>> import numpy as np, caviar as cv
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(100, 50))
        >>> data = {"X": X, "y": X @ rng.normal(size=50) + rng.normal(size=100)}
        >>> posterior = cv.models.linear_regression(50).fit(data)
        >>> def covered(posterior, rows):
        ...     told = posterior.predict({"X": X[rows]})["y"]
        ...     return np.abs(data["y"][rows] - told.mean) < 1.96 * told.standard_deviation
        >>> print(covered(posterior, np.arange(100)).mean())
        1.0
        >>> print(np.concatenate([covered(q, rows) for rows, q in posterior.cross_validate(data)]).mean())
        0.96
        """
        check_count("n_folds", n_folds)
        data = self._evaluator.named(data).values
        if not self.is_fit_of(data, sample_weight=sample_weight):
            raise DataError(
                "expected the data of the fit; q has another ELBO for these data. Give the data (and "
                "sample_weight=) of the fit; for other rows use log_predictive"
            )
        problem, row_map = self._evaluator.bind(data, sample_weight)
        weights = (
            np.ones(row_map.source.n_rows) if sample_weight is None else np.array(sample_weight, dtype=float)
        )

        def bind(weights: Array) -> tuple[Problem, RowMap]:
            return self._evaluator.bind(data, weights)

        for left in results_without(bind, problem, self._independent, weights, n_folds, generator(seed)):
            result = left.result
            yield left.rows, Posterior(self.model, result, self._evaluator, [result.elbo], [result.trace])

    def to_arviz(
        self,
        data: Any = None,
        *,
        n_draws: int = 1000,
        seed: int | np.random.Generator | None = None,
        coords: Mapping[str, Any] | None = None,
    ) -> Any:
        r"""Return draws of this posterior for the installed version of ArviZ.

        The draws come from q, so they have its mean-field standard deviations, and :meth:`summary` may show larger
        ones. The result is InferenceData, or since version 1 of ArviZ a DataTree, for ``arviz.summary``,
        ``plot_posterior``, ``plot_ppc``, ``loo`` and so on. Draws of q are independent and form one chain, so r_hat is
        not informative; use :meth:`diagnose` instead.

        Parameters
        ----------
        data
            The data of the fit. Without data there are only the groups ``posterior`` and ``sample_stats`` (with
            ``log_q``). With other data the weights of the draws and ``log_likelihood`` are left out, because
            leave-one-out needs the rows of the fit.
        n_draws
            Number of draws of the globals. With data, each takes two passes over the rows and a draw of new rows.
        seed
            Seed of the draws.
        coords
            Name of an axis -> its labels, as ``{"component": ["short", "long"]}``. An axis has the name of its plate;
            an axis of weights has that of the plate that they choose from; others are ``NAME_dim_0`` and so on. By
            default axes have the names of the posterior, and rows the index of the data.

        Returns
        -------
        arviz.InferenceData or xarray.DataTree
            Groups: ``posterior``, with ``NAME.mean`` and ``NAME.precision`` for a joint factor;
            ``posterior_predictive``; ``log_likelihood``, the log p(x_n | globals) of each row with its local variables
            integrated out (for several observed variables together, ``rows``); ``observed_data`` and ``constant_data``;
            ``sample_stats``, with ``log_q``, ``lp`` (log p(x, globals)) and ``log_weight``, their difference.
            Quantities without a closed form are left out, and the attribute ``left_out`` says why.

        Raises
        ------
        ImportError
            If ArviZ is not installed.

        Notes
        -----
        ``arviz.loo`` assumes draws from the posterior, so it is only as accurate as q.

        Examples
        --------
        >>> import caviar as cv
        >>> p = cv.Beta("p", 1, 1)
        >>> data = {"x": [1, 1, 0]}
        >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit(data)
        >>> tree = posterior.to_arviz(data, n_draws=100, seed=0)
        >>> print(dict(tree["log_likelihood"]["x"].sizes))
        {'chain': 1, 'draw': 100, 'obs': 3}
        """
        check_count("n_draws", n_draws)
        met = None if data is None else self._evaluator.named(data)
        bound = None if met is None else (met.values, *self._evaluator.at_points(met.values))
        attrs = {
            "inference_library": "caviar",
            "inference_library_version": __version__,
            "elbo": self.elbo,
            "converged": int(self.converged),
            "n_iter": self.n_iter,
            "uncertainty": "exact" if self.is_exact else "draws of q, the factors independent",
        }
        return inference_data(
            self.model,
            self._independent,
            bound,
            n_draws=n_draws,
            rng=generator(seed),
            coords={} if coords is None else coords,
            names=self.names,
            index=None if met is None else met.index,
            attrs=attrs,
            is_fit=met is not None and self.is_fit_of(met.values),
        )

    def elbo_at(
        self, factors: Mapping[str, Any], data: Mapping[str, Any], *, sample_weight: Any = None
    ) -> float:
        """Return the objective at other factors.

        Parameters
        ----------
        factors
            Name -> distribution, for variables whose factor differs from that of this posterior. Factors of local
            Categoricals may be given too, as :meth:`local` returns them; other local factors are at their optimum.
        data
            As for the fit.
        sample_weight
            As for the fit.
        """
        return self._objective(data, sample_weight)(factors)

    def _objective(
        self, data: Mapping[str, Any], sample_weight: Any = None
    ) -> Callable[[Mapping[str, Any]], float]:
        """Return :meth:`elbo_at` as a function of the factors: the data are read once for all of its values."""
        problem, row_map = self._evaluator.bind(data, sample_weight)

        def objective(factors: Mapping[str, Any]) -> float:
            if not isinstance(factors, Mapping):
                raise ParameterError(f"factors must map names to distributions; got {factors!r}")
            return objective_at(problem, self._shared.changed(self._factors, factors), row_map)

        return objective

    def __repr__(self) -> str:
        lines = [f"Posterior(elbo={self.elbo:.6f}, status={self.status.value!r}, n_iter={self.n_iter})"]
        lines += [f"  {name}: {factor!r}" for name, factor in self._factors.items()]
        lines += [f"  {name}: one for each row, see posterior.local(data)" for name in sorted(self._local)]
        return "\n".join(lines)
