"""Sums of parts of a tree, wherever they are made, end in the same additions as the sum of the whole."""

import numpy as np
import pytest

from caviar.numerics.sums.pairwise import pairwise_sum, subtree_sums


class Written:
    """A sum that remembers how it was added up."""

    def __init__(self, text: str) -> None:
        self.text = text

    def add(self, other: "Written") -> None:
        self.text = f"({self.text}+{other.text})"


@pytest.mark.thinned(2)
@pytest.mark.parametrize("n", [1, 2, 3, 7, 8, 11, 15, 33])
def test_a_tree_cut_at_random_is_added_in_the_same_order(n):
    rng = np.random.default_rng(n)
    whole = pairwise_sum(Written(str(i)) for i in range(n)).text
    for n_places in (1, 2, 3, 5):
        place = rng.integers(n_places, size=n)

        def leaf(start, stop, own):
            return Written(str(start)) if stop - start == 1 and place[start] == own else None  # noqa: B023

        parts = {}
        for own in range(n_places):
            parts |= subtree_sums(n, lambda start, stop: leaf(start, stop, own))  # noqa: B023
        covered = [i for start, stop in parts for i in range(start, stop)]
        assert sorted(covered) == list(range(n))
        joined = subtree_sums(n, lambda start, stop: parts.get((start, stop)))  # noqa: B023
        assert joined[0, n].text == whole


def test_one_place_with_all_values_adds_all_of_them():
    found = subtree_sums(11, lambda start, stop: Written(str(start)) if stop - start == 1 else None)
    assert list(found) == [(0, 11)]


def test_a_run_that_is_no_subtree_stays_in_parts():
    here = range(1, 4)
    found = subtree_sums(
        8, lambda start, stop: Written(str(start)) if stop - start == 1 and start in here else None
    )
    assert {place: sums.text for place, sums in found.items()} == {(1, 2): "1", (2, 4): "(2+3)"}
