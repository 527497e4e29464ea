r"""How the words of documents that each topic has change with the topics: linear response of a block of documents.

With the probabilities :math:`r_{dvk}` of the topics of a word, :math:`C_{dv} = \mathrm{diag}\,r_{dv} - r_{dv}r_{dv}'`,
and the concentrations :math:`a_d = \alpha + \sum_v n_{dv} r_{dv}` of the proportions, a change of
:math:`\langle\log\beta\rangle` gives

.. math::
    dr_{dv} = C_{dv}\,(\psi'(a_d) \circ da_d + d\langle\log\beta_{\cdot v}\rangle), \qquad
    da_d = (I - M_d\,\mathrm{diag}\,\psi'(a_d))^{-1} \sum_v n_{dv} C_{dv}\, d\langle\log\beta_{\cdot v}\rangle,

with :math:`M_d = \sum_v n_{dv} C_{dv}`. Every document must be at a maximum: all eigenvalues of
:math:`\psi'^{1/2} M_d\, \psi'^{1/2}` below one.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from scipy.sparse import csr_array
from scipy.special import polygamma

from ..._errors import ModelError
from ..._typing import Array

_MOST_NUMBERS = 4e6
"""Numbers of the matrices of documents that are made together."""


class DocumentResponse:
    """The response of a block of documents at their optimum.

    Parameters
    ----------
    counts
        Of words, a sparse array by rows, (B, V).
    weights
        Of documents, (B,).
    concentration
        Of the proportions, (B, K).
    probabilities
        Of the topics of each entry of the counts, (E, K).

    Raises
    ------
    ModelError
        If a document is at a saddle point.
    """

    def __init__(self, counts: Any, weights: Array, concentration: Array, probabilities: Array) -> None:
        self._words, self._shape = counts.indices, counts.shape
        self._owners = np.repeat(np.arange(counts.shape[0]), np.diff(counts.indptr))
        self._probabilities = probabilities
        entries = np.arange(counts.nnz)
        self._by_document = csr_array(
            (counts.data, entries, counts.indptr), shape=(counts.shape[0], counts.nnz)
        )
        numbers = counts.data * weights[self._owners]
        self._by_word = csr_array((numbers, (counts.indices, entries)), shape=(counts.shape[1], counts.nnz))
        self._slope = polygamma(1, concentration)
        self._inverse = self._inverses()

    def _inverses(self) -> Array:
        """Return (I - M diag(slope))^-1 of each document, (B, K, K)."""
        n_docs, n_topics = self._slope.shape
        found = np.empty((n_docs, n_topics, n_topics))
        root = np.sqrt(self._slope)
        portion = max(int(_MOST_NUMBERS / n_topics**2), 1)
        for start in range(0, n_docs, portion):
            docs = slice(start, start + portion)
            spread = np.stack([self._spread(doc) for doc in range(start, min(start + portion, n_docs))])
            own = np.eye(n_topics) - root[docs, :, None] * spread * root[docs, None, :]
            values, vectors = np.linalg.eigh(own)
            if not (values > 0).all():
                raise ModelError(
                    "the fit has ended at a saddle point of the proportions and the words of a document, so there is "
                    "no linear response; fit again with another seed or more restarts"
                )
            solved = (vectors / values[:, None, :]) @ vectors.swapaxes(1, 2)
            found[docs] = solved * root[docs, None, :] / root[docs, :, None]
        return found

    def _spread(self, document: int) -> Array:
        """Return M of a document, (K, K)."""
        entries = slice(*self._by_document.indptr[document : document + 2])
        own, number = self._probabilities[entries], self._by_document.data[entries]
        weighed = own * number[:, None]
        return np.diag(weighed.sum(axis=0)) - weighed.T @ own

    def change(self, expected_log: Array) -> Array:
        """Return the change of the words of each topic, (K, V), with one of the expected log topics, (K, V)."""
        said = expected_log.T[self._words]
        drawn = self._by_document @ self._spread_of(said)
        moved = self._slope * np.einsum("bij,bj->bi", self._inverse, drawn)
        return (self._by_word @ self._spread_of(said + moved[self._owners])).T

    def _spread_of(self, changes: Array) -> Array:
        """Return C times a change of the natural parameters of each entry, (E, K)."""
        own = self._probabilities
        return own * (changes - (own * changes).sum(axis=1, keepdims=True))


def changes_of_words(response: DocumentResponse, changes: Sequence[Array]) -> Array:
    """Return the changes of the words of each topic, (n, K, V)."""
    return np.stack([response.change(own) for own in changes])
