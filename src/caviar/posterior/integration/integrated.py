r"""A posterior integrated over some of its globals: a mixture of the fits given values of these.

.. math:: q(\theta, z) = q(\theta)\, q(z \mid \theta), \qquad
          q(\theta) \propto \exp [L(\theta) + \delta(\theta)], \qquad
          \log p(x) \ge \log \int e^{L(\theta)}\, d\theta

with :math:`L(\theta) \le \log p(x, \theta)` the ELBO of the fit in which :math:`\theta` is known, and its correction to
second order, :math:`\delta`. No independence of :math:`\theta` and the rest is assumed; where the rest is Normal given
it, the result is exact.

Source: Rue, Martino and Chopin, "Approximate Bayesian inference for latent Gaussian models" (2009), with variational
fits in the place of Laplace's approximation.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
from scipy.special import expit, logit

from ..._errors import ModelError
from ..._tables import html_of
from ..._typing import Array
from ...families.base.marginals import variable_and_part
from ...names import Placed
from ..evidence.coordinates import Coordinates
from ..prediction.prediction import Prediction
from ..simulation import nth_of
from ..weighted import HEADINGS, Weighted
from .lattice import Lattice

_REFINED = {1: 32, 2: 8, 3: 4}
"""Steps of the finer lattice for one of the fits', by the number of dimensions."""

_LEAST_WEIGHT = 1e-7
"""Fits, and points of the finer lattice compared with the highest, with less do not count."""

_LOGITS = np.linspace(-15.0, 15.0, 40)
"""Log odds of the probabilities of which quantiles in all fits are taken."""

_EDGES = np.linspace(-13.0, 13.0, 521)
"""Log odds of the probabilities between which their mixture is taken as one of its values."""


@dataclass(frozen=True, eq=False)
class Conditional:
    """A fit given values of some globals.

    Attributes
    ----------
    posterior
        The fit.
    correction
        Of its ELBO by linear response, to second order; that of a neighbour where it has none.
    """

    posterior: Any
    correction: float

    @property
    def log_evidence(self) -> float:
        """Of the data and the values, to second order."""
        return self.posterior.elbo + self.correction


@dataclass(frozen=True, eq=False, repr=False)
class IntegratedPosterior:
    """A posterior integrated over some globals, see :meth:`Posterior.integrated`.

    Attributes
    ----------
    over
        Names of the globals that are integrated over.
    elbo
        A lower bound of log p(x), up to the error of the grid; never below the ELBO of the fit.
    log_evidence
        An estimate of log p(x), from the ELBO of each fit corrected to second order.
    posteriors
        The fits, each given values of these globals.
    weights
        Weights of the fits; they sum to one.
    values
        Name -> values of the globals in the fits, shape (n, plates..., event...).
    """

    over: tuple[str, ...]
    elbo: float
    log_evidence: float
    posteriors: tuple[Any, ...]
    weights: Array
    values: Mapping[str, Any]
    _coordinates: Coordinates
    _lattice: Lattice

    @classmethod
    def of(
        cls, over: Sequence[str], coordinates: Coordinates, lattice: Lattice, fits: Sequence[Conditional]
    ) -> IntegratedPosterior:
        """Return the posterior of a grid with a fit for each of its points."""
        log_masses = lattice.log_masses
        log_evidence = float(np.logaddexp.reduce(log_masses))
        elbo = float(np.logaddexp.reduce(log_masses - [own.correction for own in fits]))
        weights = np.exp(log_masses - log_evidence)
        kept = [int(place) for place in np.flatnonzero(weights >= _LEAST_WEIGHT)]
        posteriors = tuple(fits[place].posterior for place in kept)
        weights = weights[kept] / weights[kept].sum()
        values = coordinates.values(lattice.vectors[kept])
        return cls(tuple(over), elbo, log_evidence, posteriors, weights, values, coordinates, lattice)

    def mean(self, name: str) -> Array:
        """Return the mean of each entry of a global variable; a joint factor needs its part, as in ``"theta.mean"``."""
        if self._is_integrated(name):
            return self._weighted(name).mean
        return np.tensordot(self.weights, self._moments(name)[0], axes=1)

    def sd(self, name: str) -> Array:
        """Return the standard deviation of each entry of a global variable."""
        if self._is_integrated(name):
            return self._weighted(name).sd
        means, sds = self._moments(name)
        return np.sqrt(
            np.tensordot(self.weights, np.square(sds) + np.square(means - self.mean(name)), axes=1)
        )

    def interval(self, name: str, level: float = 0.95) -> Array:
        """Return the central interval of each entry of a global variable, shape (2, ...): lower, then upper ends.

        Parameters
        ----------
        name
            Name of the variable.
        level
            Probability, between 0 and 1.
        """
        return self._weighted(name).interval(level)

    def transformed(self, function: Callable[[Array], Any], name: str) -> Weighted:
        """Return a function of each entry of a variable, such as the standard deviation of a precision.

        Parameters
        ----------
        function
            Function of an array that returns an array of the same shape.
        name
            Name of the variable.

        Returns
        -------
        Weighted
            With ``.mean``, ``.sd``, ``.interval(level)``, ``.quantile(q)``, ``.values`` and ``.weights``.
        """
        return self._weighted(name).transformed(function)

    def predict(self, data: Any) -> dict[str, Prediction]:
        """Return predictions of the variables that are missing in new rows: mixtures of the predictions of all fits.

        Parameters
        ----------
        data
            As for :meth:`Posterior.predict`.

        Returns
        -------
        dict
            Name of each observed variable missing in ``data`` -> :class:`Prediction`.
        """
        given = self.posteriors[0]._evaluator.named(data).values
        told = []
        for number, posterior in enumerate(self.posteriors):
            known = {name: nth_of(self.values[name], number) for name in self.over}
            told.append(posterior.predict(Placed({**given, **known})))
        names = [name for name in told[0] if isinstance(told[0][name], Prediction)]
        return {name: self._mixed([own[name] for own in told]) for name in names}

    def _mixed(self, told: Sequence[Prediction]) -> Prediction:
        means, sds = (np.stack([getattr(own, figure) for own in told]) for figure in ("mean", "sd"))
        mean = np.tensordot(self.weights, means, axes=1)
        variance = np.tensordot(self.weights, np.square(sds) + np.square(means - mean), axes=1)
        parts = tuple(
            (weight * share, own, sd)
            for weight, prediction in zip(self.weights, told, strict=True)
            for share, own, sd in prediction.parts
        )
        return replace(told[0], mean=mean, standard_deviation=np.sqrt(variance), parts=parts)

    def _weighted(self, name: str) -> Weighted:
        return self._between_fits(name) if self._is_integrated(name) else self._pooled(name)

    def _is_integrated(self, name: str) -> bool:
        return variable_and_part(str(name), self.over)[0] in self.over

    def _moments(self, name: str) -> tuple[Array, Array]:
        """Return means and standard deviations of a variable in all fits, (n, ...)."""
        variable, _ = variable_and_part(str(name), tuple(self.posteriors[0]))
        found = []
        for posterior in self.posteriors:
            parts = {variable + own.part: own for own in posterior.marginals(variable)}
            if name not in parts or parts[name].sd is None:
                raise ModelError(
                    f"'{variable}' has {' and '.join(map(repr, parts))}, with a standard deviation unless it is a "
                    f"point; got {name!r}"
                )
            found.append((parts[name].mean, parts[name].sd))
        return np.stack([own[0] for own in found]), np.stack([own[1] for own in found])

    def _pooled(self, name: str) -> Weighted:
        """Return quantiles of the mixture of a variable's distributions in all fits, with the probabilities around."""
        levels = 1.0 - 2.0 * expit(_LOGITS[_LOGITS < 0])
        ends = np.stack(
            [[posterior.interval(name, level) for level in levels] for posterior in self.posteriors]
        )
        # (fits, logits, ...)
        own = np.concatenate([ends[:, :, 0], ends[:, ::-1, 1]], axis=1)
        flat = own.reshape(*own.shape[:2], -1)
        middle = 0.5 * (_EDGES[1:] + _EDGES[:-1])
        values = np.stack(
            [_mixed_quantiles(flat[..., n], self.weights, middle) for n in range(flat.shape[2])], 1
        )
        shares = np.diff(expit(_EDGES))
        return Weighted(values.reshape(len(middle), *own.shape[2:]), shares / shares.sum())

    @cached_property
    def _fine(self) -> tuple[dict[str, Any], Array]:
        vectors, weights = self._lattice.refined(_REFINED[self._coordinates.size])
        kept = weights >= _LEAST_WEIGHT * weights.max()
        return self._coordinates.values(vectors[kept]), weights[kept] / weights[kept].sum()

    def _between_fits(self, name: str) -> Weighted:
        """Return values of a variable that was integrated over, on the finer lattice."""
        variable, part = variable_and_part(str(name), self.over)
        values, weights = self._fine
        parts = values[variable]
        pair = zip(("mean", "precision"), parts, strict=True) if isinstance(parts, tuple) else [("", parts)]
        own: dict[str, Any] = dict(pair)
        if part not in own:
            raise ModelError(f"'{variable}' has the parts {', '.join(map(repr, own))}; got {name!r}")
        return Weighted(np.asarray(own[part], dtype=np.float64), weights)

    def _repr_html_(self) -> str:
        """Return a table of what is integrated over, for a notebook."""
        rows = [(name, *row) for name in self.over for row in self._weighted(name).cells()]
        cells = [("variable", *HEADINGS), *rows]
        told = (
            f"{len(self.posteriors)} fits, ELBO {self.elbo:.6f} nats, log p(x) about {self.log_evidence:.3f}"
        )
        return html_of(f"Posterior integrated over {', '.join(self.over)}: {told}", cells)

    def __repr__(self) -> str:
        return f"IntegratedPosterior(over {', '.join(self.over)}; {len(self.posteriors)} fits, ELBO {self.elbo:.6g})"


def _mixed_quantiles(quantiles: Array, weights: Array, logits: Array) -> Array:
    """Return quantiles of a mixture, from those of its parts at ``_LOGITS``, (parts, probabilities)."""
    ends = np.min(quantiles[:, 0]), np.max(quantiles[:, -1])
    places = np.unique(np.concatenate([quantiles.ravel(), np.linspace(*ends, 400)]))
    below = np.zeros(len(places))
    for own, weight in zip(quantiles, weights, strict=True):
        below += weight * expit(np.interp(places, own, _LOGITS))
    # points beyond all quantiles have probabilities that no longer rise
    return np.interp(logits, logit(np.clip(below, 1e-300, 1.0 - 1e-16)), places)
