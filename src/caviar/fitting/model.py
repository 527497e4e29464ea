"""Model, the class that users fit: language, engine, execution and data together."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from .._errors import DataError, ImproperError, ModelError, ParameterError
from .._typing import Array
from ..engine.ascent.beliefs import Beliefs
from ..engine.ascent.driver import Progress, Settings, ascend, go_on
from ..engine.ascent.impossible import refuse_impossible
from ..engine.ascent.problem import Problem
from ..engine.ascent.schedule import Beginning, Schedule, StatedSchedule
from ..engine.ascent.status import Status
from ..engine.assemble import as_schedule, assemble, schedule_for
from ..engine.binding.bound_model import BoundModel
from ..engine.binding.coordinates import Group
from ..engine.checkpoint.states import States
from ..engine.factorisation import APART
from ..engine.rows.executor import Executor
from ..engine.rows.row_map import RowMap
from ..engine.rows.sequences import ImpossibleSequenceError
from ..engine.starts.restarts import Ends
from ..language import (
    Data,
    Label,
    Node,
    Plate,
    Term,
    Variable,
    nodes_above,
    prove_conjugate,
    terms_of,
    with_factors,
)
from ..language.structure import STRUCTURES, Structure, constants_of
from ..names import ModelAxes, NamedData, Names, by_names, check_names, meet
from ..numerics.cached import cached_property
from ..numerics.randomness import generator
from ..numerics.records import replaced
from ..posterior.posterior import Posterior
from ..posterior.simulation import log_joint, simulate
from ..storage import document_of_statement, write_saved
from .arguments import check_settings, groups_of, kept, known_names, ordered, seeds, swaps_of
from .checkpointing import Choices, Keeper, fingerprints, flushing, keeper_of
from .data_summary import looks_at, of_its_own
from .graph import ShownAsGraph
from .progress import reporter
from .restarts import beginning, side_by_side, usable
from .rows import as_executor, bound_of, rows_of
from .termination import terminating
from .uncertainty import Wanted
from .warnings import warn_about


class Model(ShownAsGraph):
    """A conditionally conjugate model: observed variables and everything above them.

    Parameters
    ----------
    *leaves
        The observed variables; the model finds their parents.

    Raises
    ------
    ConjugacyError
        If a variable has no update within its family. The message names the variable, the term, and a family that has
        one.
    ModelError
        If two parts of the model have the same name.

    Examples
    --------
    >>> import numpy as np, caviar as cv
    >>> obs = cv.Plate("obs")
    >>> p = cv.Dirichlet("p", concentration=np.ones(4))
    >>> model = cv.Model(cv.Categorical("x", p, plates=obs))
    >>> posterior = model.fit({"x": [2]})
    >>> print(round(posterior.elbo, 6), posterior["p"].concentration)
    -1.386294 [1. 1. 2. 1.]
    """

    def __init__(self, *leaves: Variable) -> None:
        if not leaves:
            raise ModelError("a model needs at least one observed variable: Model(x)")
        for leaf in leaves:
            if isinstance(leaf, list | tuple):
                raise ModelError(
                    "Model takes observed variables one by one: Model(*leaves) instead of Model(leaves)"
                )
            if not isinstance(leaf, Variable):
                raise ModelError(f"Model takes the observed variables of a model; got {leaf!r}")
        nodes = nodes_above(leaves)
        known = STRUCTURES.known(nodes, leaves)
        if known is not None:
            self.leaves, self.nodes, self.structure = leaves, tuple(nodes), known
            return
        self.leaves, self.nodes = with_factors(leaves, nodes)
        prove_conjugate(self.nodes)
        check_names(self.nodes)

    @classmethod
    def _of(cls, structure: Structure, constants: Mapping[str, Array]) -> Model:
        """Return the model of a structure, of which others were stated and proven, with its own values of constants."""
        model = cls.__new__(cls)
        vars(model).update(structure=structure, constants=constants)
        return model

    @cached_property
    def _stated(self) -> tuple[tuple[Node, ...], tuple[Variable, ...]]:
        """Nodes and leaves, of a model that was not stated by nodes of its own."""
        return self.structure.with_values(self.constants)

    @cached_property
    def nodes(self) -> tuple[Node, ...]:
        """Every node, a variable before its parents."""
        return self._stated[0]

    @cached_property
    def leaves(self) -> tuple[Variable, ...]:
        """The observed variables."""
        return self._stated[1]

    @cached_property
    def structure(self) -> Structure:
        """The nodes that the engine works with; statements that differ in constants alone share them."""
        return STRUCTURES.of(self.nodes, self.leaves)

    @cached_property
    def constants(self) -> Mapping[str, Array]:
        """The values of the constants by name."""
        return constants_of(self.nodes)

    def value_of(self, constant: Node) -> Array:
        """Return the value of a constant."""
        return self.constants[constant.name]

    def __getstate__(self) -> dict[str, Any]:
        """Return the state without what other models share."""
        own = {
            name: value for name, value in vars(self).items() if name not in ("structure", "_stated", "axes")
        }
        return {**own, "nodes": self.nodes, "leaves": self.leaves}

    def __repr__(self) -> str:
        leaves = ", ".join(leaf.name for leaf in self.leaves)
        above = ", ".join(name for name in self.variables if name not in {leaf.name for leaf in self.leaves})
        return f"Model({leaves}; above: {above})" if above else f"Model({leaves})"

    @property
    def variables(self) -> dict[str, Variable]:
        """The random variables by name, a variable before its parents."""
        return {node.name: node for node in self.nodes if isinstance(node, Variable)}

    @cached_property
    def axes(self) -> ModelAxes:
        """Plates and entries of vectors of the model, with the names that it gives them."""
        structure = self.structure
        own = structure.fact("axes", lambda: ModelAxes(structure.nodes).settled())
        return own.with_values(self.constants)

    @property
    def terms(self) -> tuple[Term, ...]:
        """The terms of the log joint density."""
        return tuple(term for variable in self.variables.values() for term in terms_of(variable))

    @kept
    def fit(
        self,
        data: Any,
        *,
        seed: int | np.random.Generator | None = None,
        max_iter: int | None = None,
        tol: float = 1e-8,
        n_restarts: int = 1,
        point: Sequence[str] = (),
        factors: Sequence[Sequence[str]] | str | None = None,
        order: Sequence[str] | None = None,
        init: str | Mapping[str, Any] | Posterior = "auto",
        sample_weight: Any = None,
        data_plate: Plate | str | None = None,
        schedule: str | StatedSchedule = "auto",
        prior: Posterior | None = None,
        executor: Executor | int | str | Any = None,
        progress: bool | Callable[[Progress], object] | None = None,
        accelerate: bool = True,
        responsibilities: int | str = "auto",
        swaps: bool | str = "auto",
        checkpoint: str | os.PathLike[str] | None = None,
        checkpoint_every: float = 60.0,
        uncertainty: str = "auto",
    ) -> Posterior:
        """Return the best mean-field posterior that coordinate ascent finds.

        If the ascent converges to a saddle point, for example with all components equal, it leaves it and continues
        (except with the stochastic schedule).

        Parameters
        ----------
        data
            Name of each observed variable -> array of shape (sizes of its plates..., event shape...); NaN and masked
            entries are missing. You may also give values of other variables, which are then known. Repetitions that are
            NaN are learnt, as in ``{"x": X, "mean": [[0, 0], [nan, nan]]}``. Values of a joint factor are a pair (mean,
            precision).

            Or a table, a DataFrame of pandas or Polars, an Arrow table or :func:`caviar.scan`: each observed variable
            and each ``Data`` is the column of its name, and a vector the columns that its ``names=`` lists; other
            columns are ignored. Labels may be texts: the values that occur, sorted or in the order of their categorical
            type, become the names of the plate or the categories, unless the model lists names. ``posterior.names``
            keeps them.
        seed
            Seed of the starts; the same seed gives the same result to the bit.
        max_iter
            Largest number of iterations for each start; by default 500, with a warning if the fit has not converged.
            For the stochastic schedule, passes over the rows; by default 10. With 0 the globals keep their starting
            values, and the local factors are at their optimum given these.
        tol
            Stop when the objective (nats) changes by less than this per row, or per unit of weight.
        n_restarts
            Number of starts; the fit with the highest objective is kept. The first start is that of a fit without
            restarts; the others begin at random guesses of the labels, and with ``init="prior"`` at draws from the
            priors. ``posterior.summary()`` says how many distinct optima were found, and how often the best one.
        point
            Names of global variables whose factors are point masses: EM and MAP-EM.
        factors
            Groups of variables that share one factor, as ``[("mu", "a", "b")]``. Global Normal and MultivariateNormal
            variables that are added up, such as a common level, effects of groups and coefficients, can share one
            Gaussian factor, which has all their covariances. By default they do if they have at most 200 numbers, not
            counting the most repeated variable; otherwise ``posterior.summary()`` says so. ``"apart"`` gives each
            global its own factor. By default every local Categorical shares a factor with the local variables that it
            gates; ``[]`` separates them. ``posterior["a"]`` is the marginal of ``a``.
        order
            Names of global variables in the order of their updates; by default that of the statement.
        init
            ``"auto"``: from the data. ``"prior"``: globals at their priors. A posterior: the fit continues from its
            factors. A mapping: values (or distributions) of globals, and labels (N,), probabilities (N, K) or values of
            local variables. These are kept until the other variables are updated to match them. Variables that are not
            given begin at their priors, or from the data if the given values do not distinguish the categories of a
            label.
        sample_weight
            Weight of each row; 2 is the row twice.
        data_plate
            The plate that runs over rows; by default the data's plate without a declared size, or else the largest.
        schedule
            When the globals are updated: ``"batch"``, once a pass over the rows; ``"incremental"`` or
            :class:`Incremental`, after each of several batches of them, with the exact ELBO all the same;
            ``"stochastic"`` or :class:`Stochastic`, by small steps from one small batch after another. ``"auto"`` is
            incremental for large tables and batch for others. :class:`Refined` also moves single effects.
        prior
            The posterior of this model given earlier rows, used as the prior of its globals: streaming. The fit also
            starts there. If rows have no hidden variables and all globals share one factor, the result is that of all
            rows at once, and the ELBOs add up. Otherwise the local factors of the earlier rows are not updated again,
            so the order of the rows matters. The ELBO is that of the new rows.
        executor
            Where blocks of rows are mapped: a number of threads, or an executor such as :class:`caviar.DaskExecutor`; a
            ``distributed.Client``, or the address of a Dask scheduler, means one. Results are the same to the bit;
            those of :class:`caviar.Device`, a GPU, agree up to rounding.
        progress
            By default a fit of more than 5 seconds shows one line that changes, if standard error is a terminal, and in
            notebooks. True prints a line an iteration, False nothing. A function is called with each
            :class:`Progress`; if it returns True, the start ends with the status ``"stopped"``.
        accelerate
            Whether an iteration may move the globals beyond their updates if that raises the objective further. The
            fit reaches the same fixed points in fewer passes. With False every iteration is that of the textbook (and
            ``schedule="auto"`` is batch).
        responsibilities
            How many components a row may belong to during the fit, on average. The time of a pass is then proportional
            to this number and not to the number of components. Rows that are close together share a set of components,
            which changes if that raises the objective, so the objective is a bound and never falls. The last pass uses
            all components. ``"all"`` uses them in each pass; ``"auto"`` takes 8 for large tables with 200 components
            or more. For models whose rows have one hidden label and no other hidden variable, except missing entries.
        swaps
            Whether a converged fit tries swaps: it merges two components and splits another one in two. Many swaps are
            tried on some of the rows, and one is kept only if it raises the objective of all rows. For models whose
            rows have one hidden label and no other hidden variable, except missing entries, without point masses.
            ``"auto"`` looks for swaps once, for 8 to 199 components, if ``init`` is ``"auto"``, ``accelerate`` is True
            and iterations are left; it takes at most one and a half times the passes of the fit. True continues as long
            as swaps raise the objective, which takes several times as long as the fit. False tries none.
        checkpoint
            Path of a file that keeps the state of the fit. After an interruption or a crash the same call continues
            from there, and ends with the same result to the bit; after the end it returns at once. Delete the file to
            fit again. While the fit runs, SIGTERM stops it as Ctrl-C does.
        checkpoint_every
            Seconds between two writings of the checkpoint; 0 writes it after every iteration. If writing takes long,
            it is written less often, to take at most a twentieth of the time.
        uncertainty
            Which standard deviations and intervals ``summary()``, plots, reports and saved files show.
            ``"linear_response"`` computes them at the end of the fit, see :meth:`Posterior.linear_response`; for point
            masses they are standard errors. ``"second_order"`` corrects means and standard deviations once more, by the
            derivatives of the second-order evidence, for models with few rows and up to 300 coordinates.
            ``"integrated"`` integrates over a few globals without which the others are independent, such as one or two
            precisions between groups, whatever that costs; other models show linear response, with a warning.
            ``"mean_field"`` takes those of the factors. ``"auto"`` integrates over a few globals if the others are then
            independent and it takes a fraction of a second (with binary outcomes about five seconds); else it takes
            second order if that costs at most as much as the fit, or about a fifth of a second; else linear response by
            the same rule; and mean field otherwise, or if the schedule is stochastic, the prior is an earlier
            posterior, all variables are point masses, or the rows are on a cluster.
            With ``"auto"`` they are computed when they are first asked for, and until then the posterior keeps a
            reference to the data. A line below each table says which it shows.

        Raises
        ------
        DataError, PlateError, ParameterError
            If the data do not fit the model, known probabilities of zero leave them no possibility, or an argument is
            impossible.
        CheckpointError
            If the checkpoint is damaged, or that of another fit: another model, other data or other arguments.

        Warns
        -----
        ConvergenceWarning
            If the fit did not converge within the default number of iterations.
        CollapseWarning
            If every start ended with a component on (almost) no data.
        LostDigitsWarning
            If sums over the data are so large that rounding alone changes the ELBO by more than 0.001 nats, or columns
            are collinear to double precision.
        CaviarWarning
            If some of several starts led nowhere, ``init="prior"`` to a product of hidden locations that is 0, or
            numbers of the rows seem to have one that means missing values, as -999.
        LooseBoundWarning
            If a hidden number times hidden weights is the concentration of a Dirichlet.
        CheckpointWarning
            If the checkpoint can no longer be written, for example on a full disk. The fit continues.
        """
        check_settings(max_iter, tol, n_restarts)
        met, sample_weight, is_own = of_its_own(self._met(data, prior, init), sample_weight)
        before, init = (0, init) if prior is None and isinstance(init, str) else self._begun(init, met, prior)
        bound = bound_of(self, met, sample_weight, data_plate, factors, (point, order))
        problem = self._problem(bound, point, factors, order, thorough=max_iter == 0)
        wanted = Wanted(uncertainty, met.values, sample_weight, executor).checked(problem)
        beliefs = None if prior is None else prior.beliefs
        if beliefs is not None:
            problem = problem.believing(beliefs.about(problem))
        row_map = RowMap(problem.rows, rows_of(problem.bound), as_executor(executor))
        row_map.executor.check(problem.rows)
        refuse_impossible(problem, row_map.source)
        stated = as_schedule(schedule)
        most = stated.most_iterations if max_iter is None else max_iter
        settings = Settings(most, tol, n_restarts=n_restarts)
        swaps = swaps_of(swaps, init)
        own = schedule_for(stated, problem, row_map, most, accelerate, responsibilities, swaps)
        told = Choices(accelerate, stated, (responsibilities, swaps), point, factors, order)
        belongs = fingerprints(self, problem, row_map, init, seed, settings, checkpoint, told)
        with terminating(checkpoint):
            keeper = keeper_of(checkpoint, checkpoint_every, belongs, States(own, problem, row_map), seed)
            ends = self._restarts(problem, row_map, init, keeper, settings, progress, own)
        best = usable(ends.best)
        warn_about(best, ends, settings, max_iter is None and stated.settles, init, prior)
        return Posterior(
            self,
            best,
            _Evaluator.of(problem, self, point, factors, beliefs, met.names),
            ends.elbos,
            ends.traces,
            looks_at(bound, row_map, met.values, self._row_names, prior, is_own),
            wanted.after(best, problem, row_map, stated.settles, prior),
            before,
        )

    def _begun(
        self, init: str | Mapping[str, Any] | Posterior, met: NamedData, prior: Posterior | None
    ) -> tuple[int, str | Mapping[str, Any]]:
        """Return where a fit begins, after the iterations of the fit that it continues."""
        if isinstance(init, Posterior):
            return init._n_iter_in_all, {name: init[name] for name in init}
        if isinstance(init, Mapping):
            return 0, by_names(self.axes, met.names, init)
        return 0, "prior" if prior is not None and isinstance(init, str) and init == "auto" else init

    def _met(self, data: Any, prior: Posterior | None, init: Any = None) -> NamedData:
        """Return data as arrays, in the order of the names of an earlier fit if there was one."""
        if prior is not None and not isinstance(prior, Posterior):
            raise ParameterError(f"prior must be a posterior of this model from other rows; got {prior!r}")
        start = init.names if isinstance(init, Posterior) else None
        earlier = start if prior is None else prior.names
        if prior is not None and start is not None:
            one, other = prior.names.along, start.along
            if any(one[axis] != other[axis] for axis in one.keys() & other.keys()):
                raise ParameterError(
                    "prior= and init= are posteriors whose positions have different names; leave out init="
                )
        return meet(self.axes, self.structure.leaves, data, earlier)

    def _plate_like(self, plate: Plate | None) -> Plate | None:
        """Return the plate of this statement that has the name of one of its structure."""
        plates = {own.name: own for node in self.nodes for own in node.plates}
        return None if plate is None else plates[plate.name]

    @property
    def _row_names(self) -> list[str]:
        """Names of the observed variables and known arrays of a row of data."""
        return self.structure.fact("names of rows", lambda: _names_of_rows(self.structure))

    def simulate(
        self,
        seed: int | np.random.Generator | None = None,
        *,
        sizes: Mapping[str, int] | None = None,
        data: Mapping[str, Any] | None = None,
        given: Mapping[str, Any] | None = None,
    ) -> dict[str, Any]:
        """Return a draw of every variable, latent and observed, from the prior.

        Parameters
        ----------
        seed
            Seed of the draws; the same seed gives the same values.
        sizes
            Name of a plate -> its size, for plates whose size neither their declaration nor an array determines.
        data
            Name of each known array (``Data``) of the model -> its values.
        given
            Name of a variable -> fixed values; a pair (mean, precision) for a joint factor.

        Returns
        -------
        dict
            Name -> array of shape (plates..., event...); for a joint factor, a named pair (mean, precision) of such
            arrays.

        Raises
        ------
        ImproperError
            If a prior is improper (flat): the message names its variable.
        PlateError
            If the size of a plate is unknown, or two disagree.

        Examples
        --------
        >>> import caviar as cv
        >>> tau = cv.Gamma("tau", 2, 1)
        >>> model = cv.Model(cv.Normal("x", cv.Normal("mean", 0, 1), tau, plates=cv.Plate("obs")))
        >>> draw = model.simulate(0, sizes={"obs": 5})
        >>> list(draw), draw["x"].shape
        (['x', 'mean', 'tau'], (5,))
        """
        rng = generator(seed)
        numbers, known, held = ({} if value is None else value for value in (sizes, data, given))
        if all(isinstance(value, Mapping) for value in (numbers, known, held)):
            met = meet(self.axes, self.structure.leaves, known)
            numbers, known = {**met.sizes, **numbers}, met.values
            held = by_names(self.axes, met.names, held)
        return simulate(self.nodes, rng, numbers, known, held)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Save the model to a file that :func:`caviar.load` reads.

        Like that of :meth:`Posterior.save`, the file contains no code.

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
        >>> path = pathlib.Path(tempfile.mkdtemp()) / "coin.caviar"
        >>> cv.Model(cv.Bernoulli("x", cv.Beta("p", 1, 1), plates=cv.Plate("obs"))).save(path)
        >>> cv.load(path)
        Model(x; above: p)
        """
        write_saved(path, "Model", {"model": document_of_statement(self.nodes, self.leaves)})

    def log_joint(self, values: Mapping[str, Any]) -> float:
        """Return the log joint density log p(x, z) in nats at given values of every variable.

        Parameters
        ----------
        values
            Name -> values of every variable, as :meth:`simulate` returns them, and of every known array (``Data``). A
            flat prior counts as density 1.
        """
        return log_joint(self.nodes, values)

    def _problem(
        self,
        bound: BoundModel,
        point: Sequence[str],
        factors: Sequence[Sequence[str]] | str | None,
        order: Sequence[str] | None = None,
        thorough: bool = False,
        measured: Sequence[Group] = (),
    ) -> Problem:
        """Return the compiled problem of this model for bound data, whose looks are thorough if asked.

        ``measured`` is what the locations of a fit of the same data are measured from.
        """
        globals_ = {v.name: v for v in bound.latent_globals()}
        masses = frozenset(globals_[name] for name in known_names("point", point, globals_))
        for variable in globals_.values():
            if variable.floor is not None and variable not in masses:
                remedy = f"its factor must be a point mass: point=['{variable.name}']"
                raise ParameterError(f"'{variable.name}' has a smallest_variance, so {remedy}")
        order_of_all, plans = ordered(globals_, order), self.structure.plans
        problem = assemble(bound, order_of_all, masses, factors, plans, measured=measured)
        return problem.with_rows(problem.rows.thorough()) if thorough else problem

    def _restarts(
        self,
        problem: Problem,
        row_map: RowMap,
        init: str | Mapping[str, Any],
        keeper: Keeper,
        settings: Settings,
        progress: bool | Callable[[Progress], object] | None,
        schedule: Schedule[Any],
    ) -> Ends:
        """Return where the starts ended, from the state of the keeper on; if none has an update, say why."""
        ends = keeper.ends
        with row_map.executor.session(), reporter(progress) as callback, flushing(keeper):
            row_map.executor.reach()
            begun: dict[int, Beginning[Any]] = {}
            # a generator has other children each time
            own_seeds = seeds(keeper.seed, settings.n_restarts)
            if settings.n_restarts > 1:
                told = replace(settings, callback=callback)
                begun = side_by_side(problem, row_map, init, told, schedule, keeper, own_seeds)
            for number, own_seed in enumerate(own_seeds):
                if number < ends.n_ended:
                    continue
                own = replaced(settings, callback=callback, restart=number, recorder=keeper.record)
                try:
                    if keeper.state is not None:
                        result = go_on(schedule, keeper.state, own)
                    else:
                        start = begun.get(number) or beginning(problem, row_map, init, own_seed, own)
                        result = ascend(schedule, start, own)
                except ImpossibleSequenceError as error:
                    raise DataError(str(error)) from error
                except ImproperError as error:
                    ends = ends.with_failure(error)
                except KeyboardInterrupt:
                    # while the start was made, or its first objective: earlier ones may have ended
                    if ends.best is None:
                        raise
                    ends = ends.interrupted()
                    break
                else:
                    ends = ends.with_end(result)
                    if result.status is Status.INTERRUPTED:
                        break
                keeper.end(ends)
        if ends.best is None:
            raise ImproperError(ends.failure)
        return ends


def assembled(model: Model, data: Mapping[str, Any], point: Sequence[str]) -> Problem:
    """Return the compiled problem of a model for arrays, as a fit has it."""
    met = model._met(data, None)
    return model._problem(bound_of(model, met, None, None, None, (point,)), point, None)


@dataclass(frozen=True)
class _Evaluator:
    """Binds a fitted model to other data with the same choice of factors; what a posterior needs of its model."""

    model: Model
    point: tuple[str, ...]
    factors: Sequence[Sequence[str]] | None
    plate: Plate | None = None
    """That runs over rows, of the structure or of the model."""
    prior: Beliefs | None = None
    names: Names = field(default_factory=Names)
    on_factors: str = ""
    measured: tuple[Group, ...] = field(default=(), repr=False)
    """What the locations of the fit are measured from, where one point is enough; nothing of a loaded posterior."""

    @classmethod
    def of(
        cls, problem: Problem, model: Model, point: Any, factors: Any, prior: Beliefs | None, names: Names
    ) -> _Evaluator:
        """Return that of a fit, from its problem and arguments."""
        groups, plate = groups_of(problem, factors), problem.bound.data_plate
        measured = problem.coordinates.groups
        return cls(model, tuple(point), groups, plate, prior, names, problem.on_groups, measured)

    @property
    def data_plate(self) -> Plate | None:
        """The plate that runs over rows, as the model has it."""
        return self.model._plate_like(self.plate)

    def named(self, data: Any) -> NamedData:
        """Return data as arrays, their labels and columns in the order of the names of the fit."""
        return meet(self.model.axes, self.model.structure.leaves, data, self.names)

    def bind(
        self,
        data: Mapping[str, Any],
        sample_weight: Any = None,
        executor: Any = None,
        *,
        are_fitted: bool = False,
    ) -> tuple[Problem, RowMap]:
        """Return the problem for other data, or those of the fit, and the map over its rows."""
        met = self.named(data)
        bound = bound_of(self.model, met, sample_weight, self.plate, self.factors, (self.point,))
        factors, measured = (
            APART if self.factors is None else self.factors,
            self.measured if are_fitted else (),
        )
        problem = self.model._problem(bound, self.point, factors, measured=measured)
        if self.prior is not None:
            problem = problem.believing(self.prior.about(problem))
        problem = problem.together
        return problem, RowMap(problem.rows, rows_of(problem.bound), as_executor(executor))

    def at_points(self, data: Mapping[str, Any], sample_weight: Any = None) -> tuple[Problem, RowMap]:
        """Return the problem for data with every global a point mass, and the map over its rows."""
        names = [own.name for own in self.bind(data, sample_weight)[0].bound.latent_globals()]
        factors = self.factors and [group for group in self.factors if not set(names) & set(group)]
        return replace(self, point=tuple(names), factors=factors).bind(data, sample_weight)

    def above(self, leaves: Sequence[Variable], point: Sequence[str] | None = None) -> _Evaluator:
        """Return the same for the part of the model above some of its leaves, or copies; with other points if given."""
        model = Model(*leaves)
        names = model.variables
        points = tuple(name for name in (self.point if point is None else point) if name in names)
        groups = [[name for name in group if name in names] for group in self.factors or ()]
        # of a shared factor that is left to one variable, or without all labels that gate, there are the marginals
        groups = [
            group
            for group, whole in zip(groups, self.factors or (), strict=True)
            if len(group) > (len(whole) > 1)
            and (group == list(whole) or not any(isinstance(self.model.variables[n], Label) for n in whole))
        ]
        factors = None if self.factors is None or point is not None else groups
        plates = [plate for node in model.nodes for plate in node.plates]
        data_plate = next((own for own in plates if self.plate and own.name == self.plate.name), None)
        return _Evaluator(model, points, factors, data_plate, names=self.names)


def _names_of_rows(structure: Structure) -> list[str]:
    known = [node for node in structure.nodes if isinstance(node, Data)]
    return [node.name for node in (*structure.leaves, *known)]
