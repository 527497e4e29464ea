"""Starts from one guess, for tests of `make test` whose claims do not depend on where a fit begins.

A fit of a small table spends three quarters of its time on its start: several guesses of labels climb side by side, and
the best is rearranged. Tests of what comes after that (files, reports, devices, predictions) make their fits from the
first guess, which ends at a fixed point too. `make test-all` runs them from the starts that users have.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any
from unittest.mock import patch

PLACES = (
    "checkpoint/test_belongs",
    "checkpoint/test_files",
    "checkpoint/test_same_bits",
    "checkpoint/test_tables",
    "cli/",
    "data/",
    "device/",
    "diagnostics/",
    "edges/",
    "estimators/test_arguments",
    "estimators/test_array_api",
    "estimators/test_contract",
    "estimators/test_ecosystem",
    "estimators/test_em",
    "estimators/test_fixed",
    "estimators/test_invariance",
    "estimators/test_lda",
    "estimators/test_mixed_model",
    "estimators/test_noise",
    "estimators/test_weights",
    "estimators/test_densities",
    "estimators/test_hierarchical_states",
    "estimators/test_structures",
    "invariants/test_ascent",
    "invariants/test_chains",
    "invariants/test_end_of_a_fit",
    "invariants/test_labels",
    "invariants/test_overlapping_fits",
    "invariants/test_partial_vectors",
    "invariants/test_sequences",
    "kit/",
    "oracles/",
    "plot/",
    "posterior/",
    "report/",
    "simulation/",
    "storage/",
    "truncated/",
)
"""Where such tests are, below tests/."""

STARTS_OF_USERS = (
    "cli/test_checkpoint",
    "checkpoint/test_same_bits.py::test_a_fit_goes_on_after_it_was_broken_off_in_the_middle_of_passes",
    "checkpoint/test_same_bits.py::test_a_seed_of_chance_is_kept",
    "invariants/test_chains.py::test_any_number_of_threads_gives_the_same_bits",
    "invariants/test_chains.py::test_random_starts_tell_states_of_few_categories_apart",
    "invariants/test_end_of_a_fit.py::test_well_behaved_fits_warn_of_nothing",
    "invariants/test_labels.py::test_threads_give_the_same_bits",
    "invariants/test_partial_vectors.py::test_a_weight_of_two_is_the_row_twice_in_any_order",
    "invariants/test_partial_vectors.py::test_rows_with_nothing_observed_change_nothing",
    "invariants/test_partial_vectors.py::test_the_sample_of_a_start_does_not_see",
    "invariants/test_sequences.py::test_any_number_of_threads_gives_the_same_bits",
    "oracles/test_clusters",
    "oracles/test_first_rounds_of_nested_plates",
    "oracles/test_labels_of_groups.py::test_labels_that_are_known_in_part_stay",
    "oracles/test_labels_together.py::test_schedules_and_threads_end_alike",
    "oracles/test_likelihoods_of_mixtures",
    "oracles/test_models_measured_mixture",
    "oracles/test_published_figures",
    "oracles/test_references_agree",
)
"""Those of them that claim something of starts too."""


def begins_anywhere(place: str) -> bool:
    """Whether a test, by its place below tests/, claims nothing of starts."""
    return place.startswith(PLACES) and not place.startswith(STARTS_OF_USERS)


def _as_it_is(basis: Any, start: Any) -> Any:
    return start


def _none(basis: Any) -> None:
    return None


@contextmanager
def lean_starts() -> Iterator[None]:
    """Let fits begin from their first guess."""
    # not before NumPy may be loaded: tests/conftest.py says first how many threads it has
    from caviar.engine.starts import from_data

    candidates = from_data._candidates
    first = {"_candidates": lambda basis: islice(candidates(basis), 1)}
    rest = {"exchanged": _as_it_is, "with_cells_moved": _as_it_is, "regrouping_of": _none}
    with patch.multiple(from_data, **first, **rest):
        yield
