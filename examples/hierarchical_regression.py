"""A hierarchical regression: a line for each colony of penguins, and what colonies have in common.

Body mass grows with the flipper, by how much may differ between colonies, some of which have few birds. Each colony
has a line of its own, drawn from a population of lines whose mean and covariance are learnt: small colonies are pulled
towards the others, large ones hardly. What a fit is worth is asked in three ways: the ELBO (how well did the prior
predict these birds?), leave-one-out with ArviZ (how well do the other birds predict one?), and Pareto k (is q near the
posterior at all?). The first two may disagree: a wide prior of how colonies differ costs evidence, and no prediction.

    python examples/hierarchical_regression.py
"""

import argparse
import warnings
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import caviar as cv


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pictures", type=Path, default=Path(__file__).parent / "pictures")
    arguments.add_argument("--small", action="store_true", help="fewer draws")
    options = arguments.parse_args()
    n_draws = 200 if options.small else 2000

    penguins = cv.datasets.load_penguins()
    columns = [
        penguins.column(name) for name in ("species", "island", "year", "flipper_length_mm", "body_mass_g")
    ]
    birds = np.column_stack(columns)[~np.isnan(columns[3])]
    colonies, group = np.unique(birds[:, :3].astype(int), axis=0, return_inverse=True)
    flipper, mass = (birds[:, 3] - 200) / 10, birds[:, 4] / 1000  # in cm from 200 mm, and kg
    design = np.column_stack([np.ones(len(birds)), flipper])

    varying = cv.models.varying_coefficients(2, len(colonies)).fit({"X": design, "y": mass, "group": group})
    pooled = cv.models.linear_regression(2, prior_precision=0.01).fit({"X": design, "y": mass})
    print(f"ELBO: one line for all {pooled.elbo:.1f}, a line for each colony {varying.elbo:.1f}\n")

    print("species    island     year  birds   slope alone   slope pooled   (kg for each cm of flipper)")
    lines = varying["w"]
    for g, (kind, isle, year) in enumerate(colonies):
        own = np.polyfit(flipper[group == g], mass[group == g], 1)[0]
        error = np.sqrt(lines.covariance[g, 1, 1])
        print(
            f"{penguins.categories['species'][kind]:10} {penguins.categories['island'][isle]:10} {year} "
            f"{np.sum(group == g):6} {own:13.2f} {lines.mean[g, 1]:14.2f} +- {error:.2f}"
        )

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # ArviZ announces its version 1
        import arviz as az
    print()
    for name, posterior, data in (
        ("one line", pooled, {"X": design, "y": mass}),
        ("varying", varying, {"X": design, "y": mass, "group": group}),
    ):
        found = posterior.diagnose(data, n_draws=n_draws, seed=0)
        loo = az.loo(posterior.to_arviz(data, n_draws=n_draws, seed=0))
        elpd = loo.elpd_loo if "elpd_loo" in loo else loo.elpd
        print(
            f"{name:9} Pareto k of q {found.pareto_k:5.2f} ({found.verdict}), leave-one-out log density {elpd:7.1f}"
        )

    plt.style.use("caviar.plot.caviar")
    figure, axes = plt.subplots(figsize=(7.2, 4))
    for kind, name in enumerate(penguins.categories["species"]):
        rows = birds[:, 0] == kind
        axes.scatter(birds[rows, 3], mass[rows], s=10, alpha=0.5, color=f"C{kind}", label=name)
    for g, (kind, _, _) in enumerate(colonies):
        ends = np.percentile(flipper[group == g], [5, 95])
        axes.plot(200 + 10 * ends, lines.mean[g] @ [np.ones(2), ends], color=f"C{kind}", lw=1.6)
    ends = np.array([-2.7, 3.0])
    axes.plot(
        200 + 10 * ends,
        pooled["w"].mean @ [np.ones(2), ends],
        "--",
        color="0.2",
        lw=1.2,
        label="one line for all",
    )
    axes.set(xlabel="length of the flipper (mm)", ylabel="mass of the body (kg)")
    axes.legend()
    figure.savefig(options.pictures / "hierarchical_regression.png")


if __name__ == "__main__":
    main()
