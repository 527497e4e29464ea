"""All models whose starts are tried, by what makes them hard."""

from starts.case import Case
from starts.sets import (
    alike,
    chains,
    columns,
    components,
    factors,
    gated,
    rates,
    regressions,
    sums,
    together,
    truncated,
)

__all__ = ["CASES", "KINDS"]

KINDS: dict[str, list[Case]] = {
    "labels over other plates": columns.CASES,
    "several labels in one sum": sums.CASES,
    "components that are alike": alike.CASES,
    "components that differ": components.CASES,
    "labels without a plate": gated.CASES,
    "chains": chains.CASES,
    "regressions": regressions.CASES,
    "labels together": together.CASES,
    "truncations": truncated.CASES,
    "locations that are multiplied": factors.CASES,
    "rates of low rank": rates.CASES,
}

CASES: dict[str, Case] = {case.name: case for cases in KINDS.values() for case in cases}
