"""Documents of earlier format versions, made into what the present one writes."""

from __future__ import annotations

from collections.abc import Mapping, Set
from typing import Any

import numpy as np


def upgraded(document: Mapping[str, Any], version: int) -> dict[str, Any]:
    """Return the document of a saved estimator, posterior or model as the present format version has it.

    Parameters
    ----------
    document
        With its arrays in their places.
    version
        Format version of the file that it comes from.

    Raises
    ------
    ValueError, LookupError, TypeError, AttributeError
        If it is not a document of that version.
    """
    found = dict(document)
    if version < 2 and "posterior" in found:
        found["posterior"] = _posterior_of_1(found["posterior"])
    return found


def _posterior_of_1(document: Mapping[str, Any]) -> dict[str, Any]:
    """Return a posterior of format 1, which kept neither the data plate, nor what more rows need of point masses."""
    model = dict(document["model"])
    # the labels of a plate within another come with it
    outer = {entry["within"] for entry in model["plates"] if "within" in entry}
    own = [entry for entry in model["nodes"] if not (entry["kind"] == "Data" and entry["name"] in outer)]
    model["nodes"] = [_node_of_1(entry, outer) for entry in own]
    variables = [entry["name"] for entry in model["nodes"] if "slots" in entry]
    hidden = [*document["factors"], *document["local"]]
    kept = ("factors", "local", "elbo", "elbo_trace", "elbo_terms", "status", "n_iter", "restart_elbos")
    return {
        **{name: document[name] for name in kept},
        "model": model,
        "observed": [name for name in variables if name not in hidden],
        "arguments": {"point": document["point"], "factors": document["groups"], "data_plate": None},
        "beliefs": {"of_points": {}, "prior": None},
        "restart_traces": {"lengths": np.empty(0, dtype=np.int64), "values": np.empty(0)},
        "data": None,
    }


def _node_of_1(entry: Mapping[str, Any], outer: Set[str]) -> dict[str, Any]:
    node = dict(entry)
    if "slots" in node:
        own = {"StickBreaking": "truncation"}.get(node["kind"])
        node["slots"] = {name: _slot_of_1(slot, outer) for name, slot in node["slots"].items() if name != own}
    return node


def _slot_of_1(slot: Mapping[str, Any], outer: Set[str]) -> dict[str, Any]:
    if slot.get("is_diagonal"):
        return {"diagonal": slot["node"]}
    is_plain = slot["index"] is None or slot["index"] in outer
    return {"node": slot["node"]} if is_plain else {"node": slot["node"], "by": slot["index"]}
