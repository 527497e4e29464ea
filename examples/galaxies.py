"""Velocities of galaxies: how many clusters of them there are.

82 galaxies of the Corona Borealis region move away from us at different speeds, an old test of mixtures (Roeder,
1990): clumps speak for clusters, and voids between them. The ELBO, a lower bound of the log evidence, is compared over
numbers of components; ELBO + log K! counts the K! orders of the components.

    python examples/galaxies.py
"""

import argparse
from pathlib import Path

import matplotlib.pyplot as plt
import numpy as np

import caviar as cv


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    arguments.add_argument("--pictures", type=Path, default=Path(__file__).parent / "pictures")
    arguments.add_argument("--small", action="store_true", help="up to four components, two starts each")
    options = arguments.parse_args()

    velocity = cv.datasets.load_galaxies().values  # in 1,000 km/s
    comparison = cv.compare_mixtures(
        velocity,
        n_components=range(1, 5 if options.small else 9),
        covariance_type="full",
        n_init=2 if options.small else 20,
        mean_prior=[20.0],
        mean_precision_prior=0.02,
        degrees_of_freedom_prior=4.0,
        covariance_prior=[[4.0]],
        random_state=0,
    )
    print(" K      ELBO   ELBO + log K!")
    for row in comparison.rows:
        print(
            f"{row.n_components:2} {row.elbo:9.2f} {row.corrected:15.2f}"
            + ("   best" if row is comparison.best_row else "")
        )

    best = comparison.best
    order = np.argsort(best.means_[:, 0])
    print("\nshare   mean (1,000 km/s)   standard deviation")
    for k in order:
        print(
            f"{best.weights_[k]:5.1%} {best.means_[k, 0]:14.2f} {np.sqrt(best.covariances_[k, 0, 0]):18.2f}"
        )

    plt.style.use("caviar.plot.caviar")
    figure, (left, right) = plt.subplots(1, 2, figsize=(7.2, 3.4), width_ratios=(2, 1))
    cv.plot.density(best, velocity, names=["velocity (1,000 km/s)"], ax=left)
    left.set_ylim(top=1.35 * left.get_ylim()[1])
    sizes = [row.n_components for row in comparison.rows]
    right.plot(sizes, [row.elbo for row in comparison.rows], "o-", ms=4, label="ELBO")
    right.plot(sizes, [row.corrected for row in comparison.rows], "o--", ms=4, label="ELBO + log K!")
    right.set(xlabel="components", ylabel="nats", xticks=sizes)
    right.legend(loc="lower right")
    figure.savefig(options.pictures / "galaxies.png")


if __name__ == "__main__":
    main()
