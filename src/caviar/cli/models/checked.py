"""Rows that ``caviar check`` takes of a table, and the model that is stated for them again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

import caviar as cv
from caviar._typing import AnyArray
from caviar.files.naming import listed

from ..speaking.outputs import counted

_MOST_WORDS = 2_000
"""Words of documents that are checked: a draw takes the probability of every word of the vocabulary for each."""


@dataclass(frozen=True, eq=False)
class Checked:
    """Some rows, and how the verification takes them.

    Attributes
    ----------
    n_rows
        How many.
    told
        Which they are, in words.
    stated
        Returns the model, stated for these rows, its data, and further arguments of :func:`caviar.testing.check_model`.
    """

    n_rows: int
    told: str
    stated: Callable[[], tuple[Any, Mapping[str, Any], dict[str, Any]]]


def complete_of(entries: Sequence[AnyArray]) -> AnyArray:
    """Return the rows without a missing entry.

    Parameters
    ----------
    entries
        Whether entries are missing: of each column, or of several, rows first.

    Raises
    ------
    DataError
        If there is no such row.
    """
    missing = np.any([own.reshape(len(own), -1).any(axis=1) for own in entries], axis=0)
    complete = np.flatnonzero(~missing)
    if not len(complete):
        raise cv.DataError("every row has a missing entry, and the check takes whole rows")
    return complete


def some_of(places: AnyArray, n_rows: int, seed: int) -> AnyArray:
    """Return some of the places at random, in their order."""
    generator = np.random.default_rng(seed)
    return places[np.sort(generator.choice(len(places), min(n_rows, len(places)), replace=False))]


def told_of(n_chosen: int, n_rows: int, n_complete: int) -> str:
    """Return which rows are checked, in words."""
    left = n_rows - n_complete
    verb = "is" if left == 1 else "are"
    less = f"; {counted(left, 'row')} with missing entries {verb} left out" if left else ""
    return f"checking on {n_chosen:,} of {counted(n_rows, 'row')}{less}"


def stretches_of(complete: AnyArray, lengths: AnyArray, n_rows: int, seed: int) -> list[AnyArray]:
    """Return parts of sequences without a missing row, chosen at random, of so many rows together.

    Parameters
    ----------
    complete
        Rows without a missing entry, in their order.
    lengths
        Rows of each sequence.
    n_rows
        How many rows are wanted; the last part ends where there are as many.
    seed
        Of the choice.
    """
    sequence = np.repeat(np.arange(len(lengths)), lengths)[complete]
    begins = np.flatnonzero((np.diff(complete) != 1) | (np.diff(sequence) != 0)) + 1
    parts = np.split(complete, begins)
    chosen: list[AnyArray] = []
    for place in np.random.default_rng(seed).permutation(len(parts)).tolist():
        left = n_rows - sum(map(len, chosen))
        if left > 0:
            chosen.append(parts[place][:left])
    return sorted(chosen, key=lambda part: part[0])


def words_of_documents(counts: Any, n_documents: int, seed: int) -> tuple[AnyArray, AnyArray]:
    """Return document and word of each token of documents chosen at random, whose tokens are at most 2,000 together.

    Parameters
    ----------
    counts
        Of words, documents x words, sparse.
    n_documents
        How many are wanted.
    seed
        Of the choice.

    Raises
    ------
    DataError
        If counts are no whole numbers, or there is no word.
    """
    if np.any(counts.data != np.rint(counts.data)):
        raise cv.DataError(
            "the check takes the words of documents one by one, so counts must be whole numbers"
        )
    generator, rows = np.random.default_rng(seed), counts.tocsr()
    lengths = np.asarray(rows.sum(axis=1)).ravel()
    order = generator.permutation(np.flatnonzero(lengths))[:n_documents]
    if not len(order):
        raise cv.DataError("there is no word in the documents: all counts are 0")
    before = np.cumsum(lengths[order]) - lengths[order]
    chosen = rows[np.sort(order[before < _MOST_WORDS])].tocoo()
    times = chosen.data.astype(np.int64)
    document, word = np.repeat(chosen.row, times), np.repeat(chosen.col, times)
    kept = generator.choice(len(word), min(_MOST_WORDS, len(word)), replace=False)
    kept = kept[np.argsort(document[kept], kind="stable")]
    # documents without a word that was chosen are left out
    return np.unique(document[kept], return_inverse=True)[1], word[kept]


def again(estimator: Any, seed: int, **changes: Any) -> Any:
    """Return an estimator with the same arguments that makes one fit, by this seed."""
    arguments = {**estimator.get_params(deep=False), "n_init": 1, "random_state": seed, "verbose": False}
    return type(estimator)(**{**arguments, **changes})


def as_fitted(posterior: cv.Posterior) -> dict[str, Any]:
    """Return the arguments of a fit by which globals are points, or share factors, as in a posterior."""
    factors = posterior._evaluator.factors
    found: dict[str, Any] = {"point": posterior._evaluator.point}
    return found if factors is None else {**found, "factors": factors}


def rows_of_arrays(
    posterior: cv.Posterior, arrays: Mapping[str, Any], n_rows: int, seed: int
) -> tuple[dict[str, Any], str, int]:
    """Return the arrays of some rows of a stated model, what they are in words, and how many.

    Rows are chosen at random where they are independent given the globals. Of a chain a part without missing entries is
    taken, and where repetitions belong together, such as those of nested plates, all of them.

    Raises
    ------
    DataError
        If entries are missing in rows that belong together.
    """
    nodes = {node.name: node for node in posterior.model.nodes if node.name in arrays}
    axes = {name: _rows_axis(posterior, node) for name, node in nodes.items()}
    values = {name: np.asarray(arrays[name]) for name in nodes}
    missing = {name: own.dtype.kind == "f" and np.isnan(own) for name, own in values.items()}
    axes = {name: axis for name, axis in axes.items() if axis is not None}
    fixed = [name for name, own in missing.items() if name not in axes and np.any(own)]
    if not axes or fixed:
        if any(np.any(own) for own in missing.values()):
            names = [name for name, own in missing.items() if np.any(own)]
            raise cv.DataError(
                f"{listed(names)} has missing entries, and the check takes whole rows; those of this model belong "
                f"together, so none can be left out. Fill them in, or check the model on data that it simulates, in "
                f"Python: caviar.testing.check_model(model, model.simulate(seed))"
            )
        total = max((len(own) for own in values.values() if own.ndim), default=0)
        return dict(arrays), f"checking on all {total:,} rows, which belong together", total
    marks = [
        np.moveaxis(np.broadcast_to(missing[name], values[name].shape), axis, 0)
        for name, axis in axes.items()
    ]
    complete, total = complete_of(marks), len(marks[0])
    if any(variable.summed for variable in posterior.model.variables.values()):
        # rows follow each other, so that those between two others cannot be left out
        chosen = max(stretches_of(complete, np.array([total]), total, seed), key=len)[:n_rows]
    else:
        chosen = some_of(complete, n_rows, seed)
    found = {
        name: np.take(own, chosen, axis=axes[name]) if name in axes else arrays[name]
        for name, own in values.items()
    }
    return found, told_of(len(chosen), total, len(complete)), len(chosen)


def _rows_axis(posterior: cv.Posterior, node: Any) -> int | None:
    """Return the axis of the rows in an array, if some of them can be taken: their plate has no size of its own."""
    plate = posterior.data_plate
    inner = [own for variable in posterior.model.nodes for own in variable.plates if own.within is not None]
    if plate is None or plate.size is not None or inner or plate not in node.plates:
        return None
    return node.plates.index(plate)
