"""Figures of every entry of every global variable, as the tables and plots of a page show them."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from ....families.base.marginals import variable_and_part
from ....language import MarkovChain
from ....language.nodes.algebra import Diagonal
from ....posterior import figures
from ....posterior.figures import Figures

LEVEL = 0.95


def figures_of(subject: Any) -> list[Figures]:
    """Return the figures of all global variables, in the order of the posterior."""
    posterior, found = subject.posterior, []
    for name in posterior.stated_names:
        for own in figures.figures_of(posterior, name, posterior.marginals(name, LEVEL)):
            shown = replace(own, shown=subject.shown_name(own.name))
            if is_over_words(subject, own):
                shown = replace(shown, names=(*own.names[:-1], subject.vocabulary))
            found.append(shown)
    return found


def is_over_words(subject: Any, own: Figures) -> bool:
    """Whether these are distributions over the words of documents."""
    return own.name == "topics" and bool(subject.vocabulary)


def are_probabilities(subject: Any, own: Figures) -> bool:
    """Whether the entries of a value are probabilities of categories."""
    return _variable_of(subject, own).sums_to_one


def figures_at(own: Figures, index: tuple[int, ...]) -> tuple[float | None, ...]:
    """Return mean, standard deviation and ends of an entry, None for what the factor does not give."""
    mean, sd, low, high = (number if np.isfinite(number) else None for number in own.numbers(index))
    # what is known has a value alone
    return (mean, None, None, None) if sd == 0 else (mean, sd, low, high)


def event_name(subject: Any, own: Figures) -> str:
    """Return what an entry of one value is called: by the plate on the diagonal of its precision, if there is one."""
    if is_over_words(subject, own):
        return "word"
    variable = _variable_of(subject, own)
    diagonals = [stated.plate for stated in variable.stated.values() if isinstance(stated, Diagonal)]
    if diagonals and diagonals[0] is not None:
        return diagonals[0].name
    if not variable.sums_to_one:
        return "entry"
    chains = (own for own in subject.posterior.model.variables.values() if isinstance(own, MarkovChain))
    is_transition = any(chain.slots["transition"].node is variable for chain in chains)
    return f"next {variable.plates[0].name}" if is_transition and variable.plates else "category"


def _variable_of(subject: Any, own: Figures) -> Any:
    name, _ = variable_and_part(own.name, subject.posterior)
    return subject.posterior.model.variables[name]
