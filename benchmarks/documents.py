"""Topics of a million documents in a Parquet file: memory, the processor's time, and how near the truth they are.

    python benchmarks/documents.py [--folder DIR] [--documents 100000 300000 1000000] [--methods online batch gensim]

Documents are simulated from known topics with words of Zipf's frequencies and written in pieces, the words as texts.
Each fit has a process of its own. Memory is the peak of what was resident less what was resident after the import and
the fit of a tiny table. Seconds are those of the processor on one thread, of reading the file once and of the passes.
The ELBO is that of all documents, a token; ``truth`` is that of topics as sharp around the true ones as the tokens
allow. The perplexity is that of half of the words of 1,000 further documents given the other half. gensim reads the
same file in each pass, with the same batches, rates and priors.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array, load_npz, save_npz
from threadpoolctl import threadpool_limits

import caviar as cv

TOPICS, WORDS, LENGTH, ALPHA, ETA = 20, 5_000, 50, 0.1, 0.05
PIECE, BATCH = 20_000, 2_048


def simulated(rng: np.random.Generator, topics: np.ndarray, n_documents: int) -> csr_array:
    """Return counts of words of documents drawn from topics."""
    proportions, lengths = (
        rng.dirichlet(np.full(TOPICS, ALPHA), n_documents),
        rng.poisson(LENGTH, n_documents),
    )
    of_topics = np.vstack([rng.multinomial(n, p) for n, p in zip(lengths, proportions, strict=True)])
    owners, words = [], []
    for topic, shares in enumerate(topics):
        owners.append(np.repeat(np.arange(n_documents), of_topics[:, topic]))
        words.append(rng.choice(WORDS, len(owners[-1]), p=shares))
    places = np.concatenate(owners), np.concatenate(words)
    counts = csr_array((np.ones(len(places[0])), places), shape=(n_documents, WORDS))
    counts.sum_duplicates()
    return counts


def write(folder: Path, n_documents: int) -> Path:
    """Write documents to a Parquet file, and to others the true topics and the documents held out; once."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    path, rng = folder / f"{n_documents}.parquet", np.random.default_rng(0)
    zipf = 1 / (np.arange(WORDS) + 2.7)
    topics = rng.dirichlet(250 * zipf / zipf.sum() + 1e-3, TOPICS)
    if path.exists():
        return path
    whole = simulated(rng, topics, 1_000)
    seen = whole.copy()
    seen.data = rng.binomial(whole.data.astype(int), 0.5).astype(float)
    np.save(folder / "truth.npy", topics)
    for name, part in (("seen", seen), ("rest", csr_array(whole - seen))):
        part.eliminate_zeros()
        save_npz(folder / f"{name}.npz", part)
    names = np.array([f"word{number}" for number in range(WORDS)])
    schema = pa.schema({"words": pa.list_(pa.string()), "counts": pa.list_(pa.int32())})
    with pq.ParquetWriter(path, schema) as file:
        for start in range(0, n_documents, PIECE):
            counts = simulated(rng, topics, min(PIECE, n_documents - start))
            lists = [
                pa.ListArray.from_arrays(pa.array(counts.indptr, pa.int32()), pa.array(values))
                for values in (names[counts.indices], counts.data.astype(np.int32))
            ]
            file.write_table(pa.table(lists, schema=schema))
    return path


def vocabulary() -> list[str]:
    """Return the words."""
    return [f"word{number}" for number in range(WORDS)]


def perplexity(folder: Path, topics: np.ndarray) -> float:
    """Return the perplexity of the words held out, given concentrations of topics."""
    seen, rest = load_npz(folder / "seen.npz"), load_npz(folder / "rest.npz").tocoo()
    posterior = model().fit({"word": seen}, init={"topics": cv.families.Dirichlet(topics)}, max_iter=0)
    theta = posterior.local({"word": seen})["proportions"].mean
    beta = topics / topics.sum(axis=1, keepdims=True)
    each = np.einsum("ek,ek->e", theta[rest.row], beta.T[rest.col])
    return float(np.exp(-(rest.data @ np.log(each)) / rest.data.sum()))


def model() -> cv.Model:
    """Return the model."""
    return cv.models.latent_dirichlet_allocation(TOPICS, WORDS, concentration=ALPHA, word_concentration=ETA)


def resident() -> float:
    """Return what is resident now, in MB."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 1e6


class Stream:
    """The documents of a Parquet file as gensim wants them, read anew in each pass."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._numbers = {word: number for number, word in enumerate(vocabulary())}

    def __iter__(self) -> Iterator[list[tuple[int, int]]]:
        import pyarrow.parquet as pq

        for batch in pq.ParquetFile(self._path, pre_buffer=False).iter_batches(BATCH, use_threads=False):
            for words, counts in zip(batch.column(0).to_pylist(), batch.column(1).to_pylist(), strict=True):
                yield [(self._numbers[word], count) for word, count in zip(words, counts, strict=True)]

    def __len__(self) -> int:
        import pyarrow.parquet as pq

        return pq.ParquetFile(self._path).metadata.num_rows


def fit(folder: Path, path: Path, method: str, passes: int) -> dict[str, float]:
    """Return what a fit in this process takes, and what it finds."""
    prior = {"doc_topic_prior": ALPHA, "topic_word_prior": ETA}
    cv.LatentDirichletAllocation(2, max_iter=1, n_jobs=1).fit(np.eye(4))
    if method == "gensim":
        import_module("gensim.models")
    else:
        cv.scan_documents(sql="select ['a'] as words, [1] as counts union all select ['b'], [2]")
    before, begun, elbo = resident(), time.process_time(), float("nan")
    read = begun
    if method == "gensim":
        from gensim.models import LdaModel

        names = dict(enumerate(vocabulary()))
        settings = {"alpha": ALPHA, "eta": ETA, "decay": 0.7, "offset": 10.0, "eval_every": None}
        lda = LdaModel(
            Stream(path), TOPICS, names, chunksize=BATCH, passes=passes, random_state=0, **settings
        )
        topics = lda.state.get_lambda()
    else:
        documents = cv.scan_documents(path, vocabulary=vocabulary())
        read = time.process_time()
        if method == "truth":
            sharp = ETA + documents.total / TOPICS * np.load(folder / "truth.npy")
            init = {"topics": cv.families.Dirichlet(sharp)}
            schedule = cv.Stochastic(BATCH)
            found = model().fit({"word": documents}, init=init, max_iter=0, schedule=schedule, executor=1)
            topics, elbo = found["topics"].concentration, found.elbo / documents.total
        else:
            lda = cv.LatentDirichletAllocation(
                TOPICS,
                learning_method=method,
                batch_size=BATCH,
                max_iter=passes,
                random_state=0,
                n_jobs=1,
                uncertainty="mean_field",
                **prior,
            ).fit(documents)
            topics, elbo = lda.components_, lda.elbo_ / documents.total
    ended = time.process_time()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6 - before
    return {
        "peak": peak,
        "read": read - begun,
        "fit": ended - read,
        "elbo": elbo,
        "perplexity": perplexity(folder, topics),
    }


def main() -> None:
    """Print a row for each fit."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--folder", type=Path, default=Path(tempfile.gettempdir()) / "caviar-documents")
    parser.add_argument("--documents", nargs="+", type=int, default=[100_000, 300_000, 1_000_000])
    parser.add_argument("--methods", nargs="+", default=["truth", "online", "batch", "gensim"])
    parser.add_argument("--passes", type=int, default=1)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    if arguments.child:
        with threadpool_limits(1):
            own = (arguments.folder, Path(arguments.child), arguments.methods[0], arguments.passes)
            print(json.dumps(fit(*own)))
        return
    arguments.folder.mkdir(parents=True, exist_ok=True)
    print(f"{TOPICS} topics, {WORDS:,} words, documents of {LENGTH} words, {arguments.passes} passes")
    head = f"{'peak MB':>9}{'read: us a doc':>16}{'fit: us a doc':>15}{'ELBO a token':>14}{'perplexity':>12}"
    print(f"{'documents':>12}  {'method':10}{head}")
    for n_documents in arguments.documents:
        path = write(arguments.folder, n_documents)
        for method in arguments.methods:
            command = [sys.executable, __file__, "--folder", str(arguments.folder), "--child", str(path)]
            command += ["--methods", method, "--passes", str(arguments.passes)]
            out = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            each = [1e6 * out[name] / n_documents for name in ("read", "fit")]
            told = f"{out['peak']:9.0f}{each[0]:16.1f}{each[1]:15.1f}{out['elbo']:14.4f}{out['perplexity']:12.1f}"
            print(f"{n_documents:12,}  {method:10}{told}", flush=True)


if __name__ == "__main__":
    main()
