"""What a posterior says of the effects of many candidates, and the fewest that hold an effect: credible sets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..._errors import ModelError, ParameterError
from ..._typing import AnyArray, Array
from ...families import SingleEffect
from ...families.base.sparse_vectors import SparseVector
from ...language import Data, Indexed, Node, Predictor, Variable
from ...numerics.arguments import require_share
from ..shared_factors import Factored


class TellsEffects(Factored):
    """A posterior that may have vectors with zeros."""

    def inclusion_probabilities(self, names: Iterable[str] | None = None) -> Array:
        r"""Return the probability that each candidate has an effect in at least one of several vectors.

        .. math:: 1 - \prod_l (1 - \alpha_{lj})

        Parameters
        ----------
        names
            Names of the vectors: SingleEffects and SpikeSlabs of equal length without plates. By default all of them.

        Returns
        -------
        array
            Probabilities, shape (D,).

        Raises
        ------
        ModelError
            If the model has no such effects, or they differ in length.

        Examples
        --------
        >>> import numpy as np
        >>> import caviar as cv
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(200, 5))
        >>> y = X[:, 1] - X[:, 4] + rng.normal(size=200)
        >>> obs = cv.Plate("obs")
        >>> x = cv.Data("X", plates=obs)
        >>> first, second = (cv.SingleEffect(name, 5, precision=1.0) for name in ("first", "second"))
        >>> model = cv.Model(cv.Normal("y", cv.dot(x, first) + cv.dot(x, second), 1.0, plates=obs))
        >>> posterior = model.fit({"y": y, "X": X})
        >>> posterior.inclusion_probabilities().round(2)
        array([0., 1., 0., 0., 1.])
        >>> [(own.effect, own.entries) for own in posterior.credible_sets({"X": X})]
        [('first', (4,)), ('second', (1,))]
        """
        factors = self._sparse(names, SparseVector, "SingleEffect or SpikeSlab")
        shapes = {factor.inclusion.shape for factor in factors.values()}
        if len(shapes) > 1 or any(len(shape) != 1 for shape in shapes):
            listed = ", ".join(f"'{name}' {factor.inclusion.shape}" for name, factor in factors.items())
            raise ModelError(
                f"inclusion_probabilities takes vectors of one length without plates; name some of {listed}"
            )
        missed = np.ones(next(iter(shapes)))
        for factor in factors.values():
            missed = missed * (1.0 - factor.inclusion)
        return 1.0 - missed

    def credible_sets(
        self,
        data: Mapping[str, Any] | None = None,
        *,
        coverage: float = 0.95,
        smallest_purity: float = 0.5,
        names: Iterable[str] | None = None,
    ) -> list[CredibleSet]:
        """Return a credible set for each single effect: the fewest candidates that contain it with a given probability.

        Parameters
        ----------
        data
            Known arrays as for the fit, to compute the correlations between the columns of a set. Without data no set
            is left out, although the set of a superfluous effect contains nearly all candidates.
        coverage
            Probability that a set contains its effect, between 0 and 1.
        smallest_purity
            Sets in which two columns have a smaller absolute correlation are left out.
        names
            Names of the single effects; by default all of them.

        Returns
        -------
        list
            The credible sets; those that repeat an earlier set are left out.

        Raises
        ------
        ModelError
            If there is no single effect, or one has plates.
        ParameterError
            If ``coverage`` is not between 0 and 1, or the data lack the columns.

        Notes
        -----
        Source: Wang, Sarkar, Carbonetto and Stephens (JRSS B 2020), section 3.3.
        """
        coverage = require_share("coverage", coverage)
        found: list[CredibleSet] = []
        for name, factor in self._sparse(names, SingleEffect, "SingleEffect").items():
            if factor.inclusion.ndim != 1:
                raise ModelError(f"credible_sets takes single effects without plates; '{name}' has some")
            columns = None if data is None else self._columns_of(name, data)
            own = credible_set(name, factor.inclusion, coverage, columns)
            if own.purity is None or own.purity >= smallest_purity:
                found.append(own)
        return distinct(found)

    def _sparse(self, names: Iterable[str] | None, kind: type[Any], word: str) -> dict[str, Any]:
        every = {name: self[name] for name in self.keys() if isinstance(self[name], kind)}
        if names is None:
            chosen = list(every)
        else:
            chosen = [names] if isinstance(names, str) else list(names)
        strange = next((name for name in chosen if name not in every), None)
        if strange is not None and every:
            raise ModelError(f"{strange!r} is not a {word}; use {' or '.join(map(repr, every))}")
        if not chosen or not every:
            raise ModelError(f"the posterior has no {word}")
        return {name: every[name] for name in chosen}

    def _columns_of(self, name: str, data: Mapping[str, Any]) -> AnyArray:
        """Return the known rows that a vector multiplies."""
        for node in self.model.nodes:
            for stated in node.stated.values() if isinstance(node, Variable) else ():
                addends = stated.addends if isinstance(stated, Predictor) else ()
                for vectors in (pair for addend in addends for pair in addend.dots):
                    nodes: list[Node] = [own.node if isinstance(own, Indexed) else own for own in vectors]
                    rows = [own for own in nodes if isinstance(own, Data)]
                    if rows and any(own.name == name for own in nodes):
                        return self._given(rows[0].name, name, data)
        raise ModelError(f"'{name}' does not multiply a known array of the data; leave the data out")

    @staticmethod
    def _given(rows: str, name: str, data: Mapping[str, Any]) -> AnyArray:
        try:
            values: Any = data[rows]
        except (KeyError, TypeError):
            raise ParameterError(f"the data lack '{rows}', which '{name}' multiplies") from None
        return np.asarray(values)


_MOST = 100
"""Columns of a set between which correlations are found; of more, as many drawn evenly."""


@dataclass(frozen=True)
class CredibleSet:
    """The fewest entries that contain an effect with a given probability; see :meth:`Posterior.credible_sets`.

    Attributes
    ----------
    effect
        Name of the single effect.
    entries
        Positions of the entries, from 0, the most probable first.
    coverage
        Probability that the effect is one of them.
    purity
        Smallest absolute correlation between two of their columns; None if the columns were not given.
    """

    effect: str
    entries: tuple[int, ...]
    coverage: float
    purity: float | None = None

    def __len__(self) -> int:
        return len(self.entries)


def credible_set(name: str, inclusion: Array, coverage: float, columns: AnyArray | None) -> CredibleSet:
    """Return the credible set of an effect with these probabilities of its entries, (D,).

    Parameters
    ----------
    columns
        Known rows that the effect multiplies, (N, D), or None.
    """
    order = np.argsort(-inclusion, kind="stable")
    total = np.cumsum(inclusion[order])
    size = min(int(np.searchsorted(total, coverage)) + 1, len(order))
    entries = order[:size]
    purity = None if columns is None else _purity(columns, entries)
    return CredibleSet(name, tuple(entries.tolist()), float(total[size - 1]), purity)


def distinct(found: Sequence[CredibleSet]) -> list[CredibleSet]:
    """Return sets with those left out that have the entries of an earlier one."""
    known: dict[frozenset[int], CredibleSet] = {}
    for own in found:
        known.setdefault(frozenset(own.entries), own)
    return list(known.values())


def _purity(columns: AnyArray, entries: AnyArray) -> float:
    """Return the smallest size of a correlation between columns; those that are constant have none."""
    if len(entries) == 1:
        return 1.0
    if len(entries) > _MOST:
        entries = entries[np.linspace(0, len(entries) - 1, _MOST).astype(np.intp)]
    own = np.asarray(columns[:, np.sort(entries)], dtype=np.float64)
    own = own - own.mean(axis=0)
    sizes = np.sqrt(np.square(own).sum(axis=0))
    with np.errstate(divide="ignore", invalid="ignore"):
        correlations = np.abs(own.T @ own / sizes[:, None] / sizes)
    return float(np.nan_to_num(correlations).min())
