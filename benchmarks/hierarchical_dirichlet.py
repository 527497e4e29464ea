"""Hierarchical Dirichlet processes beside bnpy: motion capture and Associated Press, by the same bound.

    python benchmarks/hierarchical_dirichlet.py --data DIR [--states 20] [--start FILE] [--topics 50] [--seeds 0 1 2]

``DIR`` has ``sequences/mocap6.npz`` and ``text/ap.ldac``. A fit is printed with its ELBO, and with what bnpy's bound of
it is: independent Beta shares, and the surrogate of Hughes, Kim and Sudderth (2015) for the normalisers of the
Dirichlets, the shares at their optimum given the rest of the posterior. ``FIGURES`` are those of bnpy's own code on the
same data and priors, from random examples (states) and random topics.
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import betaln, digamma, gammaln, logsumexp, softmax

import caviar as cv

FIGURES = {
    "mocap6, 20 states": -86798.47,
    "mocap6, 20 states, merges": -86665.30,
    "AP, 50 topics, 150 passes": -3685506.86,
}
"""ELBO (nats) of bnpy's own fits."""

GAMMA, ALPHA, START = 5.0, 0.5, 5.0


def shares_of(parameters: np.ndarray, gamma: float) -> tuple[np.ndarray, np.ndarray, float]:
    """Return means and expected logarithms of K + 1 weights, and minus their shares' divergence from the prior."""
    a, b = np.exp(np.clip(parameters.reshape(2, -1), -30.0, 30.0))
    log_v, log_left = digamma(a) - digamma(a + b), digamma(b) - digamma(a + b)
    left = np.concatenate(([1.0], np.cumprod(b / (a + b))))
    mean = np.append(a / (a + b), 1.0) * left
    logs = np.append(log_v, 0.0) + np.concatenate(([0.0], np.cumsum(log_left)))
    own = np.log(gamma) + (gamma - 1) * log_left - ((a - 1) * log_v + (b - 1) * log_left - betaln(a, b))
    return mean, logs, float(own.sum())


def best_shares(terms: Any, gamma: float, size: int) -> tuple[float, np.ndarray]:
    """Return the largest value of some terms of means and expected logarithms, plus the prior, and the shares there."""
    start = np.log(np.stack((np.full(size, 5.0), 5.0 * np.arange(size, 0, -1.0))))

    def minus(parameters: np.ndarray) -> float:
        mean, logs, own = shares_of(parameters, gamma)
        return -(terms(mean, logs) + own)

    found = minimize(minus, start.ravel(), method="L-BFGS-B", options={"maxiter": 500, "maxfun": 200_000})
    return -found.fun, found.x


def log_partition(concentration: np.ndarray) -> np.ndarray:
    """Return the logarithm of the Beta function of each row."""
    return gammaln(concentration).sum(axis=-1) - gammaln(concentration.sum(axis=-1))


def states(data: Path, n_states: int, start: Path | None, seeds: list[int]) -> None:
    """Fit the motion capture data, by itself or from probabilities of states (N, K), and print both bounds."""
    own = np.load(data / "sequences" / "mocap6.npz")
    rows = own["X"]
    starts = np.zeros(len(rows))
    starts[own["doc_range"][:-1]] = 1.0
    init: Any = "auto"
    if start is not None:
        init = {"s": np.load(start)["resp"]}
        n_states = init["s"].shape[1]
    for seed in seeds:
        began = time.process_time()
        posterior = stated(rows.shape[1], n_states).fit({"x": rows, "starts": starts}, seed=seed, init=init)
        seconds = time.process_time() - began
        print(
            f"mocap6, {n_states} states, seed {seed}: ELBO {posterior.elbo:.2f}, {seconds:.0f} s", flush=True
        )
        print(f"  by bnpy's bound {as_in_bnpy(posterior):.2f}", flush=True)


def stated(n_columns: int, n_states: int) -> cv.Model:
    """Return the model of bnpy's demonstration: diagonal Gaussians, one expected variance, no stickiness."""
    state, column, step = cv.Plate("state", n_states), cv.Plate("column", n_columns), cv.Plate("time")
    weights = cv.StickBreaking("weights", GAMMA, n_states)
    transition = cv.Dirichlet("transition", ALPHA * weights, plates=state)
    initial = cv.Dirichlet("initial", START * weights)
    s = cv.MarkovChain("s", initial, transition, along=step, starts=cv.Data("starts", plates=step))
    df = n_columns + 2
    emitted = cv.NormalGamma("emitted", 0.0, 1e-4, df / 2, (df - 2) / 2, plates=(state, column))
    return cv.Model(cv.Normal("x", emitted[s], plates=(step, column)))


def as_in_bnpy(posterior: cv.Posterior) -> float:
    """Return bnpy's bound with the states and emissions of a fit."""
    weights, rows = posterior["weights"], posterior["transition"].concentration
    first, size = posterior["initial"].concentration, len(rows)
    totals = np.append(np.full(size, ALPHA), START)
    counts = np.vstack((rows, first)) - totals[:, None] * weights.mean
    # the parts of the ELBO that differ: of Dirichlets at their optimum, the log-partitions and the prior's
    normalisers = sum(
        weights.expected_statistics[weights.statistics.index(f"gammaln({total!r} x + 1.0)")].sum() * times
        for total, times in ((ALPHA, size), (START, 1))
    )
    normalisers -= (size + 1) * weights.expected_statistics[0].sum()
    normalisers -= (size * np.log(totals) + gammaln(totals)).sum()
    prior = cv.families.StickBreaking(np.ones(size - 1), np.full(size - 1, GAMMA))
    divergence = float(weights.kl(type(weights).widened(prior)))
    own = log_partition(np.vstack((rows, first))).sum() - normalisers - divergence

    def terms(mean: np.ndarray, logs: np.ndarray) -> float:
        both = totals[:, None] * mean + np.hstack((counts, np.zeros((size + 1, 1))))
        return float(log_partition(both).sum() + size * np.log(totals).sum() + (size + 1) * logs.sum())

    return posterior.elbo - own + best_shares(terms, GAMMA, size)[0]


def read_ldac(path: Path, n_words: int) -> csr_array:
    """Return counts of words, documents x words."""
    rows, columns, counts = [], [], []
    lines = path.read_text().splitlines()
    for row, line in enumerate(lines):
        for pair in line.split()[1:]:
            word, count = pair.split(":")
            rows.append(row)
            columns.append(int(word))
            counts.append(float(count))
    return csr_array((counts, (rows, columns)), shape=(len(lines), n_words))


def topics(data: Path, n_topics: int, seeds: list[int]) -> None:
    """Fit the articles of the Associated Press, and print both bounds."""
    n_words = len((data / "text" / "ap.vocab.txt").read_text().splitlines())
    counts = read_ldac(data / "text" / "ap.ldac", n_words)
    for seed in seeds:
        began = time.process_time()
        lda = cv.LatentDirichletAllocation(
            n_topics,
            doc_topic_prior_type="dirichlet_process",
            doc_topic_prior=ALPHA,
            topic_word_prior=0.1,
            topic_concentration=10.0,
            random_state=seed,
            max_iter=150,
        ).fit(counts)
        used = int(((lda.components_ - 0.1).sum(axis=1) > 1).sum())
        seconds = time.process_time() - began
        print(f"AP, {n_topics} topics, {used} with words, seed {seed}: ELBO {lda.elbo_:.1f}, ", end="")
        print(f"{lda.n_iter_} passes, {seconds:.0f} s", flush=True)
        print(f"  by bnpy's bound {topics_as_in_bnpy(lda, counts):.1f}", flush=True)


def topics_as_in_bnpy(lda: cv.LatentDirichletAllocation, counts: csr_array) -> float:
    """Return bnpy's bound with the topics of a fit, documents and shares at their optimum."""
    components = lda.components_
    log_words = digamma(components) - digamma(components.sum(axis=1, keepdims=True))
    n_topics, n_docs = len(components), counts.shape[0]
    proportions = lda.transform(counts, normalize=False)
    mean = np.append(lda.topic_weights_, 0.0) * 0.999 + 0.001 / (n_topics + 1)
    bound = -np.inf
    for _ in range(3):
        of_words, concentration = documents(counts, log_words, ALPHA * mean, proportions)
        logs_of = digamma(concentration) - digamma(concentration.sum(axis=1, keepdims=True))
        own = of_words + log_partition(concentration).sum() - (concentration * logs_of).sum()
        summed = ALPHA * logs_of.sum(axis=0)

        def terms(mean: np.ndarray, logs: np.ndarray, summed: np.ndarray = summed) -> float:
            return float(summed @ mean + n_docs * (n_topics * np.log(ALPHA) + logs.sum()))

        value, parameters = best_shares(terms, 10.0, n_topics)
        bound, mean = own + value, shares_of(parameters, 10.0)[0]
        proportions = concentration[:, :-1]
    prior = cv.families.Dirichlet(np.full(components.shape, 0.1))
    return bound - float(cv.families.Dirichlet(components).kl(prior).sum())


def documents(
    counts: csr_array, log_words: np.ndarray, prior: np.ndarray, start: np.ndarray
) -> tuple[float, np.ndarray]:
    """Return what the words add to the bound, and the concentrations of the proportions, (D, K + 1), one by one."""
    total, found = 0.0, np.empty((counts.shape[0], len(prior)))
    for row in range(counts.shape[0]):
        some = slice(counts.indptr[row], counts.indptr[row + 1])
        words, n = log_words[:, counts.indices[some]], counts.data[some]
        own = prior + np.append(start[row], 0.0)
        logits = words
        for _ in range(100):
            logits = words + (digamma(own) - digamma(own.sum()))[:-1, None]
            after = prior + np.append(softmax(logits, axis=0) @ n, 0.0)
            change, own = np.abs(after - own).max(), after
            if change < 1e-3:
                break
        logits = words + (digamma(own) - digamma(own.sum()))[:-1, None]
        total += float(n @ logsumexp(logits, axis=0))
        found[row] = own
    return total, found


def main() -> None:
    """Fit both and print figures."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--data", type=Path, required=True)
    parser.add_argument("--states", type=int, default=20)
    parser.add_argument(
        "--start", type=Path, help="npz file with resp, probabilities of states to begin from"
    )
    parser.add_argument("--topics", type=int, default=50)
    parser.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    arguments = parser.parse_args()
    for name, value in FIGURES.items():
        print(f"bnpy, {name}: ELBO {value:.2f}")
    if arguments.states:
        states(arguments.data, arguments.states, arguments.start, arguments.seeds)
    if arguments.topics:
        topics(arguments.data, arguments.topics, arguments.seeds)


if __name__ == "__main__":
    main()
