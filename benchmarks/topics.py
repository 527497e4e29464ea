"""Topics of caviar, tomotopy and gensim, each at its best: words held out, coherence, and the processor's time.

    python benchmarks/topics.py --data DIR [--corpus ap poliblog5k] [--topics 50 100] [--seeds 3] [--tuning]

Each library learns the concentrations that it can learn, and has the others, and its number of passes, from a search
over the documents that ``--tuning`` takes (see ``lda.py``, whose divisions of the documents these are). The perplexity
is that of half of the words of documents held out, given topics and concentrations of the fit; their proportions are
found by caviar for all. Coherence is gensim's ``c_npmi`` of the ten likeliest words of each topic, by documents of the
training set that have both: higher is better. Seconds are those of the processor on one thread, for the whole call.
tomotopy and gensim are in the extra ``bench``.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from lda import Task, corpora, divided
from scipy.sparse import csr_array
from threadpoolctl import threadpool_limits

import caviar as cv

TOP = 10
"""Words of a topic whose coherence is measured."""


@dataclass(frozen=True)
class Fit:
    """Topics of a fit, (K, V), with the concentration of proportions, (K,), the seconds that it took, and its ELBO."""

    topics: np.ndarray
    prior: np.ndarray
    seconds: float
    elbo: float = float("nan")


Fitting = Callable[[Task], Fit]


def ours(**arguments: Any) -> Fitting:
    """Return what fits caviar's estimator."""

    def fit(task: Task) -> Fit:
        begun = task.clock()
        lda = cv.LatentDirichletAllocation(
            task.n_topics, random_state=task.seed, n_jobs=1, uncertainty="mean_field", **arguments
        ).fit(task.train)
        return Fit(
            lda.components_,
            np.broadcast_to(lda.doc_topic_prior_, task.n_topics).astype(float),
            task.clock() - begun,
            lda.elbo_,
        )

    return fit


def from_chance(task: Task) -> Fit:
    """Fit with the defaults of the estimator from topics near the even one, as other libraries begin."""
    begun = task.clock()
    k, n_words = task.n_topics, task.train.shape[1]
    drawn = np.random.default_rng(task.seed).gamma(100.0, 0.01, (k, n_words))
    posterior = cv.models.latent_dirichlet_allocation(
        k, n_words, concentration=1 / k, word_concentration=1 / k
    ).fit(
        {"word": task.train},
        init={"topics": cv.families.Dirichlet(drawn)},
        max_iter=100,
        tol=1e-2,
        executor=1,
        uncertainty="mean_field",
    )
    prior = np.full(k, 1 / k)
    return Fit(posterior["topics"].concentration, prior, task.clock() - begun, posterior.elbo)


def tomotopys(eta: float, sweeps: int, alpha: float = 0.1, every: int = 10) -> Fitting:
    """Return what samples with tomotopy, which learns the concentrations of proportions every so many sweeps."""

    def fit(task: Task) -> Fit:
        import tomotopy

        begun = task.clock()
        lda = tomotopy.LDAModel(k=task.n_topics, alpha=alpha, eta=eta, seed=task.seed + 1)
        lda.optim_interval = every
        for words, counts in documents(task.train):
            if len(words):
                lda.add_doc([str(word) for word in np.repeat(words, counts)])
        lda.train(sweeps, workers=1)
        seconds = task.clock() - begun
        topics = np.full((task.n_topics, task.train.shape[1]), eta)
        words = [int(word) for word in lda.used_vocabs]
        for number, tokens in enumerate(lda.get_count_by_topics()):
            topics[number, words] = lda.get_topic_word_dist(number) * (tokens + eta * len(words))
        return Fit(topics, np.asarray(lda.alpha, dtype=float), seconds)

    return fit


def gensims(passes: int, chunk: int, **arguments: Any) -> Fitting:
    """Return what fits gensim's LdaModel, which learns both concentrations."""

    def fit(task: Task) -> Fit:
        from gensim.models import LdaModel

        begun = task.clock()
        texts = [
            list(zip(words.tolist(), counts.tolist(), strict=True)) for words, counts in documents(task.train)
        ]
        lda = LdaModel(
            texts,
            num_topics=task.n_topics,
            id2word={number: str(number) for number in range(task.train.shape[1])},
            passes=passes,
            chunksize=chunk,
            eval_every=None,
            random_state=task.seed,
            **{"alpha": "auto", "eta": "auto"} | arguments,
        )
        return Fit(np.array(lda.state.get_lambda(), dtype=float), np.array(lda.alpha), task.clock() - begun)

    return fit


LEARNT = {"method": "collapsed", "doc_topic_prior": "learn", "topic_word_prior": "learn"}
BEST: Mapping[str, Fitting] = {
    "caviar, defaults": ours(),
    "caviar, collapsed, learnt priors, 50 passes": ours(**LEARNT, max_iter=50),
    "caviar, collapsed, learnt priors": ours(**LEARNT),
    "caviar, defaults, no collapsed passes": from_chance,
    "tomotopy, 400 sweeps": tomotopys(0.05, 400, every=5),
    "gensim, 10 passes": gensims(10, 256, decay=0.7, offset=10.0),
}
TRIED: Mapping[str, Fitting] = {
    **{
        f"tomotopy, 200 sweeps, eta {eta}, learnt every {every}": tomotopys(eta, 200, every=every)
        for eta in (0.01, 0.05, 0.1)
        for every in (5, 10)
    },
    "gensim, 10 passes, chunks of 2000": gensims(10, 2000),
    "gensim, 10 passes, chunks of 256": gensims(10, 256),
    "gensim, 10 passes, chunks of 256, slower rates": gensims(10, 256, decay=0.7, offset=10.0),
    "gensim, the same, words' prior even": gensims(10, 256, decay=0.7, offset=10.0, eta=None),
    "gensim, the same, both priors even": gensims(
        10, 256, decay=0.7, offset=10.0, eta=None, alpha="symmetric"
    ),
}
"""Settings of the others, of which those of ``BEST`` were chosen."""


def documents(counts: csr_array) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the words of each document, and how often it has each."""
    for first, last in zip(counts.indptr[:-1], counts.indptr[1:], strict=True):
        yield counts.indices[first:last], counts.data[first:last].astype(int)


def coherence(train: csr_array, topics: np.ndarray) -> float:
    """Return the mean coherence of topics; nan without gensim."""
    try:
        from gensim.corpora import Dictionary
        from gensim.models import CoherenceModel
    except ImportError:
        return float("nan")
    texts = [[str(word) for word in words] for words, _ in documents(train) if len(words)]
    shares = topics / topics.sum(axis=1, keepdims=True)
    likely = [[str(word) for word in np.argsort(-own)[:TOP]] for own in shares]
    # a window for each document: the words of a table of counts are in no order
    longest = max(map(len, texts))
    model = CoherenceModel(
        topics=likely,
        texts=texts,
        dictionary=Dictionary(texts),
        coherence="c_npmi",
        window_size=longest,
        processes=1,
    )
    return float(model.get_coherence())


def main() -> None:
    """Print a table for each collection of documents and number of topics."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpus", nargs="+", default=["ap", "poliblog5k"])
    parser.add_argument("--topics", nargs="+", type=int, default=[50, 100])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument(
        "--tuning", action="store_true", help="settings of the others, by other documents held out"
    )
    parser.add_argument("--fits", default="", help="only fits with these words in their name")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cv.LatentDirichletAllocation(2, max_iter=1).fit(np.eye(4))  # what the first fit loads is not timed
    fits = TRIED if arguments.tuning else BEST
    for name, corpus in corpora(arguments.data, arguments.corpus):
        for k in arguments.topics:
            tasks = [
                Task(*divided(corpus.counts, seed, arguments.tuning), k, seed, True)
                for seed in range(arguments.seeds)
            ]
            print(f"\n{name}, {k} topics: {tasks[0].train.shape[0]} documents to fit, medians (least, most)")
            print(f"{'':52}{'perplexity':>24}{'coherence':>12}{'seconds':>10}{'ELBO':>14}", flush=True)
            for own, fit in fits.items():
                if arguments.fits in own:
                    show(own, fit, tasks)


def show(name: str, fit: Fitting, tasks: list[Task]) -> None:
    """Print the row of one kind of fit, over the divisions."""
    rows = []
    for task in tasks:
        try:
            with threadpool_limits(1):
                found = fit(task)
        except ImportError as error:
            print(f"{name:52} left out: {error}")
            return
        words = task.perplexity(found.topics, found.prior)
        rows.append((words, coherence(task.train, found.topics), found.seconds, found.elbo))
    middle, least, most = np.median(rows, axis=0), np.min(rows, axis=0), np.max(rows, axis=0)
    told = f"{middle[0]:.0f} ({least[0]:.0f}, {most[0]:.0f})"
    print(f"{name:52}{told:>24}{middle[1]:12.3f}{middle[2]:10.1f}{middle[3]:14,.0f}", flush=True)


if __name__ == "__main__":
    main()
