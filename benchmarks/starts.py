"""Where default fits end, beside fits from the values that made the data.

    python benchmarks/starts.py [--seeds 10] [--kind WORDS] [--name WORDS]

The models are those of ``tests/starts``. A line for each: how many of the seeds end no more than 0.01 nats a row below
the fit from the true values, and the largest shortfall. A negative one is an end above it.
"""

from __future__ import annotations

import argparse
import sys
import time
import warnings
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from starts.case import TOLERANCE
from starts.registry import KINDS


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--seeds", type=int, default=10, help="seeds of each model")
    parser.add_argument("--kind", default="", help="only kinds with these words in their name")
    parser.add_argument("--name", default="", help="only models with these words in their name")
    arguments = parser.parse_args()
    warnings.simplefilter("ignore")
    reached = total = 0
    for kind, cases in KINDS.items():
        if arguments.kind not in kind:
            continue
        print(f"\n{kind}")
        for case in cases:
            if arguments.name not in case.name:
                continue
            begun = time.process_time()
            short = case.shortfalls(arguments.seeds)
            seconds = time.process_time() - begun
            n_reached = sum(shortfall <= TOLERANCE for shortfall in short)
            enough = n_reached >= 0.9 * arguments.seeds
            reached, total = reached + enough, total + 1
            mark = " " if enough else "*"
            print(
                f"{mark} {case.name:42} {n_reached:3} of {arguments.seeds}   worst {max(short):9.4f}   "
                f"{seconds / (arguments.seeds + 1):6.2f} s a fit",
                flush=True,
            )
    print(f"\n{reached} of {total} models reach it from at least nine seeds in ten")


if __name__ == "__main__":
    main()
