"""The verification of a stated model: whether what a fit reports is true of it."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from caviar._errors import CaviarError, FallingElboWarning, ParameterError
from caviar.families import ExponentialFamily
from caviar.numerics.arguments import require_whole
from caviar.testing._elbo_estimate import elbo_estimate
from caviar.testing._recovery import coverage
from caviar.testing._report import Check, VerificationReport
from caviar.testing._stationarity import elbo_slopes, learnt, scales_of, with_learnt

if TYPE_CHECKING:
    from caviar.fitting.model import Model
    from caviar.posterior.posterior import Posterior


_LARGEST_FALL = 1e-9
_LARGEST_SLOPE = 1e-4
_LARGEST_RISE = 0.01
_STANDARD_ERRORS = 4.0
_SMALLEST_COVERAGE = 0.5
_LEVEL = 0.9


def check_model(
    model: Model,
    data: Mapping[str, Any],
    *,
    seed: int = 0,
    n_draws: int = 500,
    n_directions: int = 40,
    replications: int = 0,
    **arguments: Any,
) -> VerificationReport:
    """Fit a model to data and return the results of checks that every correct model and engine pass.

    ``ascent``
        The ELBO increases from iteration to iteration.
    ``stationarity``
        Its derivatives with respect to the natural parameters of every global factor vanish at the end.
    ``saddle``
        Fits that begin near the end do not end higher, so it is a maximum and not a saddle point.
    ``elbo``
        The ELBO agrees with a Monte-Carlo estimate from the densities within four standard errors. For a model with a
        bound on a density, as with a softmax, it is not above the estimate.
    ``recovery``
        On data simulated from the prior, the 90% intervals of every global contain at least half of the true values, up
        to two standard errors (with ``replications=``, if all priors are proper). It detects gross errors, not the
        somewhat too narrow intervals of mean field.

    Parameters
    ----------
    model
        Any model.
    data
        Data as for the fit; a hundred rows are enough.
    seed
        Seed of the fit and of all draws.
    n_draws
        Number of draws of the Monte-Carlo estimate.
    n_directions
        Largest number of directions for each factor in which derivatives are taken.
    replications
        Number of simulated data sets for the check of recovery, each of the size of the data; 0 makes no such check.
    **arguments
        Further arguments of :meth:`caviar.Model.fit`; ``tol`` is 1e-14 and ``max_iter`` 5000 unless given.

    Examples
    --------
    >>> import caviar as cv
    >>> x = cv.Normal("x", cv.Normal("mean", 0, 1), cv.Gamma("tau", 2, 2), plates=cv.Plate("obs"))
    >>> check_model(cv.Model(x), {"x": [0.3, -0.8, 1.9, 0.4]}).passed
    True
    """
    _check_arguments(model, data, n_draws, n_directions, replications)
    incomplete = [name for name, value in data.items() if _has_missing(value) and not _is_parent(model, name)]
    if incomplete:
        raise ParameterError(
            f"check_model takes no missing entries, and '{incomplete[0]}' has some: the densities it evaluates are "
            f"those of whole rows. Check the model on complete rows, or on model.simulate(seed)"
        )
    if "sample_weight" in arguments:
        raise ParameterError(
            "check_model takes no sample_weight: the densities it evaluates count every row once"
        )
    arguments = {"tol": 1e-14, "max_iter": 5000, **arguments}
    with warnings.catch_warnings():
        # a fall is what the first check reports
        warnings.simplefilter("ignore", FallingElboWarning)
        posterior = model.fit(data, **{"seed": seed, **arguments})
        placed = posterior._evaluator.named(data).values
        checks = [
            _ascent(posterior),
            _stationarity(posterior, placed, n_directions, seed),
            _saddle(posterior, data, seed, arguments),
            _elbo(posterior, placed, n_draws, seed),
        ]
        if replications:
            checks.append(_recovery(model, data, replications, seed, arguments))
    return VerificationReport(tuple(checks))


def _check_arguments(
    model: Any, data: Any, n_draws: object, n_directions: object, replications: object
) -> None:
    """Check the model, the data and the number of draws."""
    if not hasattr(model, "fit") or not hasattr(model, "log_joint"):
        raise ParameterError(f"check_model takes a caviar.Model; got {model!r}")
    if not isinstance(data, Mapping):
        raise ParameterError(
            f"data must be a mapping from names to arrays, as for the fit; got {type(data).__name__}"
        )
    counts = {"n_draws": (n_draws, 2), "n_directions": (n_directions, 1), "replications": (replications, 0)}
    for name, (value, fewest) in counts.items():
        require_whole(name, value, fewest)


def _ascent(posterior: Posterior) -> Check:
    fall = float(max(0.0, -np.diff(posterior.elbo_trace).min(initial=0.0)))
    threshold = _LARGEST_FALL * max(1.0, abs(posterior.elbo))
    fell = posterior.status.value == "fell"
    found = f"the largest fall of the ELBO in {posterior.n_iter} iterations, in nats; the fit ended: "
    return Check(
        "ascent", fall, threshold, not fell and fall <= threshold, found + str(posterior.status.value)
    )


def _stationarity(posterior: Posterior, data: Mapping[str, Any], n_directions: int, seed: int) -> Check:
    slopes = elbo_slopes(posterior, data, n_directions=n_directions, seed=seed)
    if not slopes:
        return Check(
            "stationarity", 0.0, _LARGEST_SLOPE, True, "nothing to move: no global has a distribution"
        )
    worst = max(slopes, key=lambda name: (np.isnan(slopes[name]), slopes[name]))
    found = f"the steepest slope of the ELBO in a natural parameter, that of '{worst}', in its standard deviations"
    return Check("stationarity", slopes[worst], _LARGEST_SLOPE, slopes[worst] <= _LARGEST_SLOPE, found)


def _saddle(posterior: Posterior, data: Mapping[str, Any], seed: int, arguments: Mapping[str, Any]) -> Check:
    rise = rise_when_moved(posterior, data, **{**arguments, "seed": seed})
    threshold = _LARGEST_RISE + _LARGEST_FALL * abs(posterior.elbo)
    found = "the rise of the ELBO, in nats, from factors that are moved a little"
    if rise > threshold:
        found += "; the fit ended at a saddle point: begin elsewhere, by init= or another seed, or with n_restarts="
    return Check("saddle", max(rise, 0.0), threshold, rise <= threshold, found)


def _elbo(posterior: Posterior, data: Mapping[str, Any], n_draws: int, seed: int) -> Check:
    estimate = elbo_estimate(posterior, data, n_draws=n_draws, seed=seed)
    off = posterior.elbo - estimate.value
    if not any(variable.is_bound for variable in posterior.model.variables.values()):
        off = abs(off)
    threshold = _STANDARD_ERRORS * estimate.error + 1e-8 * max(1.0, abs(posterior.elbo))
    difference = f"|{posterior.elbo:.4f} reported - {estimate.value:.4f} estimated|"
    found = f"{difference}, in nats, standard error {estimate.error:.2g}"
    return Check("elbo", off, threshold, off <= threshold, found)


def _recovery(
    model: Model, data: Mapping[str, Any], replications: int, seed: int, arguments: Mapping[str, Any]
) -> Check:
    sizes = {
        plate.name: size
        for leaf in model.leaves
        for plate, size in zip(leaf.plates, np.shape(data[leaf.name]), strict=False)
    }
    known = {name: value for name, value in data.items() if name not in model.variables}
    shares = coverage(
        model, sizes=sizes, data=known, replications=replications, level=_LEVEL, seed=seed, **arguments
    )
    if not shares:
        return Check("recovery", 1.0, _SMALLEST_COVERAGE, True, "no intervals: no global has a distribution")
    worst = min(shares, key=lambda name: shares[name])
    threshold = max(_SMALLEST_COVERAGE - 2 * np.sqrt(0.25 / replications), 0.05)
    found = f"the share of true values inside their {_LEVEL:.0%} intervals, the smallest: that of '{worst}'"
    return Check("recovery", shares[worst], threshold, shares[worst] >= threshold, found)


def _is_parent(model: Model, name: str) -> bool:
    """Whether a name is that of a variable of which some repetitions are known, and the others learnt."""
    variable = model.variables.get(name)
    return variable is not None and variable not in model.leaves and not hasattr(variable, "categories")


def _has_missing(value: Any) -> bool:
    if isinstance(value, tuple):
        return any(_has_missing(part) for part in value)
    if np.ma.is_masked(value):
        return True
    array = np.asarray(value)
    return array.dtype.kind == "f" and bool(np.isnan(array).any())


_SIZES = (0.3, 0.1, 0.01)
"""Sizes of the moves, in standard deviations of the factors; smaller ones where the domain of a family ends."""


def rise_when_moved(
    posterior: Any, data: Mapping[str, Any], *, seed: int = 0, n_moves: int = 2, **arguments: Any
) -> float:
    """Return by how much fits that begin near a fit end higher, in nats: about 0 at a maximum, more at a saddle point.

    Every global factor that is a distribution is moved by about a third of its standard deviation, in a random
    direction. Point masses, and repetitions that are known, begin as they are.

    Parameters
    ----------
    posterior
        What was fitted.
    data
        As for the fit.
    seed
        Of the moves.
    n_moves
        How many are tried.
    **arguments
        Of the fit.
    """
    rng = np.random.default_rng(seed)
    kept = {name: value for name, value in arguments.items() if not name.startswith("checkpoint")}
    ends = [
        posterior.model.fit(data, **{**kept, "init": init, "n_restarts": 1, "seed": seed}).elbo
        for init in (dict(_moved(posterior, rng)) for _ in range(n_moves))
    ]
    return float(max(ends) - posterior.elbo)


def _moved(posterior: Any, rng: np.random.Generator) -> Iterator[tuple[str, Any]]:
    """Yield the name of each global and its factor moved a little."""
    for name in posterior:
        factor = learnt(posterior[name])
        is_distribution = isinstance(factor, ExponentialFamily)
        yield name, with_learnt(posterior[name], _near(factor, rng)) if is_distribution else posterior[name]


def _near(factor: ExponentialFamily, rng: np.random.Generator) -> ExponentialFamily:
    """Return a distribution of the same family at natural parameters near those of another."""
    directions = [scale * rng.standard_normal(scale.shape) for scale in scales_of(factor, rng)]
    shapes = factor.statistic_shapes(factor.event_shape)
    directions = [
        (d + np.swapaxes(d, -1, -2)) / 2 if len(shape) == 2 and shape[0] == shape[1] else d
        for d, shape in zip(directions, shapes, strict=True)
    ]
    length = np.sqrt(sum(d.size for d in directions) / max(np.prod(factor.batch_shape, dtype=int), 1))
    for size in _SIZES:
        pairs = zip(factor.natural, directions, strict=True)
        try:
            return type(factor).from_natural(tuple(eta + size / length * d for eta, d in pairs))
        except CaviarError:
            continue
    return factor
