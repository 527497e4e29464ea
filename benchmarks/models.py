"""Stated models beside BayesPy: seconds a sweep and the ELBO, with the same model, data, start and order of updates.

    python benchmarks/models.py [--repeats 3] [--data DIR] [--documents 40]

A sweep updates every factor once. Each of the two makes the same number of sweeps from the same start, so that
the bounds must agree; build is the time to state the model and make the first sweep, and "20 sweeps" how much faster a
model is stated and swept 20 times. Libraries that have one of these models, or nearly, are shown beside, without a
bound to compare. BayesPy and hmmlearn are in the extra ``bench``; hmmlearn is timed if it is installed.

Tables are simulated. Topics are fitted to 500 posts of political blogs that caviar ships, or to those of
``DIR/poliblog5k.ldac``. BayesPy makes an array of tokens x words x topics (16 GB for 100 posts), so it is given the
first ``--documents`` only, and caviar the same; the line below has all 500.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from scipy.sparse import csr_array

import caviar as cv
from caviar.datasets import load_political_blogs
from caviar.datasets._corpus import read_ldac

LEAST_SECONDS = 0.2
"""Of sweeps that are timed; fast ones are repeated."""

SWEEPS = 5
N_TOPICS, N_POSTS = 20, 500


@dataclass(frozen=True)
class Outcome:
    """Seconds a sweep, seconds to build and make the first sweep, and the bound after SWEEPS more."""

    sweep: float
    build: float
    elbo: float


def timed(make: Callable[[], Callable[[int], float]], repeats: int) -> Outcome:
    """Return the best of several runs; ``make`` states a model and returns what sweeps so often and gives the bound."""
    builds, each, elbo = [], [], np.nan
    make()(1)
    for _ in range(repeats):
        one = _seconds(lambda: make()(1))
        start = time.perf_counter()
        elbo = make()(1 + SWEEPS)
        more, sweeps = time.perf_counter() - start - one, SWEEPS
        while more < LEAST_SECONDS and sweeps < 1_000:
            sweeps *= 4
            more = _seconds(lambda sweeps=sweeps: make()(1 + sweeps)) - one
        each.append(more / sweeps)
        builds.append(one)
    return Outcome(min(each), min(builds), elbo)


def _seconds(function: Callable[[], object]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def fitting(model: cv.Model, data: dict, **options: object) -> Callable[[int], float]:
    """Return a function that makes so many plain sweeps of our loop."""
    return lambda sweeps: model.fit(data, max_iter=sweeps, tol=0, accelerate=False, **options).elbo  # type: ignore[arg-type]


def regression(rng: np.random.Generator) -> tuple[Callable, Callable]:
    """Linear regression with unknown noise: 100,000 rows, 50 columns."""
    X, w = rng.normal(size=(100_000, 50)), rng.normal(size=50)
    y = X @ w + rng.normal(size=len(X))

    def ours() -> Callable[[int], float]:
        obs = cv.Plate("obs")
        weights = cv.MultivariateNormal("w", np.zeros(50), 1e-3 * np.eye(50))
        tau = cv.Gamma("tau", 1e-3, 1e-3)
        leaf = cv.Normal("y", cv.dot(cv.Data("X", plates=obs), weights), tau, plates=obs)
        return fitting(cv.Model(leaf), {"X": X, "y": y}, init={"tau": 1.0}, order=["w", "tau"])

    def theirs() -> Callable[[int], float]:
        from bayespy.inference import VB
        from bayespy.nodes import Gamma, GaussianARD, SumMultiply

        weights = GaussianARD(0, 1e-3, shape=(50,))
        tau = Gamma(1e-3, 1e-3)
        tau.initialize_from_value(1.0)
        leaf = GaussianARD(SumMultiply("i,i", weights, X), tau)
        leaf.observe(y)
        return sweeping(VB(leaf, weights, tau))

    return ours, theirs


def principal_components(rng: np.random.Generator) -> tuple[Callable, Callable]:
    """Probabilistic PCA with ARD: 10,000 rows, 50 columns, 10 factors."""
    n_rows, n_columns, n_factors = 10_000, 50, 10
    X = rng.normal(size=(n_rows, n_factors)) @ rng.normal(size=(n_factors, n_columns))
    X += rng.normal(size=X.shape)
    start = rng.normal(size=(n_columns, n_factors))

    def ours() -> Callable[[int], float]:
        obs, column, factor = cv.Plate("obs"), cv.Plate("column", n_columns), cv.Plate("factor", n_factors)
        alpha = cv.Gamma("alpha", 1e-3, 1e-3, plates=factor)
        loadings = cv.MultivariateNormal("W", np.zeros(n_factors), cv.diagonal(alpha), plates=column)
        factors = cv.MultivariateNormal("z", np.zeros(n_factors), np.eye(n_factors), plates=obs)
        tau = cv.Gamma("tau", 1e-3, 1e-3)
        leaf = cv.Normal("x", cv.dot(loadings, factors), tau, plates=(obs, column))
        initial = {"W": start, "tau": 1.0, "alpha": 1.0}
        return fitting(cv.Model(leaf), {"x": X}, init=initial, order=["W", "alpha", "tau"])

    def theirs() -> Callable[[int], float]:
        from bayespy.inference import VB
        from bayespy.nodes import Gamma, GaussianARD, SumMultiply

        alpha, tau = Gamma(1e-3, 1e-3, plates=(n_factors,)), Gamma(1e-3, 1e-3)
        loadings = GaussianARD(0, alpha, shape=(n_factors,), plates=(n_columns,))
        factors = GaussianARD(0, 1, shape=(n_factors,), plates=(n_rows, 1))
        leaf = GaussianARD(SumMultiply("i,i", loadings, factors), tau)
        leaf.observe(X)
        loadings.initialize_from_value(start)
        alpha.initialize_from_value(np.ones(n_factors))
        tau.initialize_from_value(1.0)
        return sweeping(VB(leaf, loadings, alpha, tau, factors), first="last")

    return ours, theirs


def mixture(rng: np.random.Generator) -> tuple[Callable, Callable]:
    """Bayesian Gaussian mixture, full covariances: 20,000 rows, 8 columns, K = 16."""
    n_rows, n_columns, n_components = 20_000, 8, 16
    centres = 2 * rng.normal(size=(n_components, n_columns))
    X = centres[rng.integers(n_components, size=n_rows)] + rng.normal(size=(n_rows, n_columns))
    eye = np.eye(n_columns)

    def ours() -> Callable[[int], float]:
        model = cv.models.gaussian_mixture(n_columns, n_components, df=n_columns + 1.0)
        initial = {
            "mean": centres,
            "precision": np.broadcast_to(eye, (n_components, n_columns, n_columns)),
            "weights": np.full(n_components, 1 / n_components),
        }
        return fitting(model, {"x": X}, init=initial, order=["weights", "mean", "precision"])

    def theirs() -> Callable[[int], float]:
        from bayespy.inference import VB
        from bayespy.nodes import Categorical, Dirichlet, Gaussian, Mixture, Wishart

        weights = Dirichlet(np.ones(n_components))
        z = Categorical(weights, plates=(n_rows,))
        mean = Gaussian(np.zeros(n_columns), 0.01 * eye, plates=(n_components,))
        precision = Wishart(n_columns + 1.0, eye, plates=(n_components,))
        leaf = Mixture(z, Gaussian, mean, precision)
        leaf.observe(X)
        weights.initialize_from_value(np.full(n_components, 1 / n_components))
        mean.initialize_from_value(centres)
        precision.initialize_from_value(np.broadcast_to(eye, (n_components, n_columns, n_columns)))
        return sweeping(VB(leaf, weights, mean, precision, z), first="last")

    return ours, theirs


def hidden_markov(rng: np.random.Generator) -> tuple[Callable, Callable]:
    """Hidden Markov model: 10,000 steps, 10 states, 4 columns, full covariances."""
    n_steps, n_states, n_columns = 10_000, 10, 4
    centres, eye = 3 * rng.normal(size=(n_states, n_columns)), np.eye(n_columns)
    path = np.repeat(rng.integers(n_states, size=n_steps // 5), 5)
    X = centres[path] + rng.normal(size=(n_steps, n_columns))
    initial, transition = np.full(n_states, 1 / n_states), np.full((n_states, n_states), 1 / n_states)
    wide = np.broadcast_to(eye, (n_states, n_columns, n_columns))

    def ours() -> Callable[[int], float]:
        time, state = cv.Plate("time"), cv.Plate("state", n_states)
        first = cv.Dirichlet("initial", np.ones(n_states))
        rows = cv.Dirichlet("transition", np.ones(n_states), plates=state)
        mean = cv.MultivariateNormal("mean", np.zeros(n_columns), 0.01 * eye, plates=state)
        precision = cv.Wishart("precision", n_columns + 1.0, eye, plates=state)
        s = cv.MarkovChain("s", first, rows, along=time)
        leaf = cv.MultivariateNormal("x", mean[s], precision[s], plates=time)
        start = {"initial": initial, "transition": transition, "mean": centres, "precision": wide}
        order = ["initial", "transition", "mean", "precision"]
        return fitting(cv.Model(leaf), {"x": X}, init=start, order=order)

    def theirs() -> Callable[[int], float]:
        from bayespy.inference import VB
        from bayespy.nodes import CategoricalMarkovChain, Dirichlet, Gaussian, Mixture, Wishart

        first = Dirichlet(np.ones(n_states))
        rows = Dirichlet(np.ones(n_states), plates=(n_states,))
        s = CategoricalMarkovChain(first, rows, states=n_steps)
        mean = Gaussian(np.zeros(n_columns), 0.01 * eye, plates=(n_states,))
        precision = Wishart(n_columns + 1.0, eye, plates=(n_states,))
        leaf = Mixture(s, Gaussian, mean, precision)
        leaf.observe(X)
        first.initialize_from_value(initial)
        rows.initialize_from_value(transition)
        mean.initialize_from_value(centres)
        precision.initialize_from_value(wide)
        return sweeping(VB(leaf, first, rows, mean, precision, s), first="last")

    return ours, theirs


def topics(counts: csr_array, rng: np.random.Generator) -> tuple[Callable, Callable]:
    """Latent Dirichlet allocation with 20 topics."""
    n_documents, n_words = counts.shape
    start = rng.dirichlet(np.ones(n_words), N_TOPICS)
    even = np.full((n_documents, N_TOPICS), 1 / N_TOPICS)

    def ours() -> Callable[[int], float]:
        model = cv.models.latent_dirichlet_allocation(
            N_TOPICS, n_words, concentration=0.1, word_concentration=0.1
        )
        initial = {"proportions": even, "topics": start}
        return fitting(model, {"word": counts}, init=initial, order=["proportions", "topics"])

    def theirs() -> Callable[[int], float]:
        from bayespy.inference import VB
        from bayespy.nodes import Categorical, Dirichlet, Gate

        entries = counts.tocoo()
        words, labels = np.repeat(entries.col, entries.data), np.repeat(entries.row, entries.data)
        proportions = Dirichlet(np.full(N_TOPICS, 0.1), plates=(n_documents,))
        of_words = Dirichlet(np.full(n_words, 0.1), plates=(N_TOPICS,))
        z = Categorical(Gate(labels, proportions), plates=(len(words),))
        leaf = Categorical(Gate(z, of_words))
        leaf.observe(words)
        proportions.initialize_from_value(even)
        of_words.initialize_from_value(start)
        return sweeping(VB(leaf, proportions, of_words, z), first="last")

    return ours, theirs


def small(rng: np.random.Generator) -> tuple[Callable, Callable]:
    """Ten variables on 100 rows: four groups of a mean, two noise levels, a mixture of leaves."""
    ys = rng.normal(size=(4, 100))

    def ours() -> Callable[[int], float]:
        obs = cv.Plate("obs")
        leaves = []
        tau = [cv.Gamma(f"tau{i}", 1.0, 1.0) for i in range(2)]
        for i in range(4):
            mean = cv.Normal(f"m{i}", 0.0, 0.1)
            leaves.append(cv.Normal(f"y{i}", mean, tau[i % 2], plates=obs))
        initial = {"tau0": 1.0, "tau1": 1.0}
        order = ["m0", "m1", "m2", "m3", "tau0", "tau1"]
        return fitting(cv.Model(*leaves), {f"y{i}": y for i, y in enumerate(ys)}, init=initial, order=order)

    def theirs() -> Callable[[int], float]:
        from bayespy.inference import VB
        from bayespy.nodes import Gamma, GaussianARD

        tau = [Gamma(1.0, 1.0) for _ in range(2)]
        means, leaves = [], []
        for i in range(4):
            means.append(GaussianARD(0, 0.1))
            leaves.append(GaussianARD(means[i], tau[i % 2], plates=(100,)))
            leaves[i].observe(ys[i])
        for precision in tau:
            precision.initialize_from_value(1.0)
        return sweeping(VB(*leaves, *means, *tau))

    return ours, theirs


def sweeping(inference: object, first: str = "") -> Callable[[int], float]:
    """Return a function that makes so many sweeps of BayesPy, its last factor first where that is the local one."""

    def sweep(n_sweeps: int) -> float:
        nodes = inference.model  # type: ignore[attr-defined]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            if first:
                nodes[-1].update()
            bound = float("nan")
            # its own loop stops where the bound changes little; these are the same updates, and the same bound
            for _ in range(n_sweeps):
                for node in nodes:
                    node.update()
                bound = inference.compute_lowerbound()  # type: ignore[attr-defined]
        return float(bound)

    return sweep


def beside_regression() -> None:
    """Print scikit-learn's BayesianRidge, one precision for the weights and one for the noise, on the same rows."""
    from sklearn.linear_model import BayesianRidge

    rng = np.random.default_rng(0)
    X, w = rng.normal(size=(100_000, 50)), rng.normal(size=50)
    y = X @ w + rng.normal(size=len(X))
    seconds = min(_seconds(lambda: BayesianRidge(tol=1e-12).fit(X, y)) for _ in range(3))
    posterior = None

    def ours() -> None:
        nonlocal posterior
        posterior = cv.models.linear_regression(50).fit({"X": X, "y": y}, seed=0)

    own = min(_seconds(ours) for _ in range(3))
    print(f"  whole fits: caviar {1e3 * own:.0f} ms, scikit-learn's BayesianRidge {1e3 * seconds:.0f} ms")


def beside_topics(counts: csr_array) -> None:
    """Print ours on all posts, and scikit-learn's batch LDA, which sweeps documents until their proportions settle."""
    from sklearn.decomposition import LatentDirichletAllocation

    def theirs(max_iter: int) -> None:
        LatentDirichletAllocation(
            N_TOPICS, doc_topic_prior=0.1, topic_word_prior=0.1, max_iter=max_iter, random_state=0
        ).fit(counts)

    ours, _ = topics(counts, np.random.default_rng(0))
    own = timed(ours, 3)
    seconds = (_seconds(lambda: theirs(6)) - _seconds(lambda: theirs(1))) / 5
    print(
        f"  all {counts.shape[0]} posts, a sweep: caviar {1e3 * own.sweep:.1f} ms; an iteration of scikit-learn's "
        f"batch LDA (several sweeps): {1e3 * seconds:.0f} ms"
    )


def beside_hidden_markov() -> None:
    """Print hmmlearn's variational HMM on the same steps, if it is installed."""
    try:
        from hmmlearn.vhmm import VariationalGaussianHMM
    except ImportError:
        print("  hmmlearn is not installed")
        return
    rng = np.random.default_rng(0)
    centres = 3 * rng.normal(size=(10, 4))
    path = np.repeat(rng.integers(10, size=2_000), 5)
    X = centres[path] + rng.normal(size=(10_000, 4))
    for implementation in ("log", "scaling"):

        def fit(n_iter: int, implementation: str = implementation) -> None:
            VariationalGaussianHMM(
                10, "full", n_iter=n_iter, tol=-np.inf, random_state=0, implementation=implementation
            ).fit(X)

        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one, many = (min(_seconds(lambda n=n: fit(n)) for _ in range(3)) for n in (1, 31))
        print(
            f"  an iteration of hmmlearn's VariationalGaussianHMM ({implementation}): {1e3 * (many - one) / 30:.0f} ms"
        )


def blogs(folder: Path | None) -> csr_array:
    """Return the counts of 500 posts: those that caviar ships, or the first of a file in LDA-C format."""
    if folder is None:
        return load_political_blogs().counts
    name = folder / "poliblog5k.ldac"
    n_words = len((folder / "poliblog5k.vocab.txt").read_text(encoding="utf-8").splitlines())
    with name.open(encoding="utf-8") as lines:
        return read_ldac(lines, n_words)[:N_POSTS]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--data", type=Path, help="folder with poliblog5k.ldac and poliblog5k.vocab.txt")
    parser.add_argument("--documents", type=int, default=40, help="posts that BayesPy is given")
    arguments = parser.parse_args()
    counts = blogs(arguments.data)
    cases: dict[str, tuple[Callable, Callable[[], None] | None]] = {
        "regression 1e5 x 50": (regression, beside_regression),
        "PPCA 1e4 x 50, 10 factors": (principal_components, None),
        "Gaussian mixture 2e4 x 8, K = 16": (mixture, None),
        f"LDA {arguments.documents} posts, 20 topics": (
            partial(topics, counts[: arguments.documents]),
            partial(beside_topics, counts),
        ),
        "HMM 1e4 steps, 10 states": (hidden_markov, beside_hidden_markov),
        "ten variables, 100 rows": (small, None),
    }
    print(f"best of {arguments.repeats}; the bound after {1 + SWEEPS} sweeps; milliseconds\n")
    print(
        f"{'':34} {'caviar':>8} {'BayesPy':>8} {'faster':>7}   {'build':>7} {'BayesPy':>8} {'faster':>7}   "
        f"{'20 sweeps':>9}   ELBO, difference"
    )
    for name, (case, beside) in cases.items():
        ours, theirs = (timed(make, arguments.repeats) for make in case(rng=np.random.default_rng(0)))
        whole = (theirs.build + 19 * theirs.sweep) / (ours.build + 19 * ours.sweep)
        print(
            f"{name:34} {1e3 * ours.sweep:8.3f} {1e3 * theirs.sweep:8.2f} {theirs.sweep / ours.sweep:6.0f}x   "
            f"{1e3 * ours.build:7.1f} {1e3 * theirs.build:8.1f} {theirs.build / ours.build:6.1f}x   {whole:8.1f}x   "
            f"{ours.elbo:.4f}, {ours.elbo - theirs.elbo:.1e}",
            flush=True,
        )
        if beside is not None:
            beside()


if __name__ == "__main__":
    main()
