"""For error messages: what to state instead of a link where a link is not possible."""

from __future__ import annotations

__all__ = ["instead_of_link"]

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
    if family == "Gamma":
        return _LOGARITHM.format(name="y", slot=slot)
    return _OF_EXPONENTIALS.get(slot, "")
