"""What a random model has, in words, so that a run can say how often each kind was drawn."""

from __future__ import annotations

import caviar as cv

from .statement import Stated

__all__ = ["kinds_of"]


def kinds_of(stated: Stated) -> set[str]:
    """Return the kinds of capability that a model has."""
    told, variables = stated.writer.told, list(stated.model.variables.values())
    found = {f"leaf {told[f'{name}/family']}" for name in stated.leaves}
    chosen = [slot.chosen for own in variables for slot in own.slots.values()]
    if any(chosen) or any(isinstance(own, cv.LinearGaussianChain) for own in variables):
        found.add(f"gates {told.get('gates', 'none')}")
    rows = [own for own in variables if own.name in stated.latent and stated.data_plate in own.plates]
    chains = [own for own in variables if isinstance(own, cv.LinearGaussianChain)]
    has = {
        "two indices in one place": any(len(own) > 1 for own in chosen),
        "cell of two labels": told.get("gates") == "cell"
        and any(own.name == stated.writer.rename("cell") for own in stated.model.nodes),
        "chain of vectors": bool(chains),
        "chain of vectors with inputs": any("inputs" in own.slots for own in chains),
        "steps that an input chooses": told.get("transition") == "of an input",
        "several sequences": any(holds == "starts" for holds, *_ in stated.known.values()),
        "tabulated factor": any(own.family.__name__.startswith("Tabulated") for own in variables),
        "several hidden variables of a row": len(rows) > 1,
        "a hidden variable a row that is no label": any(own.dimension is None for own in rows),
        "rows within groups": stated.is_grouped,
        "no rows": stated.data_plate is None,
        "extra plates": bool(stated.writer.extras),
    }
    return found | {kind for kind, is_so in has.items() if is_so}
