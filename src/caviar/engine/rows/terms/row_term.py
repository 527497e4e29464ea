r"""The interface of row terms, the block of rows that they work on, and the local factors that they speak to.

The terms of a row are summed twice: with the statistic of a local factor taken out they are its natural parameters
(``forward``), and with the coefficient taken out they are sums over rows (``backward``),

.. math:: \eta_{n} = \sum_t W_t T_t(x_n), \qquad S_t = \sum_n \langle u_n \rangle T_t(x_n)'

A new kind of known values, or of what meets them, is a class with these two methods, in a module beside this one that
says where it applies: :meth:`.MatrixTerm.of_matrix` or :meth:`.ContractedTerm.of_term`.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import MutableMapping, Sequence

import numpy as np

from ...._typing import AnyArray, Array
from ...design.backend import Workspace
from ...design.features import Feature, FeatureTable
from ...design.keys import FactorKey
from ...local.local_factor import LocalFactor
from ...local.statistics import Arrays, Coefficients, LocalState, Rows, Sums


class BlockWork:
    """A block of rows at work: what its terms share.

    Parameters
    ----------
    rows
        The block.
    coefficients
        What the rows need of the globals.
    scratch
        Buffers of this thread, and the operations on them.
    state
        Expected statistics (E, B) of the local factors that are inferred already.

    Attributes
    ----------
    state
        The same, with each factor from its inference on.
    natural
        Natural parameters of the local factors that are inferred given others.
    counted
        The statistics that count in the sums, zero where a repetition does not; known once all factors are inferred.
    rest
        Local factor -> sums of its trailing statistics, where its inference makes them; see
        :class:`~caviar.engine.rows.inference.SharedPrecision`.
    """

    def __init__(
        self, rows: Rows, coefficients: Coefficients, scratch: Workspace, state: LocalState | None = None
    ) -> None:
        self.rows = rows
        self.coefficients = coefficients
        self.scratch = scratch
        self.state: LocalState = {} if state is None else dict(state)
        self.natural: LocalState = {}
        self.counted: LocalState = {}
        self.rest: dict[FactorKey, Array] = {}
        self._tables: MutableMapping[FeatureTable, Array] = {} if rows.tables is None else rows.tables
        self._features: dict[FeatureTable, Array] = {}
        self._known: Arrays = {}
        self._weighted: LocalState = {}

    def features(self, table: FeatureTable) -> Array:
        """Return the dense features T of the block, (F, B): written once, in the scratch or where they are kept."""
        found = self._features.get(table)
        if found is not None:
            return found
        found = self._tables.get(table)
        if found is None:
            shape = table.n_dense, self.rows.n_rows
            if self.rows.tables is None:
                found = self.scratch.array((table, "features"), shape)
            else:
                found = np.empty(shape)
            self.scratch.backend.fill(table, self.rows.columns, found, self.scratch)
            self._tables[table] = found
        self._features[table] = found
        return found

    def known(self, features: Sequence[Feature]) -> Arrays:
        """Return features by key, unpacked: (shape..., B)."""
        for feature in features:
            if feature.key not in self._known:
                self._known[feature.key] = feature.of_block(self.rows.columns, self.rows.n_rows)
        return self._known

    def weigh(self, *, in_place: bool) -> None:
        """Multiply the statistics that count by the weights of the rows, for the terms that are linear in them."""
        weights = self.rows.weights
        for key, expected in self.counted.items():
            if weights is None:
                self._weighted[key] = expected
            elif in_place:
                expected *= weights
                self._weighted[key] = expected
            else:
                self._weighted[key] = expected * weights

    def weighted(self, key: FactorKey) -> Array:
        """Return the statistics (E, B) of a factor that count, times the weights of the rows."""
        return self._weighted[key]


class RowTerm(ABC):
    """Some of the terms of a row, all with the same local factors.

    All threads share it: what belongs to a block is in ``work``, or in ``work.scratch.array((self, name), shape)``. On
    a device the arrays are those of its library, which ``work.scratch.backend`` knows.
    """

    is_linear = True
    """Whether its message to a local factor is linear in the coefficients."""

    @property
    @abstractmethod
    def targets(self) -> tuple[FactorKey, ...]:
        """The local factors that it contributes to; ``("",)`` if it contains no local variable."""

    @property
    def couples(self) -> bool:
        """Whether local factors meet in it, so that each depends on the others."""
        return False

    def mask(self, matrix: Array, scratch: Workspace) -> Array:
        """Return the part of the matrix W that the dense product still has to apply: mostly all of it."""
        return matrix

    def of_categories(self, categories: AnyArray) -> RowTerm:
        """Return the term of some categories of a label alone, in this order.

        Raises
        ------
        TypeError
            If it is not a part of the matrix of one label.
        """
        raise TypeError(f"{type(self).__name__} is not a part of the matrix of one label")

    @abstractmethod
    def forward(self, target: FactorKey, work: BlockWork, coefficients: Coefficients, natural: Array) -> None:
        """Add the terms with the target's statistics taken out to its natural parameters (E, B).

        The first term of a factor writes them all. It may be called more than once for a block, also with coefficients
        that count known probabilities of zero.
        """

    def forward_change(
        self, target: FactorKey, work: BlockWork, change: Coefficients, natural: Array
    ) -> None:
        """Add the change of its message with the coefficients, for fixed local factors.

        The first term of a factor writes all of its natural parameters (E, B).
        """
        self.forward(target, work, change, natural)

    def backward_change(self, work: BlockWork, change: Coefficients, sums: Sums) -> None:
        """Add by how much its sums change with the coefficients, the local factors as they are: most do not."""
        return

    @abstractmethod
    def backward(self, work: BlockWork, sums: Sums) -> None:
        """Add the terms with the coefficients taken out, summed over the rows; called once a block.

        The first term of a factor sets ``sums.fused`` of it, (E, F); those after it fill in their own columns.
        """


class FactorOfRows:
    """One local factor, and the row terms that speak to it.

    Parameters
    ----------
    factor
        The local factor.
    products
        Its terms that meet the data in the matrix product, in the order of their visits.
    contracted
        The others.
    """

    def __init__(
        self,
        factor: LocalFactor,
        products: Sequence[RowTerm],
        contracted: Sequence[RowTerm],
    ) -> None:
        self.factor = factor
        self._terms = (*products, *contracted)
        self._contracted = contracted
        # what counts zeros knows neither centres nor patterns
        self._exact_terms = (*(term for term in products if term.is_linear), *contracted)
        self._has_product = bool(products)

    @property
    def is_coupled(self) -> bool:
        """Whether it depends on other local factors."""
        return any(term.couples for term in self._contracted)

    def natural(self, work: BlockWork) -> Array:
        """Return its natural parameters (E, B) given the others; they live in the scratch."""
        factor, rows = self.factor, work.rows
        natural = self._added(work, work.coefficients, self._terms, "natural")
        zeros = None
        if work.coefficients.zeros is not None and factor.labels:
            zeros = self.zeros(work, work.coefficients.zeros)
        factor.restrict(natural, rows.columns, zeros)
        return natural

    def zeros(self, work: BlockWork, zeros: Coefficients) -> Array:
        """Return how many known probabilities of zero each statistic meets, (E, B), in the scratch."""
        return self._added(work, zeros, self._exact_terms, "zeros")

    def change(self, work: BlockWork, change: Coefficients) -> Array:
        """Return by how much its natural parameters (E, B) change with the coefficients; they live in the scratch.

        The local factors that it depends on are as they are.
        """
        total = work.scratch.array((self.factor, "change"), (self.factor.n_rows, work.rows.n_rows))
        if not self._has_product:
            total.fill(0.0)
        for term in self._terms:
            term.forward_change(self.factor.key, work, change, total)
        return total

    def _added(
        self, work: BlockWork, coefficients: Coefficients, terms: Sequence[RowTerm], name: str
    ) -> Array:
        total = work.scratch.array((self.factor, name), (self.factor.n_rows, work.rows.n_rows))
        if not self._has_product:
            total.fill(0.0)
        for term in terms:
            term.forward(self.factor.key, work, coefficients, total)
        return total

    def infer(self, work: BlockWork, sums: Sums, *, keep: bool) -> None:
        """Infer it, and add what its entropy needs to the sums.

        Parameters
        ----------
        keep
            Whether its statistics outlive the block's work.
        """
        factor, backend, weights = self.factor, work.scratch.backend, work.rows.weights
        expected = self.natural(work)
        natural = expected.copy() if self._contracted else None
        inferred = backend.infer(factor, expected)
        entropy, seen = inferred.entropy, factor.seen(work.rows.columns)
        if entropy is None and natural is not None:
            shape = (*inferred.log_partition.shape[:-1], -1, work.rows.n_rows)
            # what is excluded has the natural parameter minus infinity, and counts nothing
            inner = np.multiply(natural, expected, out=np.zeros_like(natural), where=expected != 0)
            entropy = inferred.log_partition - inner.reshape(shape).sum(axis=-2)
        if entropy is None:
            sums.log_partition[factor.key] = backend.weighted(inferred.log_partition, weights, seen)
        else:
            sums.entropy[factor.key] = backend.weighted(entropy, weights, seen)
        work.state[factor.key] = expected.copy() if keep else expected
        if natural is not None and keep:
            work.natural[factor.key] = natural

    def renewed(self, work: BlockWork, natural: Array) -> Array:
        """Overwrite natural parameters (E, B) by the expected statistics that the factor has now, and return these."""
        self.factor.infer_from(natural, work.state.get(self.factor.key))
        return natural
