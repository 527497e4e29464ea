"""Topics of text beside scikit-learn, gensim and tomotopy: seconds to the same perplexity of words held out.

    python benchmarks/lda.py [--data DIR] [--corpus ap poliblog5k] [--topics 50 100] [--seeds 3] [--cpu] [--tuning]

Without ``--data`` the corpus is 500 posts of political blogs that caviar ships; with it, those of ``DIR/NAME.ldac`` and
``DIR/NAME.vocab.txt``, or of ``DIR/text``. All get the same documents and priors, and otherwise each its own defaults,
but for what a row names. The measure is document completion: of the documents held out, a tenth of all, each word is
put aside with probability one half, proportions are found from the rest (by caviar for all, from the topics'
concentrations), and the words put aside are told from these. Lower is better.

Settings of caviar were chosen with ``--tuning``, which takes none but documents of even number; without it, documents
held out are all of odd number.

Each library is followed along its passes. What is measured on the way is not timed, except that caviar is fitted anew
for each number of passes, and its seconds are those of the whole call. The last column is how often faster caviar is:
the seconds of the row over those at which caviar's own row, with its defaults, is first as good; the median over the
seeds, which draw the documents held out and the starts. ``--cpu`` holds every library to one thread and counts the
processor's seconds, which other programs on the machine disturb less. gensim and tomotopy are in the extra ``bench``.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, vstack
from threadpoolctl import threadpool_limits

import caviar as cv
from caviar.datasets import Corpus, load_political_blogs
from caviar.datasets._corpus import read_ldac

ALPHA, ETA = 0.1, 0.01
DEFAULT = "caviar"


@dataclass(frozen=True)
class Task:
    """Documents to fit, of the others the words that are seen and those held out, and how to fit them."""

    train: csr_array
    seen: csr_array
    rest: csr_array
    n_topics: int
    seed: int
    one_thread: bool

    @property
    def clock(self) -> Callable[[], float]:
        """Seconds of the processor or of the clock."""
        return time.process_time if self.one_thread else time.perf_counter

    def perplexity(self, topics: np.ndarray, prior: float | np.ndarray = ALPHA) -> float:
        """Return the perplexity of the words held out, given topics and the concentration of proportions."""
        k, n_words = topics.shape
        model = cv.models.latent_dirichlet_allocation(k, n_words, concentration=prior, word_concentration=ETA)
        held = {"topics": cv.families.Dirichlet(topics)}
        posterior = model.fit({"word": self.seen}, init=held, max_iter=0)
        theta = posterior.local({"word": self.seen})["proportions"].mean
        rest, beta = self.rest.tocoo(), topics / topics.sum(axis=1, keepdims=True)
        each = np.einsum("ek,ek->e", theta[rest.row], beta.T[rest.col])
        return float(np.exp(-(rest.data @ np.log(each)) / rest.data.sum()))


@dataclass(frozen=True)
class Point:
    """Where a fit stands after some passes; ``topics`` are concentrations."""

    name: str
    passes: int
    seconds: float
    perplexity: float
    topics: np.ndarray


class Track:
    """The points of one fit, for which the clock stands still while they are measured."""

    def __init__(self, task: Task, name: str, wanted: tuple[int, ...]) -> None:
        self.task, self.name, self.wanted = task, name, wanted
        self.points: list[Point] = []
        self._start = task.clock()

    def note(self, passes: int, topics: Callable[[], np.ndarray]) -> None:
        """Note where the fit stands after so many passes, where that is wanted."""
        now = self.task.clock()
        if passes in self.wanted:
            found = np.array(topics(), dtype=float)
            point = Point(self.name, passes, now - self._start, self.task.perplexity(found), found)
            self.points.append(point)
        self._start += self.task.clock() - now


def ours(task: Task) -> Iterator[list[Point]]:
    """Fits with the defaults, and with the other schedules, each anew for each number of passes."""
    settings = {DEFAULT: {}, "caviar, incremental": {"learning_method": "incremental"}}
    settings["caviar, online"] = {"learning_method": "online"}
    for name, arguments in settings.items():
        points: list[Point] = []
        for passes in (2, 5, 10) if arguments else (0, 1, 2, 4, 8, 15, 30, 100):
            path = Track(task, name, (passes,))
            lda = cv.LatentDirichletAllocation(
                task.n_topics,
                doc_topic_prior=ALPHA,
                topic_word_prior=ETA,
                random_state=task.seed,
                max_iter=passes,
                n_jobs=1 if task.one_thread else None,
                **arguments,
            ).fit(task.train)
            path.note(passes, lambda lda=lda: lda.components_)
            points += path.points
            if lda.converged_:
                break
        yield points


def sklearns(task: Task) -> Iterator[list[Point]]:
    """Batch and online updates, with the settings that are its defaults."""
    from sklearn.decomposition import LatentDirichletAllocation

    n_docs, steps = task.train.shape[0], 0
    for method, wanted in (("batch", (5, 10, 20)), ("online", (1, 2, 5, 10))):
        path = Track(task, f"scikit-learn, {method}", wanted)
        steps = 0

        class Followed(LatentDirichletAllocation):
            """Told of after each pass."""

            def _em_step(self, X, total_samples, batch_update, parallel=None, path=path):
                nonlocal steps
                super()._em_step(X, total_samples, batch_update, parallel)
                steps += X.shape[0]
                if steps % n_docs == 0:
                    path.note(steps // n_docs, lambda: self.components_)

        Followed(
            task.n_topics,
            doc_topic_prior=ALPHA,
            topic_word_prior=ETA,
            learning_method=method,
            max_iter=wanted[-1],
            random_state=task.seed,
        ).fit(task.train)
        yield path.points


def gensims(task: Task) -> Iterator[list[Point]]:
    """LdaModel with its own chunks, with smaller ones, and with the rates of scikit-learn's online updates.

    Its own rates fall so slowly that the topics follow the last chunks: words that these lack are nearly forgotten.
    """
    from gensim.models import LdaModel

    train = task.train
    pairs = zip(train.indptr[:-1], train.indptr[1:], strict=True)
    texts = [list(zip(train.indices[a:b].tolist(), train.data[a:b].tolist(), strict=True)) for a, b in pairs]
    names = {number: str(number) for number in range(train.shape[1])}
    slower = {"decay": 0.7, "offset": 10.0}
    for chunk, rates, wanted in ((2000, {}, (1, 5, 10)), (256, {}, (1, 5, 10)), (256, slower, (1, 5, 10))):
        path, met = Track(task, f"gensim, {chunk}{', slower rates' * bool(rates)}", wanted), 0

        class Followed(LdaModel):
            """Told of after each pass."""

            def do_mstep(self, rho, other, extra_pass=False, path=path):
                nonlocal met
                met += other.numdocs
                super().do_mstep(rho, other, extra_pass)
                if met % len(texts) == 0:
                    path.note(met // len(texts), self.state.get_lambda)

        Followed(
            texts,
            num_topics=task.n_topics,
            id2word=names,
            alpha=ALPHA,
            eta=ETA,
            chunksize=chunk,
            passes=wanted[-1],
            eval_every=None,
            random_state=task.seed,
            **rates,
        )
        yield path.points


def tomotopys(task: Task) -> Iterator[list[Point]]:
    """Collapsed Gibbs sampling; taking the documents up is part of the first sweep."""
    import tomotopy

    train, wanted = task.train, (1, 50, 100, 200)
    path = Track(task, "tomotopy (Gibbs)", wanted)
    lda = tomotopy.LDAModel(k=task.n_topics, alpha=ALPHA, eta=ETA, seed=task.seed)
    for a, b in zip(train.indptr[:-1], train.indptr[1:], strict=True):
        if b > a:
            lda.add_doc([str(w) for w in np.repeat(train.indices[a:b], train.data[a:b].astype(int))])

    def topics() -> np.ndarray:
        found = np.full((task.n_topics, train.shape[1]), ETA)
        words = [int(word) for word in lda.used_vocabs]
        for number, tokens in enumerate(lda.get_count_by_topics()):
            found[number, words] = lda.get_topic_word_dist(number) * (tokens + ETA * len(words))
        return found

    for before, after in zip((0, *wanted), wanted, strict=False):
        lda.train(after - before, workers=1 if task.one_thread else 0)
        path.note(after, topics)
    yield path.points


def divided(counts: csr_array, seed: int, tuning: bool) -> tuple[csr_array, csr_array, csr_array]:
    """Return documents to fit, and of others the words that are seen and those held out; see the top."""
    rng = np.random.default_rng([seed, tuning])
    even, odd = counts[::2].astype(float), counts[1::2].astype(float)
    candidates, others = (even, odd[:0]) if tuning else (odd, even)
    order = rng.permutation(candidates.shape[0])
    n_test = (candidates.shape[0] + others.shape[0]) // 10
    test, own = candidates[order[:n_test]], candidates[order[n_test:]]
    train = csr_array(vstack([own, others]))[rng.permutation(own.shape[0] + others.shape[0])]
    seen, rest = test.copy(), test.copy()
    seen.data = rng.binomial(test.data.astype(int), 0.5).astype(float)
    rest.data = test.data - seen.data
    for part in (seen, rest):
        part.eliminate_zeros()
    return train, seen, rest


def show(seeds: list[list[Point]], words: tuple[str, ...]) -> None:
    """Print the points of all fits, medians over the seeds, and topics with most words."""
    print(f"{'':28}{'passes':>7}{'seconds':>9}{'perplexity':>12}   caviar faster (median; least, most)")
    for name, passes in dict.fromkeys((point.name, point.passes) for points in seeds for point in points):
        rows, ratios = [], []
        for points in seeds:
            mine = [point for point in points if point.name == DEFAULT]
            for row in (point for point in points if (point.name, point.passes) == (name, passes)):
                rows.append(row)
                reached = (own.seconds for own in mine if own.perplexity <= row.perplexity)
                ratios.append(row.seconds / min(reached, default=np.inf))
        seconds = np.median([row.seconds for row in rows])
        level = np.median([row.perplexity for row in rows])
        told = [
            f"{ratio:.1f}" if ratio else "not reached"
            for ratio in (np.median(ratios), min(ratios), max(ratios))
        ]
        faster = "" if name == DEFAULT else f"{told[0]:>8} ({told[1]}, {told[2]})"
        print(f"{name:28}{passes:7}{seconds:9.2f}{level:12.0f}   {faster}")
    last = ([point for point in seeds[0] if point.name == DEFAULT] or seeds[0])[-1].topics
    for topic in last[np.argsort(-last.sum(axis=1))[:5]]:
        print("   ", " ".join(words[v] for v in np.argsort(-topic)[:9]), flush=True)


def corpora(folder: Path | None, names: list[str]) -> Iterator[tuple[str, Corpus]]:
    """Yield the collections of documents by name."""
    if folder is None:
        yield "political blogs", load_political_blogs()
        return
    folder = folder / "text" if (folder / "text").is_dir() else folder
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
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--cpu", action="store_true", help="one thread for each library, processor's seconds")
    parser.add_argument("--tuning", action="store_true", help="the documents that settings were chosen by")
    parser.add_argument("--libraries", nargs="+", default=["caviar", "scikit-learn", "gensim", "tomotopy"])
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    cv.LatentDirichletAllocation(2, max_iter=1).fit(np.eye(4))  # what the first fit loads is not timed
    known = dict(zip(parser.get_default("libraries"), (ours, sklearns, gensims, tomotopys), strict=True))
    for name, corpus in corpora(arguments.data, arguments.corpus):
        for k in arguments.topics:
            seeds = []
            tasks = [
                Task(*divided(corpus.counts, seed, arguments.tuning), k, seed, arguments.cpu)
                for seed in range(arguments.seeds)
            ]
            for task in tasks:
                points: list[Point] = []
                for library in arguments.libraries:
                    try:
                        with threadpool_limits(1) if arguments.cpu else nullcontext():
                            points += [point for path in known[library](task) for point in path]
                    except ImportError as error:
                        print(f"left out: {error}")
                seeds.append(points)
            train = tasks[-1].train
            d, v = train.shape
            print(f"\n{name}, {k} topics: {d} documents to fit, {v} words, {train.nnz} counts")
            show(seeds, corpus.words)


if __name__ == "__main__":
    main()
