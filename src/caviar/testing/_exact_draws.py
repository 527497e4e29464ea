"""Draws of the exact posterior, from the densities of a model alone."""

from __future__ import annotations

import warnings
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from caviar._errors import CaviarWarning, ModelError, ParameterError
from caviar._typing import AnyArray, Array
from caviar.families.base.transforms import Transform
from caviar.numerics.arguments import require_whole
from caviar.posterior.evidence.relabelling import Relabelling
from caviar.posterior.evidence.summed_labels import LabelSet, LogMarginal, label_sets, n_values_of
from caviar.testing._differential_evolution import chains, chains_for, split_r_hat
from caviar.testing._elbo_estimate import draws_of, row_axes, rows_to

if TYPE_CHECKING:
    from caviar.posterior.posterior import Posterior

_MIXED = 1.3
"""R-hat up to which chains count as mixed. There are a hundred or more, so each needs only a few effective draws: at
1.3 they have some hundreds together, where a handful of chains would need 1.01."""

_FEWEST_STEPS = 200


class ExactDraws(dict[str, Any]):
    """Draws of the exact posterior by the names of variables, (n, plates..., event...); those of joint ones are pairs.

    Attributes
    ----------
    n_chains
        Of each number the draws of the first chain come first, then those of the next.
    r_hat
        The largest split R-hat of all numbers: 1 where the chains have mixed.
    """

    def __init__(self, values: Mapping[str, Any], n_chains: int, r_hat: float) -> None:
        super().__init__(values)
        self.n_chains, self.r_hat = n_chains, r_hat


def exact_draws(
    posterior: Posterior,
    data: Mapping[str, Any],
    *,
    n_steps: int = 3_000,
    seed: int | np.random.Generator = 0,
) -> ExactDraws:
    """Return draws of the exact posterior of all hidden numbers, by Markov chains that begin at draws of a fit.

    They need nothing but the densities of the model: neither its updates nor its expectations. So they tell what a
    mean, a standard deviation or an interval of a fit is worth. Of a link, as a logit, the density of the answers is
    the exact one, without any bound. Hidden labels are summed out, row by row. Each step evaluates all densities twice,
    some milliseconds; for more than about 50 numbers, or many rows, that is long.

    Parameters
    ----------
    posterior
        Of a fit without sample weights, by which chains begin where the posterior is.
    data
        Those of the fit, which is not checked: other data have another posterior.
    n_steps
        Of each chain. Its first third is left out.
    seed
        Of the chains.

    Raises
    ------
    ModelError
        If a count or a chain of states is hidden, hidden labels of several rows depend on each other, a variable is a
        point mass, the prior of the fit was an earlier posterior, or its rows had weights.

    Warns
    -----
    CaviarWarning
        If the chains have not mixed: their split R-hat is above 1.3. Ask for more steps.

    Notes
    -----
    Where the posterior has several modes of which one is the mirror image of another, as signs of loadings, chains may
    visit all of them, and a fit is at one.

    The posterior of a mixture is the same in any order of components that the model does not distinguish, and the fit
    is near one order. In each draw these components are put in the order nearest to the fit: that of the least sum of
    squared distances between their numbers, except weights, and the means of the factors, in standard deviations of the
    factors, of numbers without constraints, as logarithms of precisions. So draws of a component are of the one near
    that of the fit. Where components of the fit are the same, each is any of them. Numbers beside the components, as a
    common precision, are left as they are, and so are components that their priors, or known labels, tell apart.

    Examples
    --------
    >>> import caviar as cv
    >>> p = cv.Beta("p", 1, 1)
    >>> data = {"x": [1, 1, 0]}
    >>> posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit(data)
    >>> draws = cv.testing.exact_draws(posterior, data, n_steps=600)
    >>> round(float(draws["p"].mean()), 1)
    0.6
    """
    require_whole("n_steps", n_steps, _FEWEST_STEPS)
    _refuse_what_densities_do_not_tell(posterior)
    rng = np.random.default_rng(seed)
    local = posterior.local(data, anew=False)
    probe, _ = draws_of(posterior, local, rng, 2, {})
    at = row_axes(posterior, local)
    probe = _turned(probe, at)
    labels = [(own, np.shape(probe[own.name])[1:]) for own in _summed_labels(posterior, probe)]
    summed = [own.name for each, _ in labels for own in each.labels]
    hidden = _hidden_numbers(posterior, [name for name in probe if name not in summed])
    size = _Coordinates.of(posterior, hidden, probe).size
    n_chains = chains_for(size)
    begun, _ = draws_of(posterior, local, rng, n_chains, {})
    begun = _turned(begun, at)
    coordinates = _Coordinates.of(posterior, hidden, begun)
    half, known = n_chains // 2, posterior._evaluator.named(data).values
    brought = [name for name, variable in posterior.model.variables.items() if variable.is_brought]
    known = {name: value for name, value in known.items() if name not in begun or name in summed}
    seen = _seen(posterior, {name: value for name, value in known.items() if name not in summed})
    density = LogMarginal(posterior.model.nodes, known, half, labels, seen, brought)

    def log_density(vectors: Array) -> Array:
        with np.errstate(all="ignore"):
            found = density(coordinates.values(vectors)) + coordinates.log_volume(vectors)
        return np.where(np.isfinite(found), found, -np.inf)

    kept = chains(log_density, coordinates.vectors(begun), n_steps, rng)
    in_order = kept.swapaxes(0, 1).reshape(-1, coordinates.size)
    values = Relabelling.of(posterior.model.variables, data, begun)(coordinates.values(in_order))
    by_chain = coordinates.vectors(values).reshape(n_chains, -1, coordinates.size)
    r_hat = float(split_r_hat(by_chain.swapaxes(0, 1)).max(initial=1.0))
    if not r_hat <= _MIXED:
        warnings.warn(
            f"the chains have not mixed after n_steps={n_steps}: R-hat is {r_hat:.2f}. Ask for more steps",
            CaviarWarning,
            stacklevel=2,
        )
    return ExactDraws(values, n_chains, r_hat)


def _refuse_what_densities_do_not_tell(posterior: Posterior) -> None:
    """Refuse a fit whose posterior is another one than that of its statement and data."""
    if posterior._evaluator.prior is not None:
        raise ModelError(
            "the prior of this posterior was an earlier posterior, whose rows are not in these data; fit the model "
            "to all rows at once"
        )
    arguments = (posterior.data_summary or {}).get("arguments", {})
    if arguments.get("sample_weight") is not None:
        raise ModelError(
            "the rows of this fit had weights, which the densities of the model do not have; fit without sample_weight"
        )


def _seen(posterior: Posterior, known: Mapping[str, Any]) -> dict[str, AnyArray]:
    """Return which values of observed variables are not missing, where some are: the others integrate to 1.

    Raises
    ------
    ModelError
        If vectors are missing, or values on which others depend.
    """
    found = {}
    for name, variable in posterior.model.variables.items():
        value = np.asarray(known.get(name, 0.0))
        if value.dtype.kind != "f" or not np.isnan(value).any():
            continue
        has_children = any(variable in other.parents for other in posterior.model.variables.values())
        if has_children or value.ndim > len(variable.plates):
            raise ModelError(f"'{name}' has missing values that cannot be drawn; leave these rows out")
        found[name] = ~np.isnan(value)
    return found


def _summed_labels(posterior: Posterior, drawn: Collection[str]) -> tuple[LabelSet, ...]:
    """Return the hidden labels, which are summed out.

    Raises
    ------
    ModelError
        If those of several rows depend on each other.
    """
    every = [own for own in posterior.model.variables.values() if not own.is_brought]
    sets = label_sets(every, [own.name for own in every if own.name in drawn and n_values_of(own)])
    for own in sets:
        if own.why_not:
            raise ModelError(f"exact draws sum hidden labels out row by row, but {own.why_not}")
    return sets


def _hidden_numbers(posterior: Posterior, drawn: Collection[str]) -> list[str]:
    """Return the names of variables that are drawn, without those that links and sums bring along."""
    found = []
    for name, variable in posterior.model.variables.items():
        if variable.is_brought or name not in drawn:
            continue
        factor = posterior._independent.get(name)
        if variable.is_point or (factor is not None and factor.learnt is None):
            raise ModelError(f"'{name}' is a point mass, and has no exact posterior; fit without points")
        if variable.has_zeros or variable.summed or not variable.family.transforms:
            raise ModelError(
                f"'{name}' is a {type(variable).__name__}: exact draws are of models in which numbers, vectors, "
                f"matrices and labels of rows are hidden, no counts or states"
            )
        found.append(name)
    return found


def _turned(draws: Mapping[str, Any], axes: Mapping[str, int]) -> dict[str, Any]:
    """Return draws with the rows at the axis that the model has them at."""
    return {name: rows_to(own, axes[name]) if name in axes else own for name, own in draws.items()}


@dataclass(frozen=True, eq=False)
class _Piece:
    """A part of the values of a variable in the coordinates of its transform, (plates..., m).

    Attributes
    ----------
    name, part
        The variable, and which part of its value: 1 for the precision of a joint one.
    transform
        Of one value.
    example
        A value, for what does not vary.
    varies
        Which repetitions vary: others are known.
    place
        Of those that vary, in the vector.
    """

    name: str
    part: int
    transform: Transform
    example: AnyArray
    varies: AnyArray
    place: slice

    def apart(self, vectors: Array) -> Array:
        """Return the coordinates of the repetitions that vary, (n, repetitions, m), from whole vectors."""
        return vectors[:, self.place].reshape(len(vectors), np.count_nonzero(self.varies), -1)

    def values(self, vectors: Array) -> Array:
        """Return values, (n, plates..., event...)."""
        found = np.repeat(self.example[np.newaxis], len(vectors), axis=0)
        if self.varies.any():
            found[:, self.varies] = self.transform.inverse(self.apart(vectors))
        return found

    def log_volume(self, vectors: Array) -> Array | float:
        """Return the log of the volume of values for that of whole vectors, (n,); 0 where all values are known."""
        return self.transform.log_volume(self.apart(vectors)).sum(axis=-1) if self.varies.any() else 0.0


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """The hidden numbers of a model as one vector without constraints."""

    pieces: tuple[_Piece, ...]
    size: int
    kinds: Mapping[str, type]

    @classmethod
    def of(cls, posterior: Posterior, names: list[str], draws: Mapping[str, Any]) -> _Coordinates:
        """Return the coordinates of variables of which there are draws."""
        pieces: list[_Piece] = []
        start, kinds = 0, {}
        for name in names:
            whole = draws[name]
            parts = whole if isinstance(whole, tuple) else (whole,)
            kinds[name] = type(whole)
            for number, (part, transform) in enumerate(
                zip(parts, posterior.model.variables[name].family.transforms, strict=True)
            ):
                behind = tuple(range(part.ndim - transform.event_ndim, part.ndim))
                varies = (part.max(axis=0) > part.min(axis=0)).any(axis=tuple(axis - 1 for axis in behind))
                width = transform.forward(part[:1][:, varies]).size
                pieces.append(_Piece(name, number, transform, part[0], varies, slice(start, start + width)))
                start += width
        if not start:
            raise ParameterError("nothing is hidden in this model that could be drawn")
        return cls(tuple(pieces), start, kinds)

    def vectors(self, draws: Mapping[str, Any]) -> Array:
        """Return the vectors of draws, (n, size)."""
        found = []
        for piece in self.pieces:
            whole = draws[piece.name]
            own = whole[piece.part] if isinstance(whole, tuple) else whole
            found.append(piece.transform.forward(own[:, piece.varies]).reshape(len(own), -1))
        return np.concatenate(found, axis=1)

    def values(self, vectors: Array) -> dict[str, Any]:
        """Return the values of vectors, by name."""
        parts: dict[str, list[Array]] = {}
        for piece in self.pieces:
            parts.setdefault(piece.name, []).append(piece.values(vectors))
        return {
            name: self.kinds[name](*own) if issubclass(self.kinds[name], tuple) else own[0]
            for name, own in parts.items()
        }

    def log_volume(self, vectors: Array) -> Array:
        """Return the log of the volume of values for that of vectors, (n,)."""
        total = np.zeros(len(vectors))
        for piece in self.pieces:
            total += piece.log_volume(vectors)
        return total
