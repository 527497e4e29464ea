"""Gates: what chooses components for the rows. Labels of rows, of groups and of pairs, chains, several at once."""

from __future__ import annotations

from typing import Any

import numpy as np

import caviar as cv

from .writer import Writer

__all__ = ["state_gates"]

_GATES = (
    "none",
    "Categorical",
    "labels",
    "two",
    "nested",
    "chain",
    "global",
    "groups",
    "pairs",
    "label and known",
    "hypotheses",
    "cell",
    "two chains",
    "kinds of chains",
    "states",
    "states and chain",
    "experts",
)
_PLAIN = ("none", "Categorical", "labels", "two", "nested", "chain", "global")
_ALONG = ("chain", "two chains", "kinds of chains", "states", "states and chain")
_OF_KNOWN = (
    "none",
    "Categorical",
    "two",
    "nested",
    "chain",
    "groups",
    "pairs",
    "label and known",
    "cell",
    "two chains",
)


def state_gates(writer: Writer) -> tuple[str, ...]:
    """State what chooses components; return the names of those with a hidden label a row."""
    kinds = _OF_KNOWN if writer.known_only else _GATES
    kinds = kinds if writer.is_wide else tuple(own for own in kinds if own in _PLAIN)
    if writer.outer is not None:
        kinds = tuple(own for own in kinds if own not in _ALONG)
    kind, rows = writer.pick("gates", kinds), (writer.obs,)
    if kind == "none":
        return ()
    if kind.startswith("states"):
        _states(writer)
    if kind in ("chain", "two chains", "kinds of chains", "states and chain"):
        return _chains(writer, kind)
    size = writer.pick("components", (2, 3, 1))
    component = writer.plate("component", size)
    if kind == "labels":
        writer.gates.append((writer.known("label", "labels", rows, size), component))
    if kind == "global":
        z = cv.Categorical(writer.rename("z"), writer.probabilities("weights", (), size))
        writer.gates.append((z, component))
    if kind in ("groups", "pairs"):
        _of_groups(writer, kind, component)
    if kind == "hypotheses":
        z = cv.Categorical(writer.rename("z"), writer.probabilities("weights", rows, size), plates=rows)
        cell = writer.known("cell", "labels", (*rows, component), 3)
        writer.gates.append((cell[z], writer.plate("cells", 3)))
        return ("z",)
    if kind == "cell":
        return _of_cells(writer, component)
    if kind == "experts":
        return _of_experts(writer, component)
    if kind in ("Categorical", "two", "nested", "label and known"):
        return _of_rows(writer, kind, component)
    return ()


def _of_experts(writer: Writer, component: cv.Plate) -> tuple[str, ...]:
    """State a label of each row that depends on columns, by sticks that are broken or by a softmax."""
    writer.has_predictor, rows, size = True, (writer.obs,), component.size or 1
    link = writer.pick("experts/link", (cv.stick_breaking, cv.softmax))
    if link is cv.stick_breaking and size == 1:
        size = 2
        component = writer.plate("experts", size)
    question = writer.plate("question", size - 1 if link is cv.stick_breaking else size)
    weights = cv.MultivariateNormal(writer.rename("gating"), np.zeros(2), np.eye(2), plates=question)
    x = writer.known("gating.x", "covariate", rows, 2)
    z = cv.Categorical(writer.rename("z"), link(cv.dot(x, weights), along=question), plates=rows)
    writer.gates.append((z, component))
    return ("z",)


def _of_cells(writer: Writer, component: cv.Plate) -> tuple[str, ...]:
    """State two labels of each row, which choose a component by the known number in their cell."""
    rows, other, among = (writer.obs,), writer.plate("case of y", 2), writer.pick("cells", (2, 3))
    z = cv.Categorical(
        writer.rename("z"),
        writer.probabilities("weights", rows, component.size or 1, gated=False),
        plates=rows,
    )
    if writer.pick("cells/nested", (False, True)):
        writer.gates.append((z, component))
    y = cv.Categorical(writer.rename("y"), writer.probabilities("other weights", rows, 2), plates=rows)
    cases = (*rows, component, other) if writer.pick("cells/a row", (False, True)) else (component, other)
    cell = writer.known("cell", "labels", cases, among)  # type: ignore[arg-type]
    writer.gates.append((cell[z, y], writer.plate("cells", among)))
    if writer.pick("cells/alone", (False, True)):
        writer.gates = writer.gates[-1:]
    return ("z", "y")


def _of_rows(writer: Writer, kind: str, component: cv.Plate) -> tuple[str, ...]:
    """State a label of each row, and perhaps another one beside it."""
    plates: tuple[Any, ...] = (writer.obs,)
    if writer.extras and writer.pick("z over more", (False, True)):
        more = writer.extras[0]
        plates = (more, writer.obs) if writer.pick("z turned", (False, True)) else (writer.obs, more)
    size = component.size or 1
    z = cv.Categorical(
        writer.rename("z"), writer.probabilities("weights", plates, size, gated=False), plates=plates
    )
    writer.gates.append((z, component))
    if kind == "Categorical":
        return ("z",)
    other = writer.plate("other component", 2)
    if kind == "label and known":
        writer.gates.append((writer.known("label", "labels", (writer.obs,), 2), other))
        return ("z",)
    # chosen by z where it is nested
    among = writer.gates if kind == "nested" else []
    writer.gates, both = among, writer.gates
    y = cv.Categorical(writer.rename("y"), writer.probabilities("other weights", plates, 2), plates=plates)
    writer.gates = [*both, (y, other)]
    return ("z", "y")


def _of_groups(writer: Writer, kind: str, component: cv.Plate) -> None:
    """State a label of each of three groups; the records choose one, or two that meet."""
    group, size = writer.plate("group", 3), component.size or 1
    z = cv.Categorical(
        writer.rename("z"), writer.probabilities("weights", (), size, gated=False), plates=group
    )
    rows: Any = (writer.obs,)
    writer.gates.append((z[writer.known("member", "senders", rows, 3)], component))
    if kind == "pairs":
        other = writer.known("other member", "receivers", rows, 3)
        writer.gates.append((z[other], writer.plate("other component", size)))


def _chains(writer: Writer, kind: str) -> tuple[str, ...]:
    writer.has_chain = True
    component = writer.plate("component", writer.pick("components", (2, 3, 1)))
    if kind == "kinds of chains":
        writer.gates.append((_kinds_of_chains(writer, component), component))
        return ("s",)
    writer.gates.append((_chain(writer, "s", component), component))
    if kind != "two chains":
        return ("s",)
    other = writer.plate("other component", 2)
    writer.gates.append((_chain(writer, "r", other), other))
    return ("s", "r")


def _chain(writer: Writer, name: str, state_plate: cv.Plate) -> cv.MarkovChain:
    size, path = state_plate.size or 1, "" if name == "s" else f"{name}."
    initial = writer.probabilities(f"{path}initial", (), size, gated=False)
    constant = np.full((size, size), 0.2 / size) + 0.8 * np.eye(size)
    transition: Any = constant
    kind = "constant"
    if not writer.known_only:
        kinds = ("variable", "constant", "of an input", *(("of a column",) if size > 1 else ()))
        kind = writer.pick(f"{path}transition", kinds)
    if kind == "variable":
        transition = writer.simplex(f"{path}transition rows", (state_plate,), size, "Dirichlet")
    elif kind == "of an input":
        inputs = writer.plate(f"{path}inputs", 2)
        table = writer.simplex(f"{path}transition rows", (inputs, state_plate), size, "Dirichlet")
        transition = table[writer.known(f"{path}input", "labels", (writer.obs,), 2)]  # type: ignore[arg-type]
    elif kind == "of a column":
        questions = writer.plate(f"{path}questions", size - 1)
        present = writer.plate(f"{path}present", size)
        slopes = cv.Normal(writer.rename(f"{path}slopes"), 0.0, 1.0, plates=(present, questions))
        column = writer.known(f"{path}column", "covariate", (writer.obs,))  # type: ignore[arg-type]
        transition = cv.stick_breaking(slopes * column)
    starts = _starts(writer, f"{path}starts")
    return cv.MarkovChain(writer.rename(name), initial, transition, along=writer.obs, **starts)  # type: ignore[arg-type]


def _starts(writer: Writer, path: str) -> dict[str, Any]:
    if writer.pick(path, (False, True)):
        return {"starts": writer.known(path, "starts", (writer.obs,))}  # type: ignore[arg-type]
    return {}


def _kinds_of_chains(writer: Writer, state_plate: cv.Plate) -> cv.MarkovChainMixture:
    size, kind = state_plate.size or 1, writer.plate("kind", 2)
    weights = writer.probabilities("kinds", (), 2, gated=False)
    transition = writer.simplex("transition rows", (kind, state_plate), size, "Dirichlet")
    initial = np.full(size, 1 / size)
    starts = _starts(writer, "starts")
    return cv.MarkovChainMixture(
        writer.rename("s"),
        weights,
        initial,
        transition,
        along=writer.obs,
        **starts,  # type: ignore[arg-type]
    )


def _states(writer: Writer) -> None:
    """State a chain of vectors, perhaps with inputs."""
    writer.has_chain, writer.has_predictor = True, True
    size, rows = writer.pick("states/length", (1, 2)), (writer.obs,)
    row = writer.plate("row of states", size)
    precision: Any = 2.0 * np.eye(size)
    transition: Any = 0.7 * np.eye(size)
    if writer.pick("states/transition", ("variable", "constant")) == "variable":
        transition = cv.MultivariateNormal(
            writer.rename("transition"), np.full(size, 0.3), 4.0 * np.eye(size), plates=row
        )
    if writer.pick("states/noise", ("variable", "constant")) == "variable":
        precision = cv.diagonal(cv.Gamma(writer.rename("drive"), 3.0, 1.5, plates=row))
    inputs: dict[str, Any] = {}
    if writer.pick("states/inputs", (False, True)):
        weights: Any = np.ones((size, 2)) * 0.5
        if writer.pick("states/input weights", ("variable", "constant")) == "variable":
            weights = cv.MultivariateNormal(writer.rename("push"), np.zeros(2), np.eye(2), plates=row)
        inputs = {
            "inputs": writer.known("inputs", "covariate", rows, 2),  # type: ignore[arg-type]
            "input_weights": weights,
        }
    mean: Any = np.zeros(size)
    if writer.pick("states/mean", ("constant", "variable")) == "variable":
        mean = cv.MultivariateNormal(writer.rename("first state"), np.zeros(size), np.eye(size))
    writer.states = cv.LinearGaussianChain(
        writer.rename("states"),
        mean,
        np.eye(size),
        transition,
        precision,
        along=writer.obs,  # type: ignore[arg-type]
        **_starts(writer, "states/starts"),
        **inputs,
    )
