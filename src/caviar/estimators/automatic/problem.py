"""The problem of a search: rows, and the mixture stated for any number of components."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from ..._typing import AnyArray, Array
from ...data import ArrayRows
from ...engine.ascent.driver import EndedBy, Progress
from ...engine.ascent.schedules.moves.swaps import Mixture
from ...engine.ascent.schedules.moves.weighed import weighed
from ...engine.ascent.state import AscentState, begin
from ...engine.ascent.status import Status
from ...engine.design.keys import ColumnKey
from ...engine.rows.row_map import RowMap
from ...engine.rows.subsample import sample_of
from ...engine.starts.from_user import given_start
from ...fitting.model import Model
from ...fitting.rows import as_executor, bound_of, rows_of
from ...language import Variable
from ...names import Placed
from ...posterior.posterior import Posterior
from ..arguments.checkpointing import NextFit
from .move import Patience

_ROUNDING = 1e-10

MoveInTime = tuple[str, str, int, Array]
"""Kind, seed, component and share of a :class:`~.proposals.Proposal`."""

Starts = str | Mapping[str, Any]


def _same(X: AnyArray) -> AnyArray:
    return X


@dataclass(frozen=True)
class Problem:
    """Rows of data, and the statement of their mixture for any number of components.

    Attributes
    ----------
    model_of
        Number of components -> the model, with variables ``x`` and ``z``. The prior of a component must not depend
        on how many there are.
    X
        Values of ``x``, rows first.
    weights
        Weight of each row, above 0, shape (N,).
    max_iter, tol
        As for :meth:`caviar.Model.fit`.
    executor
        Where blocks of rows are mapped; it does not change the result.
    progress
        Called after each iteration over these rows.
    values
        Returns rows as values of ``x``; by default themselves.
    label
        Name of the label of the rows in the model.
    known
        Name -> value of globals that are not learnt.
    next_fit
        Gives each fit to these rows what it goes on from after an interruption; None for parts and samples of the rows,
        whose fits are made again.
    """

    model_of: Callable[[int], Model]
    X: AnyArray
    weights: Array
    max_iter: int
    tol: float
    executor: Any = None
    progress: bool | Callable[[Progress], None] = False
    next_fit: NextFit | None = None
    values: Callable[[AnyArray], AnyArray] = _same
    label: str = "z"
    known: Mapping[str, Any] = field(default_factory=dict)

    far_moves: ClassVar[int] = 3
    """Moves of each kind that are tried in a sweep though nothing speaks for them, however much they seem to lose."""

    least_overlap: ClassVar[float] = 0.0
    """Cosine of the responsibilities of two components below which no merge of them is proposed."""

    clear_gain: ClassVar[float] = 12.0
    """Gain (nats) of a cut from which on the ordinary starts, which cost more than all cuts together, are not made."""

    least_half: ClassVar[float] = 0.0
    """Weight of the rows of a half below which a cut of a component counts as none."""

    patience: ClassVar[Patience] = Patience(least=4, ahead=20, slow=0.01)
    """With a move beside the mixture before it."""

    tries_anew: ClassVar[bool] = False
    """Whether a fit from new starts with one component more is tried where no move is left: where proposals, which take
    rows for independent, miss what tells components apart."""

    settles_near: ClassVar[bool] = True
    """Whether moves may be settled among few components, with rows that are independent of the others."""

    @property
    def total_weight(self) -> float:
        """Weight of all rows."""
        return float(self.weights.sum())

    def slack(self, elbo: float) -> float:
        """Return the change of the ELBO that counts as none: what the loop takes for settled, or rounding."""
        return max(_ROUNDING * abs(elbo), self.tol * self.total_weight)

    def fit(
        self,
        n_components: int,
        init: Starts = "auto",
        *,
        max_iter: int | None = None,
        seed: np.random.Generator | int = 0,
        until: Callable[[Progress], bool] | None = None,
    ) -> Posterior:
        """Return where the ordinary loop ends, or where it is to end by ``until``, told of each iteration.

        Raises
        ------
        KeyboardInterrupt
            If a fit to a part or a sample is interrupted: what follows from it would be another search.
        """
        end = self.model_of(n_components).fit(
            self._data(),
            seed=seed,
            max_iter=self.max_iter if max_iter is None else min(max_iter, self.max_iter),
            tol=self.tol,
            init=self._start(init),
            sample_weight=None if np.all(self.weights == 1) else self.weights,
            executor=self.executor,
            progress=self.progress if until is None else EndedBy(self.progress, until),
            checkpoint=None if self.next_fit is None else self.next_fit(),
        )
        if self.next_fit is None and end.status is Status.INTERRUPTED:
            raise KeyboardInterrupt
        return end

    def shared(self, posterior: Posterior) -> dict[str, Any]:
        """Return the factors of the globals that are the same for any number of components, such as a learnt scale."""
        one, two = (self.model_of(number).variables for number in (2, 3))
        return {
            name: own for name, own in factors_of(posterior).items() if _shape(one[name]) == _shape(two[name])
        }

    def responsibilities(self, posterior: Posterior) -> Array:
        """Return q(z) of these rows, shape (N, K)."""
        return posterior.local(self._data())[self.label].probabilities

    def responsibilities_under_part(self, posterior: Posterior) -> Array:
        """Return q(z) of these rows, shape (N, K), under a fit of a part of them, see :meth:`part`."""
        return self.responsibilities(posterior)

    def weighed(self, posterior: Posterior, responsibilities: Array) -> Mixture | None:
        """Return the mixture of a posterior, whose moves are judged from sums alone; None if it has none."""
        model = self.model_of(responsibilities.shape[1])
        return weighed(state_at(model, self._data(), factors_of(posterior), self.weights))

    def moves_in_time(self, responsibilities: Array, natural: Array) -> list[MoveInTime]:
        """Return moves that the order of the rows shows, from logits of their labels, (K, N); rows have none here."""
        return []

    def in_order(self, posterior: Posterior, n_components: int) -> Posterior:
        """Return a fit with its components by their weight, then by their place; as it is if its ELBO would fall."""
        responsibilities = self.responsibilities(posterior)
        share = self.weights[:, None] * responsibilities
        # components of equal weight are ordered by their location, independently of the order of rows and moves
        places = share.T @ np.nan_to_num(np.asarray(self.X, dtype=np.float64))
        order = np.lexsort((*places.T[::-1], -np.round(share.sum(axis=0), 6)))
        if np.all(np.diff(order) > 0):
            return posterior
        start = {**self.shared(posterior), "z": responsibilities[:, order]}
        after = self.fit(n_components, start)
        if not after.elbo >= posterior.elbo - self.slack(after.elbo):
            return posterior
        after._goes_on_from(posterior)
        return after

    def _data(self) -> dict[str, Any]:
        """Return the rows as the model takes them."""
        return Placed({"x": self.values(self.X), **self.known})

    def _start(self, init: Starts) -> Starts:
        """Return where a fit begins, as the model takes it, which may have another name for the label."""
        if isinstance(init, str) or "z" not in init:
            return init
        return {self.label if name == "z" else name: own for name, own in init.items()}

    def part(self, share: Array, smallest: float, **changes: Any) -> Problem:
        """Return the rows of which more than ``smallest`` belongs to a part, weighted by their share (N,) in it."""
        rows = share > smallest
        weights = (self.weights * share)[rows]
        return replace(self, X=self.X[rows], weights=weights, progress=False, next_fit=None, **changes)

    def subsample(self, largest: int) -> Problem:
        """Return the same, of at most ``largest`` distinct rows.

        They follow from the weighted empirical distribution alone: see ``engine/sample.py``. They weigh what they
        are, not as much as all rows: else the chance of which rows are in the sample would look like structure.
        """
        if len(self.X) <= largest:
            return self
        sample = sample_of(ArrayRows({ColumnKey("x"): self.X}, len(self.X), self.weights), largest)
        is_all = sample.n_rows < largest
        weights = sample.row_weights * (1.0 if is_all else sample.n_rows / len(self.X))
        return replace(self, X=sample.columns[ColumnKey("x")], weights=weights, progress=False, next_fit=None)


def _shape(variable: Variable) -> tuple[Any, ...]:
    return variable.dimension, tuple(plate.size for plate in variable.plates)


def state_at(
    model: Model, data: Mapping[str, Any], init: Mapping[str, Any], sample_weight: Any = None
) -> AscentState:
    """Return the state in which a fit with these arguments begins, as :meth:`caviar.Model.fit` takes them."""
    bound = bound_of(model, model._met(data, None), sample_weight, None, None, ((), None))
    problem = model._problem(bound, (), None)
    rows = RowMap(problem.rows, rows_of(problem.bound), as_executor(None))
    begun, q = given_start(problem, init, rows).start
    return begin(begun, q, rows)


def factors_of(posterior: Posterior) -> dict[str, Any]:
    """Return the factors of a posterior, for another fit to continue from."""
    return {name: posterior[name] for name in posterior}
