"""For error messages: what to state instead of a link where a link is not possible."""

from __future__ import annotations

__all__ = [
    "INSTEAD_IN_BETA",
    "INSTEAD_IN_STEPS",
    "INSTEAD_OF_ABSENT",
    "INSTEAD_OF_CHANCES",
    "instead_of_link",
]

INSTEAD_OF_ABSENT = (
    ". For a chance that only some rows have, as animals that are there, let a label choose it: p[z] with z = "
    "Categorical('z', Dirichlet('share', [1, 1]), plates=obs) and p = Beta('p', [1e-6, 1], [1e6, 1], "
    "plates=Plate('there', 2)), whose first chance is about 0"
)
"""In place of a number 0 or 1 times a chance."""

INSTEAD_OF_CHANCES = (
    "a chance that depends on hidden events has a table, p[a, b] with p = Beta('p', 1, 1, plates=(Plate('if a', 2), "
    "Plate('if b', 2))) and a = Categorical('a', Dirichlet('share', [1, 1]), plates=obs), b likewise. What happens "
    "if both do has the known table Constant('p', [[0, 0], [0, 1]], plates=...), and if one does [[0, 1], [1, 1]]"
)
"""In place of sums and products of chances."""

_OF_EXPONENTIALS = {
    "precision": "the exponential of a predictor has no update as a precision. A variance that changes in time has "
    "levels: level[s], with a MarkovChain s and level=Gamma('level', 1, 1, plates=Plate('state', K)); one that differs "
    "from row to row is a scale mixture, u * tau",
    "concentration": "proportions that depend on columns have no update. State the categories themselves with a Normal "
    "effect of each unit: Categorical('y', stick_breaking(dot(X, w) + effect[unit])), or softmax(...)",
}

_LINEAR = "a mean is linear in its variables, so {link!r} has no update there. "

_LOGARITHM = (
    "the exponential of a predictor has no update there. Take the logarithm of positive data, "
    "Normal('log {name}', predictor, Gamma('tau', 1, 1)), or a number for each group, {slot}[Data('group', plates=...)]"
)

INSTEAD_IN_STEPS = (
    "the steps of a MarkovChain take stick_breaking(dot(X, w)) with w on plates=(Plate('present', K), "
    "Plate('question', K - 1)). Or let known inputs choose from a table of steps, table[Data('input', plates=time)] "
    "with table = Dirichlet('table', [1, 1], plates=(Plate('input', 2), Plate('from', 2)))"
)
"""In the place of a link in the transitions of a chain."""

INSTEAD_IN_BETA = (
    "it has no update there. Of shares between 0 and 1 take the log-odds as data, "
    "Normal('log odds', predictor, Gamma('tau', 1, 1))"
)
"""In the place of a link in a Beta."""

_OF_COUNTS = (
    "{link!r} is the probabilities of one label in each row, as in Categorical('y', ...). Counts of K categories are "
    "K - 1 binary counts, each of what the earlier categories have left: Binomial('y', Data('left', "
    "plates=(obs, cut)), logistic(eta), plates=(obs, cut)), with the counts of the first K - 1 categories, "
    "left = total - the counts before, and the predictor eta of stick_breaking(eta). With softmax(eta) give each "
    "category of a count a row of its own, Categorical('y', softmax(eta), plates=obs), and fit with "
    "sample_weight=counts"
)

_OF_TIMES = (
    ". Times until an event, also censored ones, are counts of events, 1 or 0: NegativeBinomial('event', "
    "exp(predictor + Data('log time', plates=obs)), 100)"
)


def instead_of_link(family: str, slot: str, link: object, is_probability: bool) -> str:
    """Return what to state instead of a link in a slot of a family; empty if the link itself says it.

    Parameters
    ----------
    family, slot
        Where the link is, as ``"Normal"`` and ``"mean"``.
    link
        The link.
    is_probability
        Whether it is a probability, and not an exponential.
    """
    if slot == "mean" and family in ("Normal", "MultivariateNormal"):
        data = (
            "For answers 0 and 1 state Bernoulli('y', {link!r}); of shares between 0 and 1 take the log-odds as data"
            if is_probability
            else "Take the logarithm of positive data, Normal('log y', predictor, tau); of counts this is the mean in "
            "NegativeBinomial('y', {link!r}, size)"
        )
        return (_LINEAR + data).format(link=link)
    if is_probability:
        return ""
    if family == "Multinomial" and slot == "probabilities":
        return _OF_COUNTS.format(link=link)
    if family == "Gamma":
        return _LOGARITHM.format(name="y", slot=slot)
    if family == "Exponential":
        return _LOGARITHM.format(name="y", slot=slot) + _OF_TIMES
    return _OF_EXPONENTIALS.get(slot, "")
