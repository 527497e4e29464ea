"""Warnings at the end of a fit."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from .._errors import CaviarWarning, CollapseWarning, ConvergenceWarning, LooseBoundWarning, LostDigitsWarning
from ..engine.ascent.driver import Result, Settings
from ..engine.ascent.lost_digits import nearly_singular
from ..engine.ascent.status import Status
from ..engine.starts.restarts import Ends
from ..language import Dirichlet, Node, Variable
from ..language.nodes.roles import SCALAR
from ..language.products_of_unknowns import multiplied_together

_OF_THE_ELBO = 1e-14
"""Rounding error relative to the ELBO that is its own, and no sign of numbers that cancel."""

_NOTHING = 1e-6
"""Of its standard deviation, below which a location has not left 0."""

_CALLER = 4
"""Frames from :func:`warn_about` to the call of ``fit``."""


def warn_about(
    best: Result, ends: Ends, settings: Settings, is_default_length: bool, init: object, prior: object
) -> None:
    """Warn where starts led nowhere, or where the kept end of a fit has collapsed, has not settled, or has lost digits.

    Parameters
    ----------
    best
        The kept end.
    ends
        Of all starts.
    settings
        That the fit was made with.
    is_default_length
        Whether the number of iterations is the default: who says how many there are to be knows that they may not do.
    init
        Where the fit was told to begin; ``"prior"`` at the priors, or at draws from them.
    prior
        The posterior of an earlier fit in the place of the priors, or None.
    """
    at_priors = prior is None and isinstance(init, str) and init == "prior"
    if ends.failure:
        _warn_of_failures(ends, at_priors=at_priors)
    if best.status is Status.COLLAPSED:
        warnings.warn(
            f"the fit collapsed (in every one of {settings.n_restarts} starts): {best.status.explanation}.",
            CollapseWarning,
            stacklevel=_CALLER,
        )
        # that its numbers have no digits is no news
        return
    if best.status is Status.MAX_ITER and is_default_length:
        warnings.warn(
            f"the fit has not converged after {settings.max_iter} iterations; the last changed the ELBO by "
            f"{best.trace[-1] - best.trace[-2]:.2g} nats. Raise max_iter, or tol (a change per row, now "
            f"{settings.tol:g}); max_iter={settings.max_iter} accepts this end without a warning.",
            ConvergenceWarning,
            stacklevel=_CALLER,
        )
    if at_priors and best.status is Status.CONVERGED:
        _warn_of_unmoved(best)
    _warn_about_digits(best)
    for node in best.problem.bound.nodes:
        if node.is_bound:
            _warn_about_total(node, best)


def _warn_about_digits(best: Result) -> None:
    """Warn where sums are so large, or columns so much alike, that rounding is seen in the ELBO."""
    if best.lost_in and best.lost <= _OF_THE_ELBO * abs(best.elbo):
        warnings.warn(
            f"the ELBO is {best.elbo:.3g} nats. Double precision keeps sixteen digits, so it is known to "
            f"about {best.lost:.1g} nats; fits whose ELBOs differ by less are equally good.",
            LostDigitsWarning,
            stacklevel=_CALLER + 1,
        )
    elif best.lost_in:
        warnings.warn(
            f"'{best.lost_in}' is estimated from numbers so large that their rounding alone is about "
            f"{best.lost:.1g} nats of the ELBO, and what follows from their difference, such as a noise level, may be "
            f"wrong. Centre and scale the data and the known columns that '{best.lost_in}' depends on, and its prior "
            f"with them.",
            LostDigitsWarning,
            stacklevel=_CALLER + 1,
        )
    if collinear := nearly_singular(best.problem, best.q):
        warnings.warn(
            f"columns that '{collinear}' multiplies are collinear in double precision: their sums swamp "
            f"its prior, and the ELBO may be wrong by about a nat. Leave one of them out, or tighten the "
            f"prior.",
            LostDigitsWarning,
            stacklevel=_CALLER + 1,
        )


def _warn_of_failures(ends: Ends, *, at_priors: bool) -> None:
    """Warn where some of several starts led to no factors at all, and say why the first of these did not."""
    remedy = " A draw from a vague prior can be far from any data: give narrower priors, or init='auto'."
    warnings.warn(
        f"{ends.n_ended - len(ends.elbos)} of {ends.n_ended} starts led nowhere; the best of the others is kept. The "
        f"first failed because {ends.failure.rstrip('.')}.{remedy if at_priors else ''}",
        CaviarWarning,
        stacklevel=_CALLER + 1,
    )


def _warn_of_unmoved(best: Result) -> None:
    """Warn where a fit that began at the priors has converged with a product of hidden locations that is 0 everywhere.

    At priors of mean 0 neither of them has a reason to move. A location that a number 0 or 1 leaves out may be at 0.
    """
    bound, found = best.problem.bound, []
    for several in multiplied_together(bound.nodes, set(bound.latent)):
        at_zero = [own.name for own in several if own in best.q and _is_at_zero(best.q[own])]
        if at_zero and not any(own.is_zero_or_one for own in several):
            found.append((at_zero[0], " and ".join(f"'{own.name}'" for own in several)))
    if found:
        (name, both), others = found[0], len(found) - 1
        more = f" (and {others} other product{'s' * (others > 1)})" if others else ""
        warnings.warn(
            f"init='prior' began where the product of {both} is 0, so that neither had a reason to move, and '{name}' "
            f"is still 0: the product explains nothing{more}. init='auto' begins at a guess from the data; a mapping "
            f"gives values to begin with.",
            CaviarWarning,
            stacklevel=_CALLER + 1,
        )


def _is_at_zero(factor: Any) -> bool:
    if factor.learnt is not None and factor.learnt is not factor:
        # repetitions that are known are no start of the fit
        return False
    moments = None if factor.learnt is None else factor.location_moments()
    if moments is None:
        return not np.any(factor.mean)
    mean, covariance = moments
    variance = covariance if covariance.ndim == mean.ndim else np.diagonal(covariance, axis1=-2, axis2=-1)
    return bool(np.all(np.abs(mean) <= _NOTHING * np.sqrt(variance)))


def _warn_about_total(node: Node, best: Result) -> None:
    """Warn where the concentration of a Dirichlet is a hidden number times hidden weights."""
    slots = node.slots.values() if isinstance(node, Dirichlet) else ()
    hidden = {slot.node: slot for slot in slots if isinstance(slot.node, Variable)}
    weights = next((own.name for own in hidden if own.is_stick), "")
    total = next((own.name for own, slot in hidden.items() if slot.role is SCALAR and own in best.q), None)
    if weights and total is not None:
        warnings.warn(
            f"'{total}' times the weights '{weights}' in '{node.name}' is bounded, which puts '{total}' and the ELBO "
            f"far too low unless '{total}' is about 1 or less. Fit the model for known values of '{total}', for "
            f"which nothing is bounded, and compare their ELBOs: see 'Topics and states around common weights' in the "
            f"documentation.",
            LooseBoundWarning,
            stacklevel=_CALLER + 1,
        )
