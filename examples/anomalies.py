"""Anomalies: a density as the last step of a scikit-learn pipeline, and a threshold that means something.

What is improbable under the predictive density is an anomaly. The mixture is fitted to rows that hold some anomalies
themselves, of which it is not told; ``is_outlier(X, rate=0.01)`` marks rows less probable than all but 1% of those
that the fitted density would make. Against the usual detectors the scores are held by their average precision.

    python examples/anomalies.py
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np
from sklearn.ensemble import IsolationForest
from sklearn.metrics import average_precision_score
from sklearn.neighbors import LocalOutlierFactor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import caviar as cv


def simulated(n_rows: int) -> tuple[np.ndarray, np.ndarray]:
    """Return readings of five sensors in three states of a machine, and which 2% of them are faults.

    A fault breaks the relation between sensors; each by itself reads nothing unusual.
    """
    rng = np.random.default_rng(0)
    loadings, states = rng.normal(size=(3, 2, 5)), rng.normal(0, 3, size=(3, 5))
    state = rng.integers(0, 3, n_rows)
    X = states[state] + np.einsum("nf,nfd->nd", rng.normal(size=(n_rows, 2)), loadings[state])
    X += rng.normal(0, 0.3, X.shape)
    faulty = rng.random(n_rows) < 0.02
    for column in range(2):
        X[faulty, column] = rng.permutation(X[:, column])[: faulty.sum()]
    return X * [1, 10, 100, 0.1, 5], faulty


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pictures", type=Path, default=Path(__file__).parent / "pictures")
    arguments.add_argument("--small", action="store_true", help="600 rows instead of 6,000")
    options = arguments.parse_args()
    X, faulty = simulated(600 if options.small else 6_000)

    pipeline = make_pipeline(StandardScaler(), cv.BayesianGaussianMixture("auto", random_state=0)).fit(X)
    scaler, mixture = pipeline
    scores = {
        "caviar mixture": -pipeline.score_samples(X),
        "isolation forest": -IsolationForest(random_state=0).fit(X).score_samples(X),
        "local outlier factor": -LocalOutlierFactor(35).fit(scaler.transform(X)).negative_outlier_factor_,
    }
    print(f"{mixture.n_components_} components; {faulty.sum()} of {len(X)} rows are faults\n")
    print("detector               average precision   faults among the first")
    for name, score in scores.items():
        first = np.argsort(-score)[: faulty.sum()]
        print(f"{name:22} {average_precision_score(faulty, score):17.3f} {faulty[first].mean():24.0%}")
    marked = mixture.is_outlier(scaler.transform(X), rate=0.02, random_state=0)
    false, found = marked[~faulty].mean(), marked[faulty].mean()
    print(f"\nmarked at a rate of 2%: {false:.2%} of the sound rows, {found:.0%} of the faults")

    plt.style.use("caviar.plot.caviar")
    figure, axes = plt.subplots(figsize=(7.2, 3.4))
    score = scores["caviar mixture"]
    bins = np.linspace(*np.percentile(score, [0, 99.8]), 60)
    clipped = np.minimum(score, bins[-1])
    axes.hist(clipped[~faulty], bins, color="C0", label="sound")
    axes.hist(clipped[faulty], bins, color="C1", label="faults")
    axes.axvline(score[marked].min(), color="0.3", ls="--", lw=1.2, label="threshold, a rate of 2%")
    axes.set(xlabel="minus log density (nats)", ylabel="rows", yscale="log")
    axes.legend()
    figure.savefig(options.pictures / "anomalies.png")


if __name__ == "__main__":
    main()
