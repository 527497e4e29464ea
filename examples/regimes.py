"""Regimes of a time series: calm and turbulent times of daily returns, found by a hidden Markov model.

Returns have almost the same mean every day; what changes is their variance, and it changes seldom. A Markov chain
chooses between regimes, each with a mean and a precision of its own (a Normal-Gamma); the prior of the transitions
says that regimes last. The number of regimes is compared by the ELBO, and with the mixture that ignores time. The
series is simulated, so that the regimes found can be held against the true ones.

    python examples/regimes.py
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import caviar as cv


def regime_model(n_regimes: int) -> cv.Model:
    day, regime = cv.Plate("day"), cv.Plate("regime", n_regimes)
    initial = cv.Dirichlet("initial", np.ones(n_regimes))
    transition = cv.Dirichlet("transition", 0.5 + 20 * np.eye(n_regimes), plates=regime)
    s = cv.MarkovChain("s", initial, transition, along=day)
    theta = cv.NormalGamma("theta", mean=0.0, mean_precision=1.0, shape=1.0, rate=1.0, plates=regime)
    return cv.Model(cv.Normal("x", theta[s], plates=day))


def mixture_model(n_regimes: int) -> cv.Model:
    day, regime = cv.Plate("day"), cv.Plate("regime", n_regimes)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(n_regimes)), plates=day)
    theta = cv.NormalGamma("theta", mean=0.0, mean_precision=1.0, shape=1.0, rate=1.0, plates=regime)
    return cv.Model(cv.Normal("x", theta[z], plates=day))


def simulated(n_days: int) -> tuple[np.ndarray, np.ndarray]:
    """Return daily returns in percent, and the regime of each day: calm, nervous, crash."""
    rng = np.random.default_rng(3)
    stay = np.array([[0.99, 0.009, 0.001], [0.015, 0.975, 0.01], [0.01, 0.04, 0.95]])
    regime = [0]
    for _ in range(n_days - 1):
        regime.append(int(rng.choice(3, p=stay[regime[-1]])))
    regime = np.array(regime)
    return rng.normal(np.array([0.06, 0.0, -0.3])[regime], np.array([0.5, 1.2, 3.2])[regime]), regime


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pictures", type=Path, default=Path(__file__).parent / "pictures")
    arguments.add_argument("--small", action="store_true", help="400 days, one start")
    options = arguments.parse_args()
    returns, truth = simulated(400 if options.small else 2500)
    restarts = 1 if options.small else 10

    data, fits = {"x": returns}, {}
    print("regimes   ELBO of the chain   of the mixture")
    for k in range(1, 5):
        fits[k] = regime_model(k).fit(data, seed=0, n_restarts=restarts)
        print(
            f"{k:7} {fits[k].elbo:19.1f} {mixture_model(k).fit(data, seed=0, n_restarts=restarts).elbo:16.1f}"
        )

    k = max(fits, key=lambda size: fits[size].elbo)
    posterior, theta = fits[k], fits[k]["theta"]
    spread = np.sqrt(theta.rate / theta.shape)
    order = np.argsort(spread)
    probability = posterior.local(data)["s"].probabilities[:, order]
    stay = np.diag(posterior["transition"].mean)[order]
    print("\nregime   mean   standard deviation   lasts (days)   share of the days")
    for number, j in enumerate(order):
        lasts, share = 1 / (1 - stay[number]), probability[:, number].mean()
        print(f"{number:6} {theta.mean[j]:6.2f} {spread[j]:20.2f} {lasts:14.0f} {share:19.0%}")
    if k == 3:
        print(f"{np.mean(probability.argmax(axis=1) == truth):.1%} of the days are in their true regime")

    plt.style.use("caviar.plot.caviar")
    figure, (top, bottom) = plt.subplots(2, 1, figsize=(7.2, 3.8), sharex=True, height_ratios=(2, 1))
    top.plot(returns, lw=0.6, color="0.3")
    top.set_ylabel("daily return (%)")
    bottom.stackplot(
        np.arange(len(returns)),
        probability.T,
        colors=[f"C{j}" for j in range(k)],
        labels=[f"{s:.1f} %" for s in spread[order]],
    )
    bottom.set(xlabel="day", ylabel="probability", ylim=(0, 1), xlim=(0, len(returns)))
    bottom.legend(ncols=k, loc="upper center", bbox_to_anchor=(0.5, 1.42), title=None)
    figure.savefig(options.pictures / "regimes.png")


if __name__ == "__main__":
    main()
