r"""Joint Gaussian distributions of a few numbers at many natural parameters, as dense matrices.

With the statistics x_i and products x_i x_j, the natural parameters are h and, of a product, the share in
:math:`-\tfrac12 x' P x` of its entry of the precision.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from caviar._typing import AnyArray, Array
from caviar.families.shared.gaussian_products import covariance_of_products
from caviar.numerics.linalg import lower_roots


class ManyNormals:
    """n Gaussian distributions of d numbers.

    Parameters
    ----------
    size
        Numbers, d.
    pairs
        Of the entries of each statistic, which two numbers they are the product of; the second is -1 of a number.
    natural
        Natural parameters of all entries, (n, p).

    Attributes
    ----------
    is_proper
        Which are distributions, (n,); the moments of the others are NaN.
    mean, covariance
        Of the numbers, (n, d) and (n, d, d).
    """

    def __init__(self, size: int, pairs: Iterable[tuple[AnyArray, AnyArray]], natural: Array) -> None:
        first, second = (np.concatenate(each) for each in zip(*pairs, strict=True))
        self._first: AnyArray = first
        self._second: AnyArray = second
        self._is_product: AnyArray = np.asarray(second >= 0)
        linear, precision = np.zeros((len(natural), size)), self._square(-natural)
        linear[:, first[~self._is_product]] = natural[:, ~self._is_product]
        root = lower_roots(precision)
        self.is_proper: AnyArray = np.asarray(
            np.isfinite(root).all(axis=(1, 2)) & np.isfinite(natural).all(axis=1)
        )
        precision = np.where(self.is_proper[:, None, None], precision, np.eye(size))
        inverse = np.linalg.inv(precision)
        self.covariance = np.where(self.is_proper[:, None, None], inverse, np.nan)
        self.mean = (self.covariance @ linear[..., None])[..., 0]

    def _square(self, weights: Array) -> Array:
        """Return symmetric matrices B + B', (n, d, d), with x' B x the sum of all products with weights (n, p)."""
        i, j = self._first[self._is_product], self._second[self._is_product]
        size = int(self._first.max()) + 1
        flat = np.zeros((size * size, len(weights)))
        np.add.at(flat, i * size + j, weights[:, self._is_product].T)
        found = flat.T.reshape(-1, size, size)
        return found + found.swapaxes(1, 2)

    @property
    def expected_statistics(self) -> Array:
        """Expected statistics, (n, p)."""
        found = self.mean[:, self._first]
        i, j = self._first[self._is_product], self._second[self._is_product]
        found[:, self._is_product] *= self.mean[:, j]
        found[:, self._is_product] += self.covariance[:, i, j]
        return found

    def covariances_of_statistics(self) -> Array:
        """Return the covariances of all statistics, (n, p, p)."""
        pairs = [(self._first, self._second)]
        each = zip(self.mean, self.covariance, strict=True)
        return np.stack([covariance_of_products(mean, own, pairs)[0] for mean, own in each])

    def covariances_of_sums(self, weights: Array) -> Array:
        r"""Return the covariances of sums of the statistics with weights (p, c), shape (n, c, c).

        A sum is :math:`a' x + x' B x`, and the covariance of two of them is
        :math:`(a + 2 B m)' C (\tilde a + 2 \tilde B m) + 2 \operatorname{tr} B C \tilde B C`.
        """
        n, c = len(self.mean), weights.shape[1]
        linear, twice = np.zeros((c, self.mean.shape[1])), self._square(weights.T)
        linear[:, self._first[~self._is_product]] = weights[~self._is_product].T
        slopes = linear + np.einsum("cij,nj->nci", twice, self.mean)
        turned = twice @ self.covariance[:, None]
        flat, back = turned.reshape(n, c, -1), turned.swapaxes(2, 3).reshape(n, c, -1)
        return slopes @ self.covariance @ slopes.swapaxes(1, 2) + 0.5 * flat @ back.swapaxes(1, 2)
