"""Means and credible intervals of the entries of a factor, with names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from ..._errors import ParameterError
from ...estimators.saveable import Saveable
from ...families.base.marginals import variable_and_part
from ...language import Data
from ...posterior.figures import Figures
from ...posterior.figures import figures_of as figures_of_parts
from ...posterior.posterior import Posterior


def posterior_of(fitted: Any) -> Posterior:
    """Return the posterior of a fitted estimator, or the posterior itself.

    Raises
    ------
    ParameterError
        If it is neither.
    """
    posterior = getattr(fitted, "posterior_", fitted)
    if isinstance(posterior, Posterior):
        return posterior
    if hasattr(fitted, "fit"):
        kind = type(fitted).__name__
        raise ParameterError(f"this {kind} is not fitted yet: call fit first and plot the result")
    raise ParameterError(
        f"expected a posterior, as Model.fit returns it, or a fitted estimator of caviar; got {type(fitted).__name__}"
    )


def placed(fitted: Any, data: Any) -> Any:
    """Return data of rows, as a posterior or the methods of an estimator take them, as arrays by name."""
    posterior = posterior_of(fitted)
    needed = {node.name for node in posterior.model.nodes if isinstance(node, Data)}
    needed |= {leaf.name for leaf in posterior.model.leaves}
    is_named = isinstance(data, Mapping) and needed <= set(data)
    if fitted is not posterior and not is_named:
        data = fitted._as_data(data)
    return posterior._evaluator.named(data).values


def figures_for(fitted: Any, variable: str, level: float) -> list[Figures]:
    """Return what :func:`figures_of` does; a variable of an estimator may have the name that its summary shows.

    Raises
    ------
    ParameterError
        If there is no such variable.
    """
    posterior = posterior_of(fitted)
    if not isinstance(fitted, Saveable):
        return figures_of(posterior, variable, level)
    name = fitted._stated_name(str(variable))
    if variable_and_part(name, posterior)[0] not in posterior:
        known = list(dict.fromkeys(map(repr, known_names(fitted))))
        raise ParameterError(f"the estimator has no parameters {variable!r:.60}; it has {', '.join(known)}")
    return [replace(own, shown=fitted._shown_name(own.name)) for own in figures_of(posterior, name, level)]


def figures_of_one(
    fitted: Any, variable: str | None, level: float, function: str, or_else: str = ""
) -> Figures:
    """Return the figures of the variable, or part of one, that a function draws; without a name those of the only one.

    Raises
    ------
    ParameterError
        If there are several, or none of this name.
    """
    posterior = posterior_of(fitted)
    if not posterior:
        raise ParameterError(f"{function} draws a global variable, and this fit has none")
    if variable is None and len(posterior) > 1:
        known = ", ".join(map(repr, known_names(fitted)))
        raise ParameterError(
            f"{function} draws one variable; choose one of {known}, as {function}(posterior, 'name'){or_else}"
        )
    name = next(iter(posterior)) if variable is None else str(variable)
    found = figures_for(fitted, name, level)
    if len(found) > 1:
        parts = " or ".join(repr(figures.title) for figures in found)
        raise ParameterError(
            f"{name!r} is a joint factor, whose parts have units of their own; choose {parts}"
        )
    return found[0]


def known_names(fitted: Any) -> list[str]:
    """Return the names of global variables as users of a posterior, or of an estimator, know them."""
    posterior = posterior_of(fitted)
    if not isinstance(fitted, Saveable):
        return posterior.stated_names
    return [
        fitted._shown_name(name + marginal.part)
        for name in posterior.stated_names
        for marginal in posterior.marginals(name, 0.95)
    ]


def as_stated(fitted: Any, given: Mapping[str, Sequence[str]] | None) -> dict[str, Sequence[str]]:
    """Return names by axis with variables of an estimator by the names of its statement."""
    if not isinstance(fitted, Saveable):
        return dict(given or {})
    posterior = posterior_of(fitted)
    stated = {fitted._stated_name(axis): own for axis, own in (given or {}).items()}
    return {variable_and_part(axis, posterior)[0]: own for axis, own in stated.items()}


def figures_of(posterior: Posterior, variable: str, level: float) -> list[Figures]:
    """Return the figures of a global variable; of a joint factor those of mean and precision.

    Parameters
    ----------
    posterior
        Of any model.
    variable
        Name of a global variable, or of one part of a joint factor, as ``"theta.mean"``.
    level
        Of the intervals.

    Raises
    ------
    ParameterError
        If the posterior has no such factor.
    """
    name, part = variable_and_part(str(variable), posterior)
    if name not in posterior:
        known = ", ".join(repr(other) for other in posterior) or "none"
        raise ParameterError(f"the posterior has no global variable {variable!r:.60}; it has {known}")
    source = "" if posterior.is_exact else posterior.uncertainty.replace("_", " ")
    every = figures_of_parts(posterior, name, posterior.marginals(name, level))
    found = [replace(own, source=source) for own in every]
    chosen = [own for own in found if not part or own.name == variable]
    if not chosen:
        raise ParameterError(
            f"'{name}' has no part {variable!r}; it has {', '.join(repr(f.name) for f in found)}"
        )
    return chosen


def names_along(axis: str, size: int, given: Sequence[Any] | None) -> list[str]:
    """Return what the entries along an axis are called: their numbers if no names are given.

    Raises
    ------
    ParameterError
        If there are more names or fewer.
    """
    names = list(map(str, range(size) if given is None else given))
    if len(names) != size:
        raise ParameterError(f"'{axis}' has {size} entries, but names= gives {len(names)} for it")
    return names


def table_of(fitted: Any, variable: str, level: float, *, expected: str) -> Figures:
    """Return the figures of a variable with one plate, whose values are vectors: a table with a line for each entry.

    Raises
    ------
    ParameterError
        If it is something else than was expected.
    """
    figures = figures_of(posterior_of(fitted), variable, level)[0]
    if figures.mean.ndim != 2 or len(figures.plates) != 1:
        raise ParameterError(
            f"{expected}; '{variable}' has plates {figures.plates} and shape {figures.mean.shape}. caviar.plot.forest "
            f"draws any global variable"
        )
    return figures


def _names_of(
    fitted: Any, figures: Figures, names: Mapping[str, Sequence[str]] | None
) -> dict[str, Sequence[str]]:
    """Return the names of the entries: given, of the posterior, or of the columns that a fitted mixture saw."""
    variable, _ = variable_and_part(figures.name, posterior_of(fitted))
    axes = [*figures.plates, *[variable] * figures.n_event]
    of_posterior = {axis: own for axis, own in zip(axes, figures.names, strict=False) if own is not None}
    known = list(map(str, getattr(fitted, "feature_names_in_", ())))
    event = figures.mean.shape[len(figures.plates) :]
    own = {variable: known} if event and event[-1] == len(known) else {}
    return {**own, **of_posterior, **dict(names or {})}


def places_of(
    fitted: Any,
    figures: Figures,
    names: Mapping[str, Sequence[str]] | None,
    only: Mapping[str, Sequence[str]] | None,
) -> list[tuple[str, tuple[int, ...]]]:
    """Return what each entry of a variable is called, and its place; of a symmetric matrix the lower triangle.

    Parameters
    ----------
    fitted
        The posterior or estimator.
    figures
        Of the variable.
    names
        Axis -> what its places are called, instead of the names of the posterior.
    only
        Axis -> those of its places that are listed; None for all.

    Raises
    ------
    ParameterError
        If there is no such axis or place.
    """
    names, only = _names_of(fitted, figures, names), dict(only or {})
    shape = figures.mean.shape
    variable, _ = variable_and_part(figures.name, posterior_of(fitted))
    axes = (*figures.plates, variable)
    for argument, given in (("names", names), ("only", only)):
        unknown = [name for name in given if name not in axes]
        if unknown:
            known = ", ".join(map(repr, axes))
            raise ParameterError(
                f"{argument}= names {unknown[0]!r}, but the axes of '{figures.title}' are {known}"
            )
    keys = [*figures.plates, *[variable] * figures.n_event]
    along = [names_along(key, size, names.get(key)) for key, size in zip(keys, shape, strict=True)]
    for key, wanted in only.items():
        places = along[keys.index(key)] if key in keys else []
        if not set(map(str, wanted)) <= set(places):
            raise ParameterError(
                f"only= lists {list(wanted)} of '{key}', which has {', '.join(places) or 'no places'}"
            )
    kept = {key: set(map(str, wanted)) for key, wanted in only.items()}
    named = replace(
        figures, names=tuple(own if key in names else None for key, own in zip(keys, along, strict=True))
    )
    entries = []
    for index in named.places():
        if any(own[i] not in kept.get(key, own) for key, own, i in zip(keys, along, index, strict=True)):
            continue
        # one axis needs no words, and several have them in the order of a summary
        label = along[0][index[0]] if len(shape) == 1 else named.label(index)
        entries.append((label or figures.title, index))
    return entries
