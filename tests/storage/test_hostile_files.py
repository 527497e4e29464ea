"""Damaged and made-up files end in an error of ours or in a model that works: never in anything else.

Each is loaded in a child process with little memory, which watches what only code could do.
"""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import caviar as cv

from .statements import fit_of

CHILD = Path(__file__).with_name("hostile_child.py")
POSTERIORS = ("sticks", "joint parts", "known pair", "hidden Markov", "floors", "utilities", "tied-joint")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with saved files, and beside each the rows that it is used with."""
    folder = tmp_path_factory.mktemp("saved")
    for name in POSTERIORS:
        posterior, data = fit_of(name)
        posterior.save(folder / f"{name}.caviar")
        arrays = {key: value if key != "theta" else np.array(value) for key, value in data.items()}
        np.savez(folder / f"{name}.npz", **arrays)
    first = cv.Model(cv.Normal("x", cv.Normal("m", 0, 1), cv.Gamma("t", 1, 1), plates=cv.Plate("obs")))
    streamed = first.fit({"x": [1.0, 2.0]}, point=["t"]).update({"x": [0.5, 3.0]})
    streamed.save(folder / "streamed.caviar")
    np.savez(folder / "streamed.npz", x=[1.0])
    first.save(folder / "model.caviar")
    np.savez(folder / "model.npz", x=[1.0])
    X = cv.datasets.load_faithful().values
    cv.BayesianGaussianMixture(2, random_state=0).fit(X).save(folder / "estimator.caviar")
    np.savez(folder / "estimator.npz", x=X[:5])
    return folder


def assert_harmless(folder: Path, first: int, count: int) -> None:
    command = [sys.executable, str(CHILD), str(folder), str(first), str(count)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60 + count / 10, check=False)
    last = done.stderr.splitlines()[-1:]
    assert done.returncode == 0, (done.returncode, last, done.stderr[-2000:])
    *wrong, tally = [json.loads(line) for line in done.stdout.splitlines()]
    assert wrong == []
    # the rest is what says nothing of a model, or another one that works
    assert tally["refused"] > 0.6 * count
    assert tally["loaded"] > 0


def test_two_thousand_mutants(folder):
    assert_harmless(folder, 0, 2_000)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(2_000, 20_000, 3_000))
def test_eighteen_thousand_more(folder, first):
    assert_harmless(folder, first, 3_000)
