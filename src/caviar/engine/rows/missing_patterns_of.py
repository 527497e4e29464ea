"""Which observed vectors are missing in part, and the local factor that their entries belong to."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NoReturn

import numpy as np

from ..._errors import DataError
from ...language import Indexed, Label, Variable
from ..binding.bound_model import BoundModel
from ..binding.missing.entries import Gaps
from ..compiled.terms import Compiled
from ..local.local_factor import LocalFactor
from .terms.centred import Centres
from .terms.missing_patterns import MissingPatterns


def missing_patterns_of(
    compiled: Compiled, bound: BoundModel, centres: Mapping[LocalFactor, Sequence[Centres]]
) -> dict[LocalFactor, list[MissingPatterns]]:
    """Return the leaves of vectors missing in part, by the local factor whose features they are.

    Raises
    ------
    DataError
        If the density of such a leaf has other hidden values of the row than one Categorical.
    """
    found: dict[LocalFactor, list[MissingPatterns]] = {}
    for leaf, gaps in bound.gathered("entries").items():
        stats = {
            (part.factor, part.stat)
            for part in compiled.parts.values()
            if part.feature is not None
            and part.feature.source is not None
            and part.feature.source.node is leaf
        }
        unfused = any(
            feature.source is not None and feature.source.node is leaf
            for term in compiled.local_terms
            for feature in (*term.features, *term.look_ups)
        )
        factor, stat = next(iter(stats), (None, None))
        if len(stats) != 1 or unfused or factor is None or stat is None or stat not in factor.one_hots:
            _refuse(leaf, gaps)
        table = compiled.tables[factor]
        own = MissingPatterns(leaf, gaps, factor, factor.rows[stat], table, centres.get(factor, ()))
        found.setdefault(factor, []).append(own)
    return found


def _refuse(leaf: Variable, gaps: Gaps) -> NoReturn:
    row = int(np.argmax(gaps.seen.any(axis=1) & ~gaps.seen.all(axis=1)))
    raise DataError(
        f"{leaf.in_words}, has a missing value (NaN) in row {row}, where the rest of the vector "
        f"is observed. caviar can integrate missing entries out only if its mean and precision depend on global "
        f"variables and at most one Categorical of the row; here they depend on another variable of the "
        f"row. "
        f"{_as_chain(leaf)}tate the columns as numbers, Normal(..., plates=(obs, column)), or drop or impute such rows"
    )


def _as_chain(leaf: Variable) -> str:
    """Return how labels of groups are stated so that missing entries are integrated out."""
    chosen = [own for slot in leaf.slots.values() if isinstance(own := slot.expression, Indexed)]
    groups = {own.by for own in chosen if own.through is not None and isinstance(own.by, Label)}
    if len(groups) != 1:
        return "S"
    (label,) = groups
    (rows, *_) = leaf.plates
    return (
        f"A label '{label.name}' of groups is also a chain that keeps its state: with the rows of a group next to each "
        f"other, MarkovChain('{label.name}', probabilities, np.eye({label.categories}), along={rows.name}, "
        f"starts=Data('starts', plates={rows.name})), 1 at the first row of each group. Or s"
    )
