"""Damaged and made-up files end in an error of ours or in a model that works: never in anything else.

They are made from the stored files of every format version. Each is loaded in a child process with little memory, which
watches what only code could do.
"""

import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from thinning import amount

import caviar as cv

pytest.importorskip("resource")

CHILD = Path(__file__).with_name("hostile_child.py")


def assert_harmless(folder: Path, numbers: Sequence[int]) -> None:
    command, count = [sys.executable, str(CHILD), str(folder), *map(str, numbers)], len(numbers)
    done = subprocess.run(command, capture_output=True, text=True, timeout=100 + count / 5, check=False)
    last = done.stderr.splitlines()[-1:]
    assert done.returncode == 0, (done.returncode, last, done.stderr[-2000:])
    *wrong, tally = [json.loads(line) for line in done.stdout.splitlines()]
    assert wrong == []
    # the rest is what says nothing of a model, or states another one that works
    if count > 30:
        assert tally["refused"] > 0.6 * count
        assert tally["loaded"] > 0


ONCE_DID_HARM = (233, 6443, 6774, 9253, 17788)
"""An ELBO without a trace, infinite roots of covariances, weights that are true or false, a number that varies."""


def test_some_hundred_mutants_and_those_that_once_did_harm(tmp_path):
    assert_harmless(tmp_path, [*range(amount(1, 300)), *ONCE_DID_HARM])


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, 20_000, 2_500))
def test_twenty_thousand_mutants(tmp_path, first):
    assert_harmless(tmp_path, range(first, first + 2_500))


@pytest.mark.parametrize(
    "summary",
    [
        [],
        {"rows": 3},
        {"rows": "3", "arrays": {}},
        {"rows": -1, "arrays": {}},
        {"rows": 3, "arrays": []},
        {"rows": 3, "arrays": {"x": {}}},
        {"rows": 3, "arrays": {"x": {"shape": 3}}},
        {"rows": 3, "arrays": {"x": {"shape": ["3"]}}},
        {"rows": 3, "arrays": {"x": {"shape": [3], "missing": "none"}}},
        {"rows": 3, "arrays": {"x": {"shape": [3, 2], "columns": ["a"]}}},
        {"rows": 3, "arrays": {"x": {"shape": [3, 1], "columns": [7]}}},
        {"rows": 3, "arrays": {"x": {"shape": [3, 1], "mean": "high"}}},
        {"rows": 3, "arrays": {"x": {"shape": [3], "categories": ["no", "yes"]}}},
        {"rows": 3, "arrays": {}, "about": ["a.csv"]},
        {"rows": 3, "arrays": {}, "about": {"source": 3}},
        {"rows": 3, "arrays": {}, "about": {"seed": "0"}},
        {"rows": 3, "arrays": {}, "about": {"other": "x"}},
        {"rows": 3, "arrays": {}, "about": {"versions": ["1.0"]}},
        {"rows": 3, "arrays": {}, "about": {"versions": {"numpy": 2}}},
    ],
)
def test_summaries_of_data_that_are_none_are_refused(tmp_path, summary):
    p = cv.Beta("p", 1, 1)
    posterior = cv.Model(cv.Bernoulli("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})
    posterior.data_summary = summary
    posterior.save(tmp_path / "m.caviar")
    with pytest.raises(cv.DataError, match="is damaged, or not made by caviar"):
        cv.load(tmp_path / "m.caviar")


@pytest.mark.parametrize("names", ["ab", ["a"], ["a", "b", "c"], ["a", "a"], ["a", 1], {"a": 0, "b": 1}])
def test_names_of_categories_are_one_for_each(tmp_path, names):
    p = cv.Dirichlet("p", [1.0, 1.0])
    posterior = cv.Model(cv.Categorical("x", p, plates=cv.Plate("obs"))).fit({"x": [1, 1, 0]})
    for told in (["no", "yes"], names):
        arrays = {**posterior.data_summary["arrays"]["x"], "categories": told}
        posterior.data_summary = {**posterior.data_summary, "arrays": {"x": arrays}}
        posterior.save(tmp_path / "m.caviar")
        if told is names:
            with pytest.raises(cv.DataError, match="is damaged, or not made by caviar"):
                cv.load(tmp_path / "m.caviar")
        else:
            assert cv.load(tmp_path / "m.caviar").data_summary["arrays"]["x"]["categories"] == told
