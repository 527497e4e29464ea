"""Starts of which a user gave some parameters, and the data give the others."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from scipy.optimize import linear_sum_assignment

from .._typing import Array
from ._structure import CovarianceStructure


def with_given(
    found: Mapping[str, Array], given: Mapping[str, Array], structure: CovarianceStructure
) -> dict[str, Array]:
    r"""Return the parameters of a start with given ones in the place of those that were found.

    Clusters come in no order, and components with given weights or precisions differ: so cluster c with share
    :math:`w_c` and covariance :math:`S_c` becomes the component k of one to one pairs that maximise

    .. math:: \sum w_c \bigl(\log\pi_k + \tfrac12 \log|\Lambda_k| - \tfrac12 \mathrm{tr}(\Lambda_k S_c)\bigr),

    the expected log density of its rows, from what is given of :math:`\pi` and :math:`\Lambda`.

    Parameters
    ----------
    found
        Weights, means and precisions of clusters, by the names of the model's variables.
    given
        The same of components; weights, precisions or both.
    structure
        Of the precisions.
    """
    n_components, n_features = found["mean"].shape
    fit = np.zeros((n_components, n_components))
    if "weights" in given:
        fit += np.log(given["weights"])
    if "precision" in given:
        fit += _gaussian_fit(found["precision"], given["precision"], structure, n_components, n_features)
    shares = found.get("weights", np.full(n_components, 1 / n_components))
    _, of_cluster = linear_sum_assignment(shares[:, None] * fit, maximize=True)
    cluster = np.argsort(of_cluster)
    sorted_ = {
        name: value
        if name == "precision" and structure.n_precisions(n_components) is None
        else value[cluster]
        for name, value in found.items()
    }
    return {**sorted_, **given}


def _gaussian_fit(
    found: Array, given: Array, structure: CovarianceStructure, n_components: int, n_features: int
) -> Array:
    """Return the part of the expected log density that precisions have, clusters x components."""
    covariances = structure.matrices(structure.invert(found), n_components, n_features)
    precisions = structure.matrices(given, n_components, n_features)
    traces = np.einsum("kij,cji->ck", precisions, covariances)
    return 0.5 * (np.linalg.slogdet(precisions)[1] - traces)
