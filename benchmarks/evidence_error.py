"""Whether the error of the log evidence covers: 100 regressions of a binary outcome.

    python benchmarks/evidence_error.py [--cases 100] [--draws 1000] [--exact 100000]     # of diagnose
    python benchmarks/evidence_error.py --corrected                                       # of evidence
    python benchmarks/evidence_error.py --mixtures                                        # of mixtures

Logistic and probit regressions in turn, on 1 to 6 columns, 15 to 300 rows, and priors of three widths, from seeds. The
exact value is importance sampling with a Student-t at the mode, whose weights are bounded; its own error is in the last
column. A line for each case, then the shares within two errors: of the error that is given, and of the spread of the
weights alone, sd / mean / sqrt(draws), beside it. With --corrected they are those of importance sampling with the
covariance of linear response and of the second-order correction of the ELBO, each with its error. With --mixtures they
are of mixtures of two Normals with 10 to 16 rows and prior means that tell the components apart, whose exact evidence
is the sum over all labels of all rows: what other modes hold is missing in both.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy import optimize, stats
from scipy.special import expit, gammaln, log_expit, log_ndtr, logsumexp

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


@dataclass(frozen=True)
class Mixture:
    """A mixture of two Normals with known precisions: the distance of the prior means, and its rows."""

    distance: float
    data: dict[str, np.ndarray]

    @property
    def means(self) -> np.ndarray:
        """Prior means of the components; their precision is 1, as that of the rows; weights have Dirichlet(2)."""
        return np.array([-0.5, 0.5]) * self.distance

    def model(self) -> cv.Model:
        """Return the model."""
        obs, component = cv.Plate("obs"), cv.Plate("component", 2)
        z = cv.Categorical("z", cv.Dirichlet("weights", [2.0, 2.0]), plates=obs)
        mean = cv.Normal("mean", self.means, 1.0, plates=component)
        return cv.Model(cv.Normal("x", mean[z], 1.0, plates=obs))

    def log_evidence(self) -> float:
        """Return log p(x): the sum over the labels of all rows, the rest in closed form."""
        x = self.data["x"]
        n = len(x)
        ones = (np.arange(2**n)[:, None] >> np.arange(n)) & 1
        total = gammaln(4.0) - gammaln(n + 4.0) - 2.0 * gammaln(2.0)
        for labels, at in zip((1 - ones, ones), self.means, strict=True):
            count, moved = labels.sum(axis=1), labels @ (x - at)
            squares = labels @ (x - at) ** 2 - moved**2 / (1.0 + count)
            total = (
                total + gammaln(count + 2.0) - 0.5 * (squares + np.log1p(count) + count * np.log(2.0 * np.pi))
            )
        return float(logsumexp(total))


def simulated_mixture(number: int) -> Mixture:
    """Return the mixture of a number."""
    rng = np.random.default_rng(2000 + number)
    n, distance = int(rng.integers(10, 17)), float(rng.choice([2.0, 4.0, 6.0]))
    mixture = Mixture(distance, {})
    z = (rng.random(n) < rng.beta(2, 2)).astype(int)
    mean = mixture.means + rng.normal(size=2)
    return Mixture(distance, {"x": mean[z] + rng.normal(size=n)})


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


def of_regressions(asked: argparse.Namespace) -> Iterator[tuple[str, cv.Model, dict[str, np.ndarray], float]]:
    """Yield name, model, data and exact log evidence of each regression."""
    for number in range(asked.first, asked.first + asked.cases):
        case = simulated(number)
        n, p = case.data["X"].shape
        model = getattr(cv.models, f"{case.kind}_regression")(p, prior_precision=case.precision)
        name = f"{case.kind:9}{p:>3}{n:>6}{case.precision:>7}"
        yield name, model, case.data, exact(case, asked.exact, number)[0]


def of_mixtures(asked: argparse.Namespace) -> Iterator[tuple[str, cv.Model, dict[str, np.ndarray], float]]:
    """Yield name, model, data and exact log evidence of each mixture."""
    for number in range(asked.first, asked.first + asked.cases):
        case = simulated_mixture(number)
        name = f"{'mixture':9}{2:>3}{len(case.data['x']):>6}{case.distance:>7}"
        yield name, case.model(), case.data, case.log_evidence()


def corrected(
    cases: Iterator[tuple[str, cv.Model, dict[str, np.ndarray], float]], asked: argparse.Namespace
) -> None:
    """Print the table of ``evidence``: importance sampling, and the ELBO to second order."""
    print(
        f"{'kind':9}{'p':>3}{'rows':>6}{'prior':>7}{'exact':>11}"
        f"{'ELBO off':>10}{'2nd off':>9}{'+-':>8}{'k':>7}{'off':>9}{'+-':>8}"
    )
    lines = []
    for number, (name, model, data, value) in enumerate(cases):
        posterior = model.fit(data, seed=0, tol=1e-9, max_iter=5000)
        second = posterior.evidence(data, method="second_order")
        sample = posterior.importance_sample(data, n_draws=asked.draws, seed=number)
        offs = posterior.elbo - value, second.value - value, sample.log_evidence - value
        lines.append((*offs, second.error, sample.log_evidence_error, sample.pareto_k))
        print(
            f"{name}{value:>11.3f}{offs[0]:>10.3f}{offs[1]:>9.3f}{second.error:>8.3f}"
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
    parser.add_argument(
        "--first", type=int, default=0, help="seed of the first case, for cases that were not seen before"
    )
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--exact", type=int, default=100_000)
    parser.add_argument("--corrected", action="store_true")
    parser.add_argument("--mixtures", action="store_true")
    asked = parser.parse_args()
    if asked.corrected or asked.mixtures:
        corrected(of_mixtures(asked) if asked.mixtures else of_regressions(asked), asked)
        return
    print(
        f"{'kind':9}{'p':>3}{'rows':>6}{'prior':>7}{'k':>7}{'+-':>6}{'exact':>11}"
        f"{'off':>9}{'+-':>8}{'error of exact':>16}"
    )
    lines = []
    for number in range(asked.first, asked.first + asked.cases):
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
