"""What an iteration takes on many machines: a simulation whose inputs are measured on this one.

    python benchmarks/cluster_plan.py [--rows 1e10] [--machines 1,10,100] [--network 10] [--latency 0.5] [--task 1.0]

Measured here, with all threads of this machine: seconds of a pass by row, of the update of the globals, and of an
addition of two statistics. Given: Gbit/s and milliseconds of a message between two machines, and milliseconds that the
scheduler takes for a task. Simulated, event by event: every machine passes over its share of the rows, each as fast as
chance has it (10% standard deviation), statistics are added along a binary tree as soon as two of them are there, the
driver updates the globals, and they go out again along a tree. The formula beside it is that of docs/scaling.md.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from one_pass import make_data, our_pass

SHAPES = ((8, 16), (16, 32), (32, 64), (64, 64), (64, 256), (128, 512))
_SPREAD = 0.1
"""Standard deviation of the logarithm of a machine's speed."""


@dataclass(frozen=True)
class Network:
    """What a message and a task cost."""

    bytes_a_second: float
    latency: float
    task: float

    def message(self, size: float) -> float:
        """Return the seconds that a message of so many bytes takes."""
        return self.latency + self.task + size / self.bytes_a_second


@dataclass(frozen=True)
class Measured:
    """Seconds on this machine: a row of a pass, an update of the globals, an addition of two statistics."""

    row: float
    update: float
    addition: float
    size: float
    """Bytes of the statistics."""


def least(function: Callable[[], object], repeats: int = 5) -> float:
    """Return the least seconds of several calls, after one that is not counted."""
    function()
    found = []
    for _ in range(repeats):
        start = time.perf_counter()
        function()
        found.append(time.perf_counter() - start)
    return min(found)


def measured(n_features: int, n_components: int) -> Measured:
    """Return what this machine takes for a mixture with full covariances."""
    n_rows = max(4_000, int(4e9 / (4 * n_components * n_features**2 / 2)))
    n_rows = min(n_rows, 200_000)
    X, centres = make_data(n_rows, n_features, n_components)
    one, row_map = our_pass(X, centres, None)
    with row_map.executor.session():
        row = least(one, 3) / n_rows
    size = 1 + n_features + n_features * (n_features + 1) // 2
    statistics = np.ones((n_components, size)), np.ones((n_components, size))
    matrices = np.eye(n_features) + np.zeros((n_components, 1, 1))

    def update() -> None:
        # of each precision a factorisation and an inverse for the update, and the same for its expectation
        for _ in range(2):
            np.linalg.inv(matrices)
            np.linalg.slogdet(matrices)

    return Measured(
        row,
        least(update),
        least(lambda: np.add(*statistics, out=statistics[0])),
        8.0 * n_components * size,
    )


def formula(cost: Measured, network: Network, n_rows: float, machines: int) -> dict[str, float]:
    """Return the seconds of each part of an iteration, machines of equal speed."""
    levels = int(np.ceil(np.log2(machines))) if machines > 1 else 0
    return {
        "pass": n_rows / machines * cost.row,
        "reduce": levels * (network.message(cost.size) + cost.addition),
        "update": cost.update,
        "send": levels * network.message(cost.size),
    }


def simulated(
    cost: Measured, network: Network, n_rows: float, machines: int, rng: np.random.Generator
) -> float:
    """Return the seconds of an iteration, by the clock of the last message."""
    message = network.message(cost.size)
    ready = list(n_rows / machines * cost.row * np.exp(_SPREAD * rng.standard_normal(machines)))
    while len(ready) > 1:
        # whoever is done waits for its neighbour, one sends and the other adds
        pairs = [ready[i : i + 2] for i in range(0, len(ready), 2)]
        ready = [max(p) + message + cost.addition if len(p) == 2 else p[0] for p in pairs]
    has = [ready[0] + cost.update]
    while len(has) < machines:
        # everybody who has the globals sends them on to one who has not
        has = [clock + message for clock in has] + [clock + message for clock in has]
    return max(has[:machines])


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--rows", type=float, default=1e10)
    parser.add_argument("--machines", default="1,10,100")
    parser.add_argument("--network", type=float, default=10.0, help="Gbit/s")
    parser.add_argument("--latency", type=float, default=0.5, help="milliseconds of a message")
    parser.add_argument("--task", type=float, default=1.0, help="milliseconds of the scheduler for a task")
    options = parser.parse_args()
    network = Network(options.network * 1e9 / 8, options.latency / 1e3, options.task / 1e3)
    rng = np.random.default_rng(0)
    print(f"{options.rows:.0e} rows, {options.network:g} Gbit/s; seconds of one iteration\n")
    print(
        f"{'D':>4} {'K':>4} {'MB':>7} {'machines':>9} {'pass':>9} {'reduce':>8} {'update':>8} {'send':>8} "
        f"{'sum':>9} {'simulated':>10} {'efficiency':>11}"
    )
    for n_features, n_components in SHAPES:
        cost = measured(n_features, n_components)
        alone = sum(formula(cost, network, options.rows, 1).values())
        for machines in map(int, options.machines.split(",")):
            parts = formula(cost, network, options.rows, machines)
            found = np.mean([simulated(cost, network, options.rows, machines, rng) for _ in range(200)])
            print(
                f"{n_features:4} {n_components:4} {cost.size / 1e6:7.2f} {machines:9} {parts['pass']:9.2f} "
                f"{parts['reduce']:8.4f} {parts['update']:8.4f} {parts['send']:8.4f} "
                f"{sum(parts.values()):9.2f} {found:10.2f} {alone / machines / found:10.0%}",
                flush=True,
            )


if __name__ == "__main__":
    main()
