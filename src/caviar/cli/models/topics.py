"""Fitted topics: their shares and most probable words, what they say of documents, and new documents."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from rich.console import Console
from scipy.sparse import csr_array

import caviar as cv

from ..speaking.outputs import plain, say
from ..speaking.results import columns_table, objective_document, print_end
from ..tables.arrays import counts_for
from ..tables.documents import Documents, new_documents
from .checked import Checked, again, words_of_documents
from .saved import Saved

_FEW_WORDS = 10
_MANY_WORDS = 50
_DRAWS_OF_WORDS = 100
"""Draws of the topics of all words, of which each has a probability for every word of the vocabulary."""


class TopicsOfFile(Saved):
    """Saved topics."""

    def document(self) -> dict[str, Any]:
        """Return everything that topics say, as JSON can hold it."""
        lda = self.fitted
        return {
            "model": type(lda).__name__,
            **self.about,
            **objective_document(lda.posterior_),
            "perplexity_bound": lda.bound_,
            "words": lda.n_features_in_,
            "topics": _topics(lda, _MANY_WORDS),
        }

    def print(self, console: Console) -> None:
        """Print a line for each topic, the largest first, with its most probable words."""
        lda = self.fitted
        data = lda.posterior_.data_summary
        documents = "" if data is None else f", {data['rows']:,} documents"
        n_topics, most = len(lda.topics_in_use_), len(lda.components_)
        found = f" (found; at most {most})" if n_topics < most else ""
        title = f"latent Dirichlet allocation, {n_topics} topics{found} of {lda.n_features_in_:,} words{documents}"
        say(console, title, "bold")
        say(console)
        table = columns_table("topic", "share")
        table.add_column("most probable words")
        for topic in _topics(lda, _FEW_WORDS):
            table.add_row(str(topic["topic"]), f"{topic['share']:.1%}", plain(", ".join(topic["words"])))
        console.print(table)
        say(console)
        bound = f", perplexity bound {lda.bound_:.1f}"
        print_end(console, lda.posterior_, objective="ELBO", value=lda.elbo_, n_iter=lda.n_iter_, more=bound)

    def _documents(self, file: str | None, sql: str | None, *, quiet: bool = True) -> Documents:
        """Return documents as counts of the words of the fit."""
        words = cv.report.column_names(self.fitted)
        how = self.about.get("texts", {})
        found = new_documents(words, how, file, sql, quiet=quiet)
        return Documents(counts_for(self.fitted, self.path, file, sql), words) if found is None else found

    def data(self, file: str | None, sql: str | None) -> Any:
        return self._documents(file, sql).counts

    @property
    def kind(self) -> str:
        return "topics"

    def facts(self) -> dict[str, Any]:
        return {**super().facts(), "n_components": len(self.fitted.topics_in_use_)}

    def judged(self, file: str | None, sql: str | None) -> dict[str, float]:
        return {"perplexity": float(self.fitted.completion_perplexity(self._documents(file, sql).counts))}

    def predictions(
        self, file: str | None, sql: str | None, *, level: float | None, quiet: bool
    ) -> dict[str, Any]:
        """Return the most probable topic of each document, and the proportions of all."""
        self.refuse_level(level, "documents have a topic and the proportions of all")
        found = self._documents(file, sql, quiet=quiet)
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="X does not have valid feature names")
            proportions = self.fitted.transform(found.counts)
        named = {} if found.names is None else {"document": np.array(found.names)}
        shares = {f"topic_{k}": proportions[:, k] for k in self.fitted.topics_in_use_}
        return {**named, "topic": proportions.argmax(axis=1), **shares}

    def draws(self, data: str | None, n: int | None, seed: int, *, with_component: bool) -> dict[str, Any]:
        """Return counts of words of new documents, each of the average length of those of the fit."""
        self.refuse_data(data)
        lda, n_documents = self.fitted, n or 1
        kept = (lda.posterior_.data_summary or {}).get("arrays", {}).get("word", {})
        length = max(1, round(float(np.sum(kept.get("mean", [100.0])))))
        owners = np.repeat(np.arange(n_documents), length)
        drawn = lda.posterior_.predictive({"document": n_documents}, data={"document": owners}, seed=seed)
        counts = np.zeros((n_documents, lda.n_features_in_), dtype=np.int64)
        np.add.at(counts, (owners, drawn["word"][0].astype(np.int64)), 1)
        return dict(zip(cv.report.column_names(lda), counts.T, strict=True))

    def to_check(self, file: str | None, sql: str | None, n_rows: int, seed: int) -> Checked:
        lda, counts = self.fitted, csr_array(self._documents(file, sql).counts)
        document, word = words_of_documents(counts, n_rows, seed)
        # words that none of these documents has say nothing of the fit, and take most of the time
        used, word = np.unique(word, return_inverse=True)
        prior = lda.topic_word_prior
        prior = np.asarray(prior)[used] if np.ndim(prior) == 1 else prior
        n_documents = int(document[-1]) + 1

        def stated() -> tuple[Any, Any, dict[str, Any]]:
            own = np.zeros((n_documents, len(used)))
            np.add.at(own, (document, word), 1.0)
            model = again(lda, seed, vocabulary=None, topic_word_prior=prior, moves=0, total_samples=None)
            data = {"word": word.astype(np.float64), "document": document}
            return model.fit(own).posterior_.model, data, {"n_draws": _DRAWS_OF_WORDS}

        told = f"checking on {len(word):,} words of {n_documents:,} of {counts.shape[0]:,} documents"
        return Checked(n_documents, told, stated)


def _topics(lda: cv.LatentDirichletAllocation, n_words: int) -> list[dict[str, Any]]:
    """Return number, share of the words of the fit, and most probable words of each topic, the largest first."""
    words = cv.report.column_names(lda)
    mean = lda.components_ / lda.components_.sum(axis=1, keepdims=True)
    added = np.maximum(lda.components_ - lda.topic_word_prior_, 0.0).sum(axis=1)
    shares = added / max(added.sum(), np.finfo(float).tiny)
    return [
        {
            "topic": k,
            "share": float(shares[k]),
            "words": {
                words[v]: float(mean[k, v]) for v in np.argsort(-mean[k], kind="stable")[:n_words].tolist()
            },
        }
        for k in sorted(lda.topics_in_use_, key=lambda k: -shares[k])
    ]
