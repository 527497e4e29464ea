"""Topics of text beside scikit-learn, gensim and tomotopy: seconds to the same perplexity of words held out.

    python benchmarks/lda.py [--data DIR] [--topics 50 100] [--corpus ap poliblog5k] [--quick]

Without ``--data`` the corpus is 500 posts of political blogs that caviar ships; with it, those of ``DIR/NAME.ldac`` and
``DIR/NAME.vocab.txt``. All get the same documents (nine in ten), and the same priors. The measure is document
completion: of the other documents each word is held out with probability one half, proportions are found from the rest
(by caviar for all, from the topics' concentrations), and the words held out are told from these. Lower is better.

Seconds are those of the processor, over all threads, so that other work on the machine does not count; wall-clock
seconds stand beside them. The last column is how often faster caviar was to a perplexity that is as good: seconds of
the row over those of caviar's first row that reaches it. gensim and tomotopy are in the extra ``bench``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import caviar as cv
from caviar.datasets import Corpus, load_political_blogs
from caviar.datasets._corpus import read_ldac
from caviar.engine.documents import start as start_of_documents

ALPHA, ETA = 0.1, 0.01
ROUNDS = start_of_documents._ROUNDS


@dataclass(frozen=True)
class Split:
    """Documents to fit, and of the others the words that are seen and those held out."""

    train: csr_array
    seen: csr_array
    rest: csr_array


@dataclass(frozen=True)
class Row:
    """One fit: seconds of the processor and of the clock, and the topics' concentrations."""

    name: str
    cpu: float
    wall: float
    topics: np.ndarray
    perplexity: float


def divided(counts: csr_array, seed: int = 0) -> Split:
    """Return a division that depends on the seed alone."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(counts.shape[0])
    n_test = counts.shape[0] // 10
    test = counts[order[:n_test]].astype(float)
    seen, rest = test.copy(), test.copy()
    seen.data = rng.binomial(test.data.astype(int), 0.5).astype(float)
    rest.data = test.data - seen.data
    return Split(counts[order[n_test:]].astype(float), seen, rest)


def perplexity(topics: np.ndarray, split: Split) -> float:
    """Return the perplexity of the words held out."""
    k, n_words = topics.shape
    model = cv.models.latent_dirichlet_allocation(k, n_words, concentration=ALPHA, word_concentration=ETA)
    held = {"topics": cv.families.Dirichlet(topics)}
    posterior = model.fit({"word": split.seen}, init=held, max_iter=0)
    theta = posterior.local({"word": split.seen})["proportions"].mean
    rest, beta = split.rest.tocoo(), topics / topics.sum(axis=1, keepdims=True)
    each = np.einsum("ek,ek->e", theta[rest.row], beta.T[rest.col])
    return float(np.exp(-(rest.data @ np.log(each)) / rest.data.sum()))


def timed(name: str, fit: Callable[[], Callable[[], np.ndarray]], split: Split) -> Row:
    """Return a fit with its seconds; ``fit`` returns a function that gives the topics, which is not timed."""
    wall, cpu = time.perf_counter(), time.process_time()
    topics_of = fit()
    cpu, wall = time.process_time() - cpu, time.perf_counter() - wall
    topics = np.asarray(topics_of(), dtype=float)
    return Row(name, cpu, wall, topics, perplexity(topics, split))


def ours(split: Split, k: int, quick: bool) -> Iterator[Row]:
    """Fits with ever more passes: rounds of the start, then ascent to the end."""

    def fitting(rounds: int, **arguments: object) -> Callable[[], Callable[[], np.ndarray]]:
        def fit() -> Callable[[], np.ndarray]:
            start_of_documents._ROUNDS = rounds
            lda = cv.LatentDirichletAllocation(
                k, doc_topic_prior=ALPHA, topic_word_prior=ETA, random_state=0, tol=0.0, **arguments
            )
            lda.fit(split.train)
            start_of_documents._ROUNDS = ROUNDS
            return lambda: lda.components_

        return fit

    for rounds in (4, 6, 8, 12):
        yield timed(f"caviar, {rounds + 1} passes", fitting(rounds, max_iter=0), split)
    for passes in (0, 10) if quick else (0, 10, 30):
        yield timed(f"caviar, {ROUNDS + 1 + passes} passes", fitting(ROUNDS, max_iter=passes), split)
    yield timed(
        "caviar, incremental, 5 more", fitting(ROUNDS, max_iter=5, learning_method="incremental"), split
    )


def sklearns(split: Split, k: int, quick: bool) -> Iterator[Row]:
    """Batch and online updates, with the settings that are its defaults but for the number of passes."""
    from sklearn.decomposition import LatentDirichletAllocation

    for method, passes in (("batch", 10), ("batch", 20 if quick else 40), ("online", 5), ("online", 10)):

        def fit(method: str = method, passes: int = passes) -> Callable[[], np.ndarray]:
            lda = LatentDirichletAllocation(
                k,
                doc_topic_prior=ALPHA,
                topic_word_prior=ETA,
                learning_method=method,
                max_iter=passes,
                random_state=0,
            ).fit(split.train)
            return lambda: lda.components_

        yield timed(f"scikit-learn, {method}, {passes} passes", fit, split)


def gensims(split: Split, k: int, quick: bool) -> Iterator[Row]:
    """LdaModel with its own chunks, and smaller ones."""
    from gensim.models import LdaModel

    train = split.train
    corpus = [
        [(int(word), float(count)) for word, count in zip(train.indices[a:b], train.data[a:b], strict=True)]
        for a, b in zip(train.indptr[:-1], train.indptr[1:], strict=True)
    ]
    names = {number: str(number) for number in range(train.shape[1])}
    for chunk, passes in ((2000, 1), (2000, 10), (256, 10)) if quick else ((2000, 1), (2000, 20), (256, 20)):

        def fit(chunk: int = chunk, passes: int = passes) -> Callable[[], np.ndarray]:
            lda = LdaModel(
                corpus,
                num_topics=k,
                id2word=names,
                alpha=ALPHA,
                eta=ETA,
                chunksize=chunk,
                passes=passes,
                eval_every=None,
                random_state=0,
            )
            return lambda: lda.state.get_lambda()

        yield timed(f"gensim, chunks of {chunk}, {passes} passes", fit, split)


def tomotopys(split: Split, k: int, quick: bool) -> Iterator[Row]:
    """Collapsed Gibbs sampling, on one thread and with its default workers."""
    import tomotopy

    train = split.train
    for workers, sweeps in ((1, 100), (1, 300), (0, 300)) if quick else ((1, 100), (1, 500), (0, 500)):
        lda = tomotopy.LDAModel(k=k, alpha=ALPHA, eta=ETA, seed=0)
        for a, b in zip(train.indptr[:-1], train.indptr[1:], strict=True):
            if b > a:
                lda.add_doc([str(w) for w in np.repeat(train.indices[a:b], train.data[a:b].astype(int))])

        def fit(
            lda: tomotopy.LDAModel = lda, sweeps: int = sweeps, workers: int = workers
        ) -> Callable[[], np.ndarray]:
            lda.train(sweeps, workers=workers)

            def topics() -> np.ndarray:
                found = np.zeros((k, train.shape[1]))
                words = [int(word) for word in lda.used_vocabs]
                for number, tokens in enumerate(lda.get_count_by_topics()):
                    own = np.zeros(train.shape[1])
                    own[words] = lda.get_topic_word_dist(number)
                    found[number] = np.maximum(own * (tokens + ETA * len(words)), ETA)
                return found

            return topics

        how = "one thread" if workers else "its workers"
        yield timed(f"tomotopy (Gibbs), {how}, {sweeps} sweeps", fit, split)


def show(rows: list[Row], words: tuple[str, ...]) -> None:
    """Print the table, and the words of the topics with most words."""
    print(f"{'':44}{'CPU s':>8}{'wall s':>8}{'perplexity':>12}{'caviar faster':>15}")
    mine = [row for row in rows if row.name.startswith("caviar")]
    for row in rows:
        as_good = min((own.cpu for own in mine if own.perplexity <= row.perplexity), default=None)
        faster = "-" if row in mine else "not reached" if as_good is None else f"{row.cpu / as_good:.1f} x"
        print(f"{row.name:44}{row.cpu:8.1f}{row.wall:8.1f}{row.perplexity:12.0f}{faster:>15}", flush=True)
    best = min(mine, key=lambda row: row.perplexity)
    for topic in best.topics[np.argsort(-best.topics.sum(axis=1))[:5]]:
        print("   ", " ".join(words[v] for v in np.argsort(-topic)[:9]))


def corpora(folder: Path | None, names: list[str]) -> Iterator[tuple[str, Corpus]]:
    """Yield the collections of documents by name."""
    if folder is None:
        yield "political blogs", load_political_blogs()
        return
    for name in names:
        words = tuple((folder / f"{name}.vocab.txt").read_text().split())
        yield name, Corpus(read_ldac((folder / f"{name}.ldac").read_text().splitlines(), len(words)), words)


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path)
    parser.add_argument("--corpus", nargs="+", default=["ap", "poliblog5k"])
    parser.add_argument("--topics", nargs="+", type=int, default=[50, 100])
    parser.add_argument("--quick", action="store_true", help="fewer passes of each")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    for name, corpus in corpora(arguments.data, arguments.corpus):
        split = divided(corpus.counts)
        d, v = split.train.shape
        print(f"\n{name}: {d} documents, {v} words, {split.train.nnz} counts, {split.train.sum():.0f} tokens")
        for k in arguments.topics:
            print(f"\n{k} topics")
            rows: list[Row] = []
            for library in (ours, sklearns, gensims, tomotopys):
                try:
                    rows += library(split, k, arguments.quick)
                except ImportError as error:
                    print(f"left out: {error}")
            show(rows, corpus.words)


if __name__ == "__main__":
    main()
