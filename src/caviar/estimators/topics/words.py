"""Words of the columns of counts, for estimators of topics."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
from sklearn.utils.validation import check_is_fitted

from ..._errors import DataError, ParameterError
from ..._typing import AnyArray
from ...names import with_columns
from ...numerics.arguments import require_whole
from ...posterior.posterior import Posterior
from ...posterior.summary import Summary, SummaryRow


class Words:
    """An estimator with a ``vocabulary``, whose topics have the concentrations ``components_``."""

    vocabulary: Any
    doc_topic_prior_type: str
    components_: Any
    topic_word_prior_: Any

    @property
    def vocabulary_(self) -> AnyArray:
        """The word of each column of counts, shape (V,)."""
        check_is_fitted(self)
        words = self._known_words()
        if words is None:
            raise AttributeError(
                "the words of these topics are not known: fit with vocabulary=, or to a table whose columns have names"
            )
        return np.array([str(word) for word in words], dtype=object)

    @property
    def topics_in_use_(self) -> list[int]:
        """Numbers of the topics that have words: all, except with a Dirichlet process."""
        check_is_fitted(self)
        if self.doc_topic_prior_type != "dirichlet_process":
            return list(range(len(self.components_)))
        words = (self.components_ - self.topic_word_prior_).sum(axis=1)
        return np.flatnonzero(words > 1.0).tolist()

    def _known_words(self) -> Any:
        """Return the word of each column, or None where these are not known."""
        return self.vocabulary if self.vocabulary is not None else getattr(self, "feature_names_in_", None)

    def _name_words(self, posterior: Posterior) -> None:
        """Write the words, where they are known, into the summary of the data, for tables and plots."""
        words = self._known_words()
        if words is not None:
            posterior.data_summary = with_columns(posterior.data_summary, "word", words, "categories")

    def top_words(self, n_words: int = 10) -> list[list[str]]:
        """Return the most probable words of each topic, in decreasing order of probability.

        Parameters
        ----------
        n_words
            Number of words for each topic, at most V.

        Returns
        -------
        list
            A list of words for each topic, in the order of ``components_``.

        Raises
        ------
        AttributeError
            If the words are unknown. Give ``vocabulary=``, or a table with named columns.

        Examples
        --------
        >>> import caviar as cv
        >>> counts = [[6, 4, 0, 0], [5, 5, 0, 0], [0, 0, 4, 6], [0, 0, 2, 8]]
        >>> words = ["goal", "ball", "law", "vote"]
        >>> lda = cv.LatentDirichletAllocation(
        ...     2,
        ...     doc_topic_prior=0.1,
        ...     topic_word_prior=0.01,
        ...     vocabulary=["goal", "ball", "law", "vote"],
        ...     random_state=0,
        ... )
        >>> sorted(lda.fit(counts).top_words(2))
        [['goal', 'ball'], ['vote', 'law']]
        """
        require_whole("n_words", n_words, 1)
        words = self.vocabulary_
        # columns have the order of the means, whose sum is one
        shares = self.components_ / self.components_.sum(axis=1, keepdims=True)
        return [words[np.argsort(-own, kind="stable")[:n_words]].tolist() for own in shares]

    def summary(self, *, level: float = 0.95, max_rows: int | None = 5) -> Summary:
        """Return a table of the topics, the largest first: their most probable words, with probabilities and intervals.

        Parameters
        ----------
        level
            Probability of the intervals, between 0 and 1.
        max_rows
            Largest number of words for each topic; None shows all.

        Returns
        -------
        Summary
            Prints as a table, also in a notebook; ``to_frame()`` makes a DataFrame.
        """
        found: Summary = super().summary(level=level, max_rows=None)  # pyright: ignore[reportAttributeAccessIssue]
        entries = [row for row in found.rows if row.variable == "topics"]
        n_words = len(entries) // len(self.components_)
        words = self._known_words()
        sizes = (self.components_ - self.topic_word_prior_).sum(axis=1)
        rows: list[SummaryRow] = []
        left_out: dict[str, int] = {}
        for k in sorted(self.topics_in_use_, key=lambda k: -sizes[k]):
            name = f"topic {k}, {max(sizes[k], 0.0) / max(sizes.sum(), 1e-300):.0%}"
            order = np.argsort(-self.components_[k], kind="stable")[:max_rows].tolist()
            own = [entries[k * n_words + v] for v in order]
            called = [f"word {v}" if words is None else str(words[v]) for v in order]
            rows += [replace(row, variable=name, index=word) for row, word in zip(own, called, strict=True)]
            if len(own) < n_words:
                left_out[name] = n_words - len(own)
        return replace(found, rows=tuple(rows), left_out=left_out)

    def _refuse_words_in_another_order(self, X: Any) -> None:
        """Refuse a table whose columns are the words of ``vocabulary`` in another order; scikit-learn checks others."""
        if self.vocabulary is None or hasattr(self, "feature_names_in_"):
            return
        words, columns = list(map(str, self.vocabulary)), list(map(str, getattr(X, "columns", ())))
        if columns != words and set(columns) == set(words):
            raise DataError(
                "X has a column for each word of vocabulary, but in another order; pass X[estimator.vocabulary]"
            )

    def _check_vocabulary(self, n_words: int) -> None:
        """Refuse words that are not one for each column, or are the names of the columns in another order."""
        words = self.vocabulary
        if words is None:
            return
        if isinstance(words, str | Mapping | set) or not isinstance(words, Iterable):
            raise ParameterError(
                f"vocabulary must be a list with the word of each column; got a {type(words).__name__}. From a "
                f"dictionary of words and their columns make it by sorted(vocabulary, key=vocabulary.get)"
            )
        words = [str(word) for word in words]
        if len(words) != n_words:
            raise ParameterError(
                f"X has {n_words} columns, but vocabulary has {len(words)} words: give one for each"
            )
        columns = list(map(str, getattr(self, "feature_names_in_", ())))
        if columns and columns != words and set(columns) == set(words):
            raise ParameterError(
                "vocabulary has the names of the columns of X in another order; leave it out, since X has the words"
            )
