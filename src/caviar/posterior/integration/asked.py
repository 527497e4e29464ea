"""What a posterior says without the independence of some of its globals and the rest."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from ..._errors import ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...engine.ascent.problem import Problem
from ...engine.ascent.state import AscentState
from ...engine.evaluation.given_by_passes import GivenByRows, has_one_mode, state_at
from ...engine.factorisation import APART
from ...engine.response.cost import is_cheap_to_integrate, is_cheap_to_probe
from ...engine.response.given import Given, GivenInRows
from ...engine.response.probed import GivenByProbes
from ...engine.rows.row_map import RowMap
from ...language.in_expectation import in_expectation
from ...names import Placed
from ...numerics.linalg import cholesky
from ...numerics.randomness import generator
from ..evidence.coordinates import Coordinates
from ..linear_response import LinearResponse
from ..shared_factors import Factored
from ..uncertainty.known import Tell, Uncertainty
from ..uncertainty.pending import Pending
from .at_once import MOST_NUMBERS, integral_of, separating_of
from .doubts import doubt_of
from .integrated import Conditional, IntegratedPosterior, at
from .lattice import Lattice, Place, explored
from .lattice_of_fits import MOST_DIMENSIONS, integral_of_fits
from .profile import profiles_of
from .shown import Integrated

_STEPS = {1: (0.7, 13.0), 2: (0.9, 10.0), 3: (1.0, 9.0)}
"""By the number of dimensions: a step in standard deviations, and how far below the highest point the lattice ends, in
nats."""

_PILOT_STEP, _PILOT_DEPTH = 1.8, 5.0

_NEARLY_FLAT = 1e-4
"""Smallest eigenvalue up to which fits keep the standard deviations of their factors: those of linear response grow
without end towards the value where two components of a mixture become one."""

_MOST_BY_ROWS = 4
"""Numbers integrated over where each value takes a pass: of effects and the spread they depend on weights are poor."""

_OF_Q = 1_000
"""Draws of q that say where the first lattice is."""


class Integrates(Factored):
    """A posterior that is integrated over some globals."""

    def integrated(
        self, data: Any, over: str | Sequence[str], *, sample_weight: Any = None, executor: Any = None
    ) -> IntegratedPosterior:
        r"""Return the posterior integrated over some globals, which are then no longer independent of the others.

        The model is fitted again with these globals fixed at each point of a grid of values. Their density follows from
        the second-order evidence of the fits. All other globals are mixtures of the fits, with the standard deviations
        of linear response. The result is exact if the others are Normal, for example if all precisions of a Gaussian
        model are integrated over.

        Parameters
        ----------
        data
            The data of the fit.
        over
            One or several names of global variables with at most three numbers in all. It helps most for precisions of
            effects of few groups, because these depend on each other.
        sample_weight, executor
            As for the fit.

        Returns
        -------
        IntegratedPosterior
            With ``.mean(name)``, ``.sd(name)``, ``.interval(name, level)`` and ``.transformed(function, name)`` for all
            globals, ``.predict(new)``, ``.log_evidence``, and ``.elbo``, which is at least that of this posterior.

        Raises
        ------
        ParameterError
            If a name is not a global variable, or they have more than three numbers.
        ModelError
            If one of them is a point mass, a label or partly known, if their density does not decay, or if the prior of
            the fit was an earlier posterior.

        Notes
        -----
        It takes about 30 fits for one number, 150 for two and 500 for three, each started at a neighbour, and linear
        response for those with weight.

        Examples
        --------
        The mean of five values whose noise is not known has a Student-t distribution if its prior is flat:

        >>> import numpy as np, caviar as cv
        >>> x = cv.Normal("x", cv.Normal("m", 0, 1e-8), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
        >>> data = {"x": [0.2, -0.5, 1.0, 0.3, 0.0]}
        >>> posterior = cv.Model(x).fit(data)
        >>> found = posterior.integrated(data, "tau")
        >>> print(round(float(np.sqrt(posterior["m"].variance)), 4), found.sd("m").round(4))
        0.3599 0.4155
        """
        names = _checked(over, self._factors)
        if self._evaluator.prior is not None:
            raise ModelError(
                "the prior of this posterior was an earlier posterior, whose rows are not in these data; fit "
                "the model to all rows at once to integrate over its globals"
            )
        rng = generator(0)
        counted = self._counted(data, sample_weight)
        coordinates = _coordinates(names, self._factors, counted, rng)
        vectors = coordinates.vectors(self._shared.drawn(self._factors, _OF_Q, rng))
        fits = _Fits(self, names, coordinates, data, {"sample_weight": sample_weight, "executor": executor})
        pilot, _ = fits.along(vectors.mean(axis=0), np.cov(vectors.T), _PILOT_STEP, _PILOT_DEPTH)
        center, covariance = pilot.moments()
        # a density within one cell of the lattice has no width there
        covariance += 0.1 * pilot.root @ pilot.root.T
        lattice, found = fits.along(center, covariance, *_STEPS[coordinates.size])
        return IntegratedPosterior.of(names, coordinates, lattice, found)

    def _show_profiled(self, names: Sequence[str]) -> None:
        """Show figures integrated over each of some globals, where these cost little, instead of second order.

        Elsewhere linear response is shown.
        """
        self._show_told(partial(self._profiled, names))

    @abstractmethod
    def _show_told(self, tell: Tell) -> None:
        """Show the standard deviations and intervals that a function gives instead of the default ones."""

    def _integrated(self, pending: Pending) -> Integrated | None:
        """Return the figures integrated over the fewest globals without which the others are independent.

        None where rows hide something, where it costs more than a fraction of a second, or if weights are poor.
        """
        problem, row_map = self._bound(pending)
        return None if problem.factors else self._integrated_from(Given, problem, row_map)

    def _integrated_by_rows(self, pending: Pending) -> Integrated | None:
        """Return the same where rows hide something with a single mode, from a pass for each value."""
        problem, row_map = self._bound(pending)
        if not has_one_mode(problem):
            return None
        return self._integrated_from(GivenByRows, problem, row_map, most=_MOST_BY_ROWS)

    def _integrated_in_rows(self, pending: Pending, *, at_any_cost: bool = False) -> Integrated | None:
        """Return the same where Normal globals meet what the rows hide, with linear response of a fit at each value.

        Binary outcomes have the expected logarithms of their links in these fits.
        """
        problem, row_map = self._bound(pending)
        if not has_one_mode(problem):
            return None
        names = separating_of(problem, self._factors, most=MOST_DIMENSIONS, is_normal_apart=False)
        if not names:
            return None
        fit = self._in_expectation(pending)
        if fit is not self:
            problem, row_map = fit._bound(replace(pending, bound=None))
        state = fit._state(problem, row_map)
        n_numbers = sum(int(np.size(self._factors[name].mean)) for name in names)
        n_rows = row_map.source.n_rows
        given: GivenInRows | GivenByProbes = GivenInRows(state, names)
        if not given.is_available or not is_cheap_to_integrate(problem, state.q, n_rows, n_numbers):
            by_probes = GivenByProbes(state, names)
            if by_probes.is_available and (at_any_cost or is_cheap_to_probe(problem, n_rows, n_numbers)):
                given = by_probes
            elif not (at_any_cost and given.is_available):
                return None
        integral = integral_of_fits(fit._factors, given, names).beside(fit._factors, self._factors)
        return Integrated.of(integral, self._factors)

    def _doubt(self, pending: Pending, shown: Uncertainty) -> str:
        """Say why figures of linear response or of the factors may be wrong; empty if nothing says so."""
        return doubt_of(self, pending, shown)

    def _in_expectation(self, pending: Pending) -> Integrates:
        """Return the fit with the expected logarithms of links in the ELBO, and sums in one factor.

        This one if it is that.
        """
        try:
            leaves = [in_expectation(leaf) for leaf in self.model.leaves]
        except ModelError:
            leaves = list(self.model.leaves)
        arguments = {**_arguments_of(self), "sample_weight": pending.sample_weight}
        is_same = all(one is other for one, other in zip(leaves, self.model.leaves, strict=True))
        if is_same and arguments["factors"] is not APART:
            return self
        if arguments["factors"] is APART:
            del arguments["factors"]
        init = {name: self._factors[name] for name in self._factors}
        return type(self.model)(*leaves).fit(
            pending.data,
            init=init,
            seed=0,
            tol=1e-9,
            max_iter=2000,
            progress=False,
            uncertainty="mean_field",
            **arguments,
        )

    def _integrated_from(
        self,
        kind: type[Given] | type[GivenByRows],
        problem: Problem,
        row_map: RowMap,
        most: float = MOST_NUMBERS,
    ) -> Integrated | None:
        names = separating_of(problem, self._factors, most=most)
        if not names:
            return None
        given = kind(self._state(problem, row_map), names)
        integral = integral_of(self._factors, given, names)
        return None if integral is None else Integrated.of(integral, self._factors)

    def _profiled(self, names: Sequence[str], pending: Pending) -> Integrated | None:
        with suppress(ModelError, np.linalg.LinAlgError):
            found = self._integrated_in_rows(pending)
            if found is not None:
                return found
        problem, row_map = self._bound(pending)
        integral = profiles_of(self._factors, self._state(problem, row_map), names)
        if integral is None:
            return None
        # what the rows hide makes other figures wider than their factors, which linear response tells
        response = self._responding(
            pending.data, pending.sample_weight, bound=pending.bound, is_whole=not pending.left_out
        )
        return Integrated.of(integral, self._factors).at_least(response.widths(pending.left_out))

    def _bound(self, pending: Pending) -> tuple[Problem, RowMap]:
        """Return the problem of the fit, and the map over its rows."""
        return pending.bound or self._evaluator.bind(pending.data, pending.sample_weight)

    def _state(self, problem: Problem, row_map: RowMap) -> AscentState:
        """Return the state of the fit, after refusing other data."""
        state = state_at(problem, {**self._factors, **self._shared.independent(self._factors)}, row_map)
        self._refuse_other_data(state.elbo)
        return state

    @abstractmethod
    def _responding(
        self,
        data: Any,
        sample_weight: Any = None,
        executor: Any = None,
        *,
        is_whole: bool = True,
        bound: tuple[Problem, RowMap] | None = None,
    ) -> LinearResponse:
        """Return linear response."""

    @abstractmethod
    def _refuse_other_data(self, elbo: float | None) -> None:
        """Refuse data for which q has another ELBO than for those of the fit."""

    @abstractmethod
    def linear_response(
        self, data: Any, *, sample_weight: Any = None, executor: Any = None
    ) -> LinearResponse:
        """Return linear response."""

    @abstractmethod
    def _counted(self, data: Any, sample_weight: Any = None) -> dict[str, AnyArray]:
        """Return which repetitions of global variables count."""


class _Fits:
    """Fits of a model with some globals known."""

    def __init__(
        self,
        posterior: Any,
        names: Sequence[str],
        coordinates: Coordinates,
        data: Any,
        arguments: Mapping[str, Any],
    ) -> None:
        self._posterior, self._names, self._coordinates = posterior, names, coordinates
        self._given = posterior._evaluator.named(data).values
        self._arguments = {**arguments, **_arguments_of(posterior, names)}

    def along(
        self, center: Array, covariance: Array, step: float, depth: float
    ) -> tuple[Lattice, list[Conditional]]:
        """Return the lattice around a point where the density is, and the fits at its points."""
        root = step * cholesky(np.reshape(covariance, (len(center), len(center))))
        found: dict[Place, Conditional] = {}

        def log_density(place: Place, beside: Place | None) -> float:
            vector = (center + root @ np.array(place, dtype=np.float64))[None]
            start = None if beside is None else found[beside]
            found[place] = self._fitted(self._coordinates.values(vector), start)
            return found[place].log_evidence + float(self._coordinates.log_volume(vector)[0])

        lattice = Lattice(center, root, explored(log_density, len(center), depth))
        return lattice, [found[place] for place in lattice.found]

    def _fitted(self, values: Mapping[str, Any], start: Conditional | None) -> Conditional:
        """Return the fit with some values known, from where another one ended."""
        given = {**self._given, **{name: at(values[name], 0) for name in self._names}}
        known = Placed(given, self._posterior.names)
        before = self._posterior if start is None else start.posterior
        init = {name: before[name] for name in before if name not in self._names}
        found = self._posterior.model.fit(
            known,
            init=init,
            seed=0,
            tol=1e-9,
            max_iter=2000,
            progress=False,
            uncertainty="mean_field",
            **self._arguments,
        )
        before_it = 0.0 if start is None else start.correction
        try:
            response = found.linear_response(known, sample_weight=self._arguments["sample_weight"])
            correction = response.elbo_correction
            if response.smallest_eigenvalue < _NEARLY_FLAT:
                return Conditional(found, before_it)
        except (ModelError, np.linalg.LinAlgError):
            return Conditional(found, before_it)
        found._show(response.widths())
        return Conditional(found, correction)


def _arguments_of(posterior: Any, known: Collection[str] = ()) -> dict[str, Any]:
    """Return arguments of a fit with the factors of a posterior, without some variables that are known."""
    evaluator = posterior._evaluator
    groups = [[own for own in group if own not in known] for group in evaluator.factors or ()]
    return {
        "factors": APART if evaluator.factors is None else [group for group in groups if len(group) > 1],
        "point": evaluator.point,
        "data_plate": evaluator.data_plate,
    }


def _checked(over: str | Sequence[str], factors: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the names to integrate over."""
    names = (over,) if isinstance(over, str) else tuple(over)
    unknown = [name for name in names if name not in factors]
    if unknown or not names or len(set(names)) < len(names):
        raise ParameterError(
            f"over takes names of global variables, each once: {', '.join(map(repr, factors))}; got {over!r}"
        )
    return names


def _coordinates(
    names: Sequence[str],
    factors: Mapping[str, Any],
    counted: Mapping[str, AnyArray],
    rng: np.random.Generator,
) -> Coordinates:
    """Return the coordinates of globals to integrate over."""
    for name in names:
        if factors[name].learnt is not factors[name]:
            raise ModelError(
                f"'{name}' is a point mass or partly known, so it cannot be integrated over; leave it out"
            )
        if not counted.get(name, np.ones(())).all():
            raise ModelError(
                f"'{name}' has repetitions without rows, so it cannot be integrated over; leave it out"
            )
    coordinates = Coordinates.of({name: factors[name] for name in names}, counted, rng)
    if coordinates.size not in _STEPS:
        raise ParameterError(
            f"over takes variables with up to {max(_STEPS)} numbers in all; {', '.join(map(repr, names))} have "
            f"{coordinates.size}"
        )
    return coordinates
