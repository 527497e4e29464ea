r"""Thresholds and common effects of an ordinal mixed model: their covariance from the information at the mode.

.. math:: -\frac{\partial^2}{\partial \theta\, \partial \theta'} \Big[ \sum_n w_n \log [\Phi(c_{y_n} - \eta_n)
          - \Phi(c_{y_n - 1} - \eta_n)] + \log p(\beta, u) \Big], \qquad \theta = (c, \beta, u)

The fit ends at the mode of this density, the precisions of groups at their means. So this is Laplace's approximation,
and the thresholds and effects have the covariance that the inverse says (the delta method).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from scipy.sparse import block_diag, csr_array, diags_array, hstack
from scipy.sparse.linalg import splu

from ..._typing import AnyArray, Array
from ...numerics.normal_tail import log_between
from .design import COMMON, Encoding
from .families import THRESHOLDS
from .statement import MATRIX, OFFSET, Design

_LOG_ROOT_TWO_PI = 0.5 * float(np.log(2.0 * np.pi))


def covariance_at_mode(
    posterior: Any, design: Design, categories: Array, weights: Array | None, encoding: Encoding
) -> Array | None:
    """Return the covariance of thresholds and common effects, (K - 1 + p, K - 1 + p); None without thresholds.

    Parameters
    ----------
    posterior
        Of the fit.
    design
        The rows.
    categories
        The number of that of each row, (N,).
    weights
        Of the rows; None for 1.
    encoding
        Of the formula.
    """
    if not encoding.has_thresholds:
        return None
    cuts, places = np.asarray(posterior[THRESHOLDS].mean), categories.astype(np.intp)
    parts, priors, mean = _effects(posterior, design, encoding.group_names)
    effects = hstack([csr_array(own) for own in parts]).tocsr()
    prior = block_diag([csr_array((len(cuts), len(cuts))), *priors]).tocsc()
    predictor = effects @ mean + design.data.get(OFFSET, 0.0)
    curvature = _curvature(cuts, predictor, places, np.ones(len(places)) if weights is None else weights)
    upper, lower = (_ends(len(cuts), places + shift, effects) for shift in (0, -1))
    between = upper.T @ diags_array(curvature[2]) @ lower
    information = (
        upper.T @ diags_array(curvature[0]) @ upper
        + lower.T @ diags_array(curvature[1]) @ lower
        + between
        + between.T
        + prior
    )
    n_told = len(cuts) + len(design.names)
    found = splu(information.tocsc()).solve(np.eye(information.shape[0])[:, :n_told])[:n_told]
    return 0.5 * (found + found.T)


def _effects(
    posterior: Any, design: Design, levels: Mapping[str, Sequence[str]]
) -> tuple[list[Any], list[Any], Array]:
    """Return the columns of all effects, the precisions of their priors, and their means."""
    common = posterior.model.variables[COMMON]
    parts: list[Any] = [design.data[MATRIX]]
    priors: list[Any] = [csr_array(np.asarray(common.known("precision")))]
    means = [np.asarray(posterior[COMMON].mean)]
    for block in design.blocks:
        names = list(levels[block.term.group])
        number = {name: place for place, name in enumerate(names)}
        groups = np.array([number[name] for name in design.data[block.labels].tolist()])
        size, n_rows = len(block.names), len(groups)
        columns = (
            np.ones((n_rows, 1)) if block.is_intercept else design.data[block.matrix].reshape(n_rows, -1)
        )
        where = groups[:, None] * size + np.arange(size)
        rows = np.repeat(np.arange(n_rows), size)
        parts.append(csr_array((columns.ravel(), (rows, where.ravel())), shape=(n_rows, len(names) * size)))
        precision = np.reshape(posterior[block.precision].mean, (size, size))
        priors.append(block_diag([precision] * len(names)))
        means.append(np.ravel(posterior[block.label].mean))
    return parts, priors, np.concatenate(means)


def _ends(n_cuts: int, places: AnyArray, effects: Any) -> Any:
    """Return the derivatives of an end of each row, minus its predictor: a row of zeros where it has none."""
    n_rows = len(places)
    has = ((places >= 0) & (places < n_cuts)).astype(np.float64)
    chosen = csr_array((has, (np.arange(n_rows), np.clip(places, 0, n_cuts - 1))), shape=(n_rows, n_cuts))
    return hstack([chosen, -(diags_array(has) @ effects)]).tocsr()


def _curvature(cuts: Array, predictor: Array, places: AnyArray, weights: Array) -> tuple[Array, Array, Array]:
    """Return minus the second derivatives of log p by the upper end, by the lower end and by both, of each row."""
    ends = np.concatenate([[-np.inf], cuts, [np.inf]])
    lower, upper = ends[places] - predictor, ends[places + 1] - predictor
    log_p = log_between(lower, upper)
    below, above = (np.exp(-0.5 * end**2 - _LOG_ROOT_TWO_PI - log_p) for end in (lower, upper))
    low, high = (np.where(np.isfinite(end), end, 0.0) for end in (lower, upper))
    return weights * (high + above) * above, weights * (below - low) * below, -weights * below * above
