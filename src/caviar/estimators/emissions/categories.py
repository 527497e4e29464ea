"""States that emit categories."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Any, ClassVar

import numpy as np

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray, Array
from ...data.columns.labels import is_absent
from ...data.rows import on_host
from ...files.naming import listed
from ...language import Categorical, Dirichlet, Plate, Variable
from ...posterior.posterior import Posterior
from ...posterior.prediction.prediction import Prediction
from ..arguments.checks import as_broadcast
from ..arguments.fitted import keep
from ..mixtures.components import estimates_of
from ..priors.structure import Label
from ..tables.given_tables import require_table, validated
from ._emission import Emission, Emitted, Observe


class Categories(Emission):
    """One of M categories for each state, with probabilities that are a Dirichlet."""

    name = "categorical"
    arguments: ClassVar = ("categories", "category_prior")

    def check(self, settings: Any) -> None:
        """Refuse categories that are not distinct."""
        given = settings.categories
        if given is None:
            return
        values = list(given) if not isinstance(given, str) and hasattr(given, "__iter__") else []
        if len(values) < 1 or len(set(map(_plain, values))) < len(values):
            raise ParameterError(f"categories must be a list of distinct values; got {given!r:.200}")

    def rows(self, estimator: Any, X: Any, *, reset: bool) -> Array:
        """Return places among the categories, (N, 1), NaN where missing."""
        X = on_host(X)
        require_table(X)
        X = validated(estimator, X, reset=reset, dtype=None, ensure_all_finite="allow-nan")
        if X.shape[1] != 1:
            raise DataError(
                f"emission='categorical' takes one column, a category for each row; X has {X.shape[1]}. Combine "
                f"several columns into one, as 'rain, warm'"
            )
        values = [None if is_absent(value) else _plain(value) for value in X[:, 0].tolist()]
        if reset:
            keep(estimator, categories_=_categories(values, estimator.categories))
        known = {value: place for place, value in enumerate(estimator.categories_)}
        for row, value in enumerate(values):
            if value is not None and value not in known:
                raise DataError(_unknown(value, row, list(known)))
        return np.array([np.nan if value is None else known[value] for value in values], dtype=float)[:, None]

    def stated(self, settings: Any, rows: Array, weights: Array | None) -> Callable[[int], Observe]:
        """Return what states categories."""
        size = len(settings.categories_)

        def observe_of(n_states: int) -> Observe:
            given = settings.category_prior
            shape = (n_states, size) if np.ndim(given) == 2 else (size,)
            concentration = as_broadcast("category_prior", given, shape, "one for each category", above=0)
            concentration = np.broadcast_to(concentration, (n_states, size))

            def observe(states: Label, state: Plate) -> Variable:
                emission = Dirichlet("emission", concentration, plates=state)
                return Categorical("x", emission[states], plates=states.plates)

            return observe

        return observe_of

    def values(self, rows: Array) -> AnyArray:
        """Return the one column."""
        return rows[:, 0]

    def emitted(self, settings: Any, posterior: Posterior) -> Emitted:
        """Return the expected probabilities of the categories in each state."""
        return _Categorised(posterior, settings.categories_)


@dataclass(frozen=True, eq=False)
class _Categorised(Emitted):
    posterior: Posterior
    categories: tuple[Any, ...]

    def attributes(self) -> Mapping[str, Any]:
        """Return expected probabilities."""
        return {"emission_probabilities_": self.posterior["emission"].mean}

    def log_densities(self, rows: Array) -> Array:
        """Return log probabilities; 0 where nothing was observed."""
        with np.errstate(divide="ignore"):
            logs = np.log(self.posterior["emission"].mean).T
        missing = np.isnan(rows)
        return np.where(missing, 0.0, logs[np.nan_to_num(rows[:, 0]).astype(np.intp)])

    def draw(self, states: AnyArray, generator: np.random.Generator) -> AnyArray:
        """Return categories."""
        bounds = np.cumsum(self.posterior["emission"].mean, axis=1)[states][:, :-1]
        places = (generator.random(len(states))[:, None] > bounds).sum(axis=1)
        return np.array(self.categories)[places][:, None]

    def prediction(self, shares: Array) -> Prediction:
        """Return the probability of each category."""
        names = tuple(map(str, self.categories))
        return Prediction.of_probabilities(shares @ self.posterior["emission"].mean, names=names)

    def figures(self, level: float) -> Sequence[tuple[tuple[Any, ...], tuple[Any, ...], tuple[Any, ...]]]:
        """Return the probability of each category with its interval."""
        (part,) = self.posterior.marginals("emission", level)
        names = list(map(str, self.categories))
        each = estimates_of(part.mean, part.lower, part.upper)
        return [((None,), (None,), (dict(zip(names, own, strict=True)),)) for own in each]


def _plain(value: Any) -> Any:
    """Return a category as a plain value: of numbers that are whole a whole one."""
    value = value.item() if isinstance(value, np.generic) else value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _categories(values: Sequence[Any], given: Any) -> tuple[Any, ...]:
    """Return the categories in their order."""
    if given is not None:
        return tuple(_plain(value) for value in given)
    found = {value for value in values if value is not None}
    if not found:
        raise DataError("X has no value: every row is missing")
    kinds = {isinstance(value, str) for value in found}
    if len(kinds) > 1:
        raise DataError(
            f"X mixes texts and numbers: {listed([str(value) for value in sorted(found, key=str)])}; turn the "
            f"numbers into texts"
        )
    return tuple(sorted(found))


def _unknown(value: Any, row: int, known: Sequence[Any]) -> str:
    near = get_close_matches(str(value), list(map(str, known)), 1)
    hint = f" Did you mean {near[0]!r}?" if near else ""
    return (
        f"X has the category {value!r} in row {row}, which is none of those of the fit: "
        f"{listed(list(map(str, known)))}.{hint} categories= lists values that the rows of the fit do not have"
    )
