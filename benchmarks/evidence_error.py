"""Whether the error of the log evidence covers: 100 regressions of a binary outcome.

    python benchmarks/evidence_error.py [--cases 100] [--draws 1000] [--exact 100000]     # of diagnose
    python benchmarks/evidence_error.py --corrected                                       # of evidence

Logistic and probit regressions in turn, on 1 to 6 columns, 15 to 300 rows, and priors of three widths, from seeds. The
exact value is importance sampling with a Student-t at the mode, whose weights are bounded; its own error is in the last
column. A line for each case, then the shares within two errors: of the error that is given, and of the spread of the
weights alone, sd / mean / sqrt(draws), beside it. With --corrected they are those of importance sampling with the
covariance of linear response and of the second-order correction of the ELBO, each with its error.
"""

from __future__ import annotations

import argparse
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats
from scipy.special import expit, log_expit, log_ndtr

import caviar as cv


@dataclass(frozen=True)
class Case:
    """A regression: its kind, the precision of its prior, and its data."""

    kind: str
    precision: float
    data: dict[str, np.ndarray]

    def log_joint(self, w: np.ndarray) -> np.ndarray:
        """Return log p(y, w) of each row of w."""
        signed = self.data["X"] * (2 * self.data["y"][:, None] - 1)
        log_probability = log_expit if self.kind == "logistic" else log_ndtr
        prior = stats.norm.logpdf(w, 0, self.precision**-0.5).sum(axis=-1)
        return log_probability(w @ signed.T).sum(axis=-1) + prior

    def curvature(self, w: np.ndarray) -> np.ndarray:
        """Return minus the second derivatives of log p(y, w)."""
        signed = self.data["X"] * (2 * self.data["y"][:, None] - 1)
        eta = signed @ w
        if self.kind == "logistic":
            weights = expit(eta) * expit(-eta)
        else:
            ratio = np.exp(stats.norm.logpdf(eta) - log_ndtr(eta))
            weights = ratio * (eta + ratio)
        return signed.T @ (weights[:, None] * signed) + self.precision * np.eye(len(w))


def simulated(number: int) -> Case:
    """Return the case of a number."""
    rng = np.random.default_rng(1000 + number)
    kind = ("logistic", "probit")[number % 2]
    p, n = int(rng.integers(1, 7)), int(rng.choice([15, 30, 60, 120, 300]))
    precision = float(rng.choice([0.1, 1.0, 4.0]))
    X = rng.normal(size=(n, p))
    X[:, 0] = 1.0 if p > 1 else X[:, 0]
    noise = rng.logistic(size=n) if kind == "logistic" else rng.normal(size=n)
    y = (X @ rng.normal(0, precision**-0.5, p) + noise > 0).astype(float)
    return Case(kind, precision, {"X": X, "y": y})


def exact(case: Case, n_draws: int, seed: int) -> tuple[float, float]:
    """Return log p(y) and its standard error, by importance sampling with a Student-t at the mode."""
    p = case.data["X"].shape[1]
    mode = optimize.minimize(lambda w: -case.log_joint(w[None])[0], np.zeros(p), method="BFGS").x
    proposal = stats.multivariate_t(mode, 1.2 * np.linalg.inv(case.curvature(mode)), df=6)
    draws = proposal.rvs(n_draws, random_state=np.random.default_rng(seed)).reshape(n_draws, p)
    log_joint = np.concatenate([case.log_joint(part) for part in np.array_split(draws, 1 + n_draws // 5000)])
    log_weights = log_joint - proposal.logpdf(draws)
    weights = np.exp(log_weights - log_weights.max())
    value = float(log_weights.max() + np.log(weights.mean()))
    return value, float(weights.std() / weights.mean() / np.sqrt(n_draws))


def corrected(asked: argparse.Namespace) -> None:
    """Print the table of ``evidence``: importance sampling, and the ELBO to second order."""
    print(
        f"{'kind':9}{'p':>3}{'rows':>6}{'prior':>7}{'exact':>11}"
        f"{'ELBO off':>10}{'2nd off':>9}{'+-':>8}{'k':>7}{'off':>9}{'+-':>8}"
    )
    lines = []
    for number in range(asked.cases):
        case = simulated(number)
        n, p = case.data["X"].shape
        model = getattr(cv.models, f"{case.kind}_regression")(p, prior_precision=case.precision)
        posterior = model.fit(case.data, tol=1e-9, max_iter=5000)
        second = posterior.evidence(case.data, method="second_order")
        sample = posterior.importance_sample(case.data, n_draws=asked.draws, seed=number)
        value, _ = exact(case, asked.exact, number)
        offs = posterior.elbo - value, second.value - value, sample.log_evidence - value
        lines.append((*offs, second.error, sample.log_evidence_error, sample.pareto_k))
        print(
            f"{case.kind:9}{p:>3}{n:>6}{case.precision:>7}{value:>11.3f}{offs[0]:>10.3f}{offs[1]:>9.3f}{second.error:>8.3f}"
            f"{sample.pareto_k:>7.2f}{offs[2]:>9.3f}{sample.log_evidence_error:>8.3f}",
            flush=True,
        )
    elbo, second, sampled, of_second, of_sampled, k = np.array(lines).T
    within = [np.mean(abs(off) <= 2 * told) for off, told in ((second, of_second), (sampled, of_sampled))]
    print(f"\nELBO: median {np.median(elbo):.3f} nats")
    print(f"second order: median {np.median(abs(second)):.3f} nats off, within two errors {within[0]:.0%}")
    print(
        f"importance sampling: median {np.median(abs(sampled)):.3f} nats off, within two errors "
        f"{within[1]:.0%}; k up to 0.5 in {np.mean(k <= 0.5):.0%}, from 0.7 in {np.mean(k >= 0.7):.0%}"
    )


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--exact", type=int, default=100_000)
    parser.add_argument("--corrected", action="store_true")
    asked = parser.parse_args()
    if asked.corrected:
        corrected(asked)
        return
    print(
        f"{'kind':9}{'p':>3}{'rows':>6}{'prior':>7}{'k':>7}{'+-':>6}{'exact':>11}"
        f"{'off':>9}{'+-':>8}{'error of exact':>16}"
    )
    lines = []
    for number in range(asked.cases):
        case = simulated(number)
        n, p = case.data["X"].shape
        model = getattr(cv.models, f"{case.kind}_regression")(p, prior_precision=case.precision)
        found = model.fit(case.data).diagnose(case.data, n_draws=asked.draws, seed=number)
        value, error = exact(case, asked.exact, number)
        weights = np.exp(found.log_weights - found.log_weights.max())
        spread = float(weights.std() / weights.mean() / np.sqrt(asked.draws))
        off = found.log_evidence - value
        lines.append((found.pareto_k, off, found.log_evidence_error, spread, error))
        print(
            f"{case.kind:9}{p:>3}{n:>6}{case.precision:>7}{found.pareto_k:>7.2f}{found.pareto_k_error:>6.2f}{value:>11.3f}"
            f"{off:>9.3f}{found.log_evidence_error:>8.3f}{error:>16.4f}",
            flush=True,
        )
    k, off, told, spread, _ = np.array(lines).T
    print(
        f"\n{'k':>14}{'cases':>7}{'within two errors':>19}{'of the spread alone':>21}{'below the exact value':>23}"
    )
    for name, chosen in (
        ("up to 0.5", k <= 0.5),
        ("0.5 to 0.7", (k > 0.5) & (k < 0.7)),
        ("from 0.7", k >= 0.7),
    ):
        if chosen.any():
            shares = (abs(off) <= 2 * told, abs(off) <= 2 * spread, off < 0)
            print(
                f"{name:>14}{chosen.sum():>7}"
                + "".join(
                    f"{own[chosen].mean():>{w}.0%}" for own, w in zip(shares, (19, 21, 23), strict=True)
                )
            )


if __name__ == "__main__":
    main()
