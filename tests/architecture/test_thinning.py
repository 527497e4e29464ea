"""The quick run keeps a case of every claim, spread over all parameters, and the same ones in every run."""

import pickle
import subprocess
import sys
from itertools import product
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import lean_starts
import pytest
import thinning
from thinning import kept

import caviar as cv

PRODUCT = [{"model": m, "schedule": s} for m, s in product("abcdefghijkl", ("batch", "plain", "stochastic"))]


def test_one_in_so_many_is_kept_and_one_at_least():
    for n, share in ((1, 5), (4, 5), (36, 4), (37, 4)):
        assert len(kept([{"x": i} for i in range(n)], share)) == -(-n // share)


def test_a_list_gives_other_entries_to_other_tests():
    cases = [{"x": i} for i in range(12)]
    turns = [kept(cases, 4, turn) for turn in range(4)]
    assert sorted(number for own in turns for number in own) == list(range(12))


@pytest.mark.parametrize("turn", range(5))
def test_every_value_of_a_product_comes_up(turn):
    chosen = [PRODUCT[number] for number in kept(PRODUCT, 3, turn)]
    assert {case["model"] for case in chosen} == set("abcdefghijkl")
    # and each about as often as the others
    assert all(
        3 <= [case["schedule"] for case in chosen].count(s) <= 5 for s in ("batch", "plain", "stochastic")
    )


def test_after_the_values_pairs_come_up():
    cases = [dict(zip("abc", values, strict=True)) for values in product(range(3), repeat=3)]
    chosen = [cases[number] for number in kept(cases, 3)]
    for one, other in ("ab", "ac", "bc"):
        assert len({(case[one], case[other]) for case in chosen}) == 9


CONFTEST = """
import sys
sys.path.insert(0, {folder!r})
import thinning

def pytest_collection_modifyitems(config, items):
    thinning.thin(items, config.args)
"""
TESTS = """
import pytest

@pytest.mark.thinned(3)
@pytest.mark.parametrize("n", range(7))
def test_numbers(n):
    pass

def test_other():
    pass
"""


@pytest.fixture
def collected(tmp_path):
    """Return a function that gives the names of the tests that pytest would run."""
    (tmp_path / "pytest.ini").write_text("[pytest]\nmarkers =\n    slow\n    thinned\n")
    (tmp_path / "conftest.py").write_text(CONFTEST.format(folder=str(Path(thinning.__file__).parent)))
    (tmp_path / "test_it.py").write_text(TESTS)

    def names(*arguments):
        command = [
            sys.executable,
            "-m",
            "pytest",
            "--collect-only",
            "-q",
            "-p",
            "no:cacheprovider",
            *arguments,
        ]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout
        return [line.split("::")[1] for line in done.stdout.splitlines() if "::" in line]

    return names


def test_the_rest_is_slow_and_what_is_asked_for_by_name_is_not(collected):
    assert collected("-m", "not slow") == [
        "test_numbers[0]",
        "test_numbers[3]",
        "test_numbers[6]",
        "test_other",
    ]
    assert collected("-m", "not slow", "test_it.py::test_numbers[4]", "test_it.py::test_numbers[5]") == [
        "test_numbers[4]",
        "test_numbers[5]",
    ]


def test_amounts_are_those_of_the_run(monkeypatch):
    monkeypatch.setattr(thinning, "is_whole", False)
    assert thinning.amount(3, 9) == 3
    monkeypatch.setattr(thinning, "is_whole", True)
    assert thinning.amount(3, 9) == 9


@pytest.mark.parametrize("folder", lean_starts.FOLDERS)
def test_folders_whose_tests_begin_from_one_guess_are_there(folder):
    assert (Path(lean_starts.__file__).parent / folder).is_dir()


@pytest.mark.parametrize(
    ("place", "marks", "expected"),
    [
        ("tests/oracles/test_a.py", (), True),
        ("tests/oracles/test_a.py", ("starts_of_users",), False),
        ("tests/starts/test_a.py", (), False),
        ("tests/estimators/test_a.py", ("first_guess",), True),
        ("tests/estimators/test_a.py", ("first_guess", "starts_of_users"), False),
    ],
)
def test_tests_begin_from_one_guess_by_their_folder_and_marks(place, marks, expected):
    item: Any = SimpleNamespace(
        nodeid=f"{place}::test_b", get_closest_marker=lambda name: name if name in marks else None
    )
    assert lean_starts.begins_anywhere(item) is expected


def fitted():
    mean, tau = cv.Normal("m", 0, 0.1), cv.Gamma("t", 1, 1)
    return cv.Model(cv.Normal("x", mean, tau, plates=cv.Plate("row"))).fit({"x": [1.0, 2.0, 4.0]})


@pytest.mark.parametrize("is_whole", [False, True])
def test_figures_of_factors_are_shown_in_the_quick_run_to_tests_that_ask_for_them(
    is_whole, monkeypatch, request
):
    monkeypatch.setattr(thinning, "is_whole", is_whole)
    users = fitted().uncertainty
    assert users != "mean_field"
    request.getfixturevalue("figures_of_factors")
    assert pickle.loads(pickle.dumps(fitted())).uncertainty == (users if is_whole else "mean_field")
