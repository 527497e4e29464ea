"""Leaves with links, known parts, tables, sparse effects, states of chains, and parameters with tabulated factors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import caviar as cv
from caviar.language import Label

from .writer import Writer

__all__ = ["LEAVES", "possible"]

Plates = tuple[cv.Plate, ...]


def possible(writer: Writer, plates: Plates) -> list[str]:
    """Return the kinds of leaf that can be stated on these plates."""
    if not writer.is_wide:
        return []
    if writer.known_only:
        return ["Potential"] if _labels(writer, plates) else []
    missing = {"Potential"} if not _labels(writer, plates) else set()
    missing |= {"states"} if writer.states is None or writer.obs not in plates else set()
    missing |= _OF_ROWS if writer.obs not in plates else set()
    missing |= {"Student"} if writer.has_chain else set()
    return [name for name in LEAVES if name not in missing]


def _labels(writer: Writer, plates: Plates) -> list[Any]:
    """Return the gates that are hidden labels."""
    gates = (gate for gate, _ in writer.fitting(plates))
    return [gate for gate in gates if isinstance(getattr(gate, "node", gate), Label)]


def potential(writer: Writer, name: str, plates: Plates) -> Any:
    """Return a table of log densities over a label."""
    gate = writer.pick(f"{name}/label", _labels(writer, plates))
    leaf = cv.Potential(writer.rename(name), gate, plates=plates)
    writer.given[name] = ("covariate", plates, leaf.dimension or 1)
    return leaf


def binary(writer: Writer, name: str, plates: Plates) -> Any:
    """Return answers or counts of answers behind a predictor."""
    writer.has_predictor = True
    predictor, label = writer.predictor(f"{name}.eta", plates), writer.rename(name)
    link = writer.pick(f"{name}/link", (cv.logistic, cv.probit))
    if link is cv.logistic and writer.pick(f"{name}/counted", (False, True)):
        return cv.Binomial(label, writer.pick(f"{name}/of", (3, 1)), link(predictor), plates=plates)
    return cv.Bernoulli(label, link(predictor), plates=plates)


def overdispersed(writer: Writer, name: str, plates: Plates) -> Any:
    """Return counts whose variance is above their mean."""
    writer.has_predictor = True
    label = writer.rename(name)
    if writer.pick(f"{name}/link", (False, True)):
        mean = cv.exp(writer.predictor(f"{name}.eta", plates))
        return cv.NegativeBinomial(label, mean, 2.5, plates=plates)
    size: Any = 1.5
    if writer.pick(f"{name}/size", ("known", "unknown")) == "unknown":
        size = cv.Gamma(writer.rename(f"{name}.size"), 3.0, 1.5)
    return cv.NegativeBinomial(label, writer.scale(f"{name}.rate", plates), size, plates=plates)


def ordered(writer: Writer, name: str, plates: Plates) -> Any:
    """Return ordered categories."""
    writer.has_predictor = True
    eta = writer.predictor(f"{name}.eta", plates)
    return cv.Categorical(writer.rename(name), cv.ordered(eta, [-0.7, 0.9]), plates=plates)


def several(writer: Writer, name: str, plates: Plates) -> Any:
    """Return categories with a predictor for each, or for each stick that is broken."""
    writer.has_predictor = True
    link = writer.pick(f"{name}/link", (cv.stick_breaking, cv.softmax))
    kinds = writer.plate(f"{name}.kinds", writer.pick(f"{name}/length", (2, 3)))
    weights = cv.MultivariateNormal(writer.rename(f"{name}.w"), np.zeros(2), np.eye(2), plates=kinds)
    x = writer.known(f"{name}.x", "covariate", writer.local_plates(f"{name}.x", plates), 2)
    return cv.Categorical(writer.rename(name), link(cv.dot(x, weights)), plates=plates)


def censored(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers of which some are known by an interval."""
    writer.has_predictor = True
    mean, precision = writer.location(f"{name}.mean", plates), writer.scale(f"{name}.scale", plates)
    kind = writer.known(f"{name}.kind", "censoring", writer.local_plates(f"{name}.kind", plates))
    until = writer.known(f"{name}.until", "ends", writer.local_plates(f"{name}.until", plates))
    return cv.CensoredNormal(writer.rename(name), mean, precision, censored=kind, until=until, plates=plates)


def truncated(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers that are seen inside a window only."""
    writer.has_predictor = True
    mean, precision = writer.location(f"{name}.mean", plates), writer.scale(f"{name}.scale", plates)
    ends = writer.pick(f"{name}/ends", ({"lower": -4.0}, {"upper": 5.0}, {"lower": -6.0, "upper": 7.0}))
    return cv.TruncatedNormal(writer.rename(name), mean, precision, plates=plates, **ends)


def unknown_shape(writer: Writer, name: str, plates: Plates) -> Any:
    """Return positive numbers whose shape is unknown."""
    shape = writer.parent(
        f"{name}.shape", plates, lambda p, own: cv.Gamma(writer.rename(p), 3.0, 1.5, plates=own), a_row=False
    )
    return cv.Gamma(writer.rename(name), shape, writer.scale(f"{name}.rate", plates), plates=plates)


def student(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers with Student-t noise of unknown degrees of freedom."""
    writer.has_predictor = True
    df = cv.Gamma(writer.rename(f"{name}.df"), 4.0, 1.0)
    scale = cv.Gamma(writer.rename(f"{name}.u"), df / 2, df / 2, plates=plates)
    precision = scale * writer.parent(
        f"{name}.tau", plates, lambda p, own: writer.gamma(p, own, 1), a_row=False
    )
    return cv.Normal(writer.rename(name), writer.location(f"{name}.mean", plates), precision, plates=plates)


def unknown_concentration(writer: Writer, name: str, plates: Plates) -> Any:
    """Return categories or answers of groups whose probabilities are alike, it is not known how much."""
    total = cv.Gamma(writer.rename(f"{name}.total"), 3.0, 1.5)
    kind = writer.pick(f"{name}/around", ("equal", "known", "sticks", "beta", "each"))

    def make(path: str, own: Plates) -> Any:
        label = writer.rename(path)
        if kind == "equal":
            return cv.Dirichlet(label, total, categories=3, plates=own)
        if kind == "beta":
            return cv.Beta(label, 0.3 * total, 0.7 * total, plates=own)
        if kind == "each":
            category = cv.Plate(writer.rename(f"{path}.category"), 3)
            return cv.Dirichlet(
                label, cv.Gamma(writer.rename(f"{path}.each"), 3.0, 1.5, plates=category), plates=own
            )
        shares: Any = cv.Constant(writer.rename(f"{path}.shares"), [0.2, 0.3, 0.5])
        if kind == "sticks":
            shares = cv.StickBreaking(writer.rename(f"{path}.shares"), 1.5, 3)
            return cv.Dirichlet(label, 2.0 * shares, plates=own)
        return cv.Dirichlet(label, total * shares, plates=own)

    probabilities = writer.parent(f"{name}.parent", plates, make, a_row=False)
    if kind == "beta":
        return cv.Bernoulli(writer.rename(name), probabilities, plates=plates)
    if writer.pick(f"{name}/counted", (False, True)):
        return cv.Multinomial(writer.rename(name), 4, probabilities, plates=plates)
    return cv.Categorical(writer.rename(name), probabilities, plates=plates)


def sparse(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers with sums of sparse vectors of effects."""
    writer.has_predictor = True
    x = writer.known(f"{name}.x", "covariate", writer.local_plates(f"{name}.x", plates), 3)
    total: Any = 0.0
    for i in range(writer.pick(f"{name}/effects", (1, 2))):
        path = writer.rename(f"{name}.{i}")
        precision: Any = 1.5
        if writer.pick(f"{name}.{i}/precision", ("known", "unknown")) == "unknown":
            precision = cv.Gamma(f"{path}.precision", 3.0, 2.0)
        if writer.pick(f"{name}.{i}/kind", ("one", "any")) == "one":
            prior: Any = [0.2, 0.3, 0.5]
            if writer.pick(f"{name}.{i}/prior", ("known", "unknown")) == "unknown":
                prior = cv.Dirichlet(f"{path}.prior", np.ones(3))
            effect: Any = cv.SingleEffect(path, prior, 0.0, precision)
        else:
            prior = 0.4
            if writer.pick(f"{name}.{i}/prior", ("known", "unknown")) == "unknown":
                prior = cv.Beta(f"{path}.prior", 1.5, 2.0)
            effect = cv.SpikeSlab(path, prior, 0.0, precision, length=3)
        total = total + cv.dot(x, effect)
    return cv.Normal(writer.rename(name), total, writer.scale(f"{name}.scale", plates), plates=plates)


def numbers_zero_or_one(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers with effects that may be absent."""
    writer.has_predictor = True
    total: Any = 0.0
    for i in range(writer.pick(f"{name}/effects", (1, 2))):
        path = f"{name}.{i}"
        chance: Any = 0.4
        if writer.pick(f"{path}/chance", ("known", "unknown")) == "unknown":
            chance = cv.logistic(cv.Normal(writer.rename(f"{path}.eta"), 0.0, 1.0))
        present = cv.Bernoulli(writer.rename(f"{path}.in"), chance)
        effect = writer.parent(path, plates, lambda p, own: writer.unshared(p, own), a_row=False)
        x = writer.known(f"{path}.x", "covariate", writer.local_plates(f"{path}.x", plates))
        total = total + present * effect * x
    return cv.Normal(writer.rename(name), total, writer.scale(f"{name}.scale", plates), plates=plates)


def sum_of_vectors(writer: Writer, name: str, plates: Plates) -> Any:
    """Return vectors whose mean is a sum of vectors, one of them times numbers."""
    writer.has_predictor = True
    size = writer.pick(f"{name}/length", (2, 1))
    first, second = (
        writer.parent(
            f"{name}.{which}", plates, lambda p, own: writer.vector_root(p, own, size, 2), a_row=False
        )
        for which in ("one", "other")
    )
    x = writer.known(f"{name}.x", "covariate", writer.local_plates(f"{name}.x", plates))
    matrix = writer.matrix(f"{name}.matrix", plates, size, 1)
    return cv.MultivariateNormal(writer.rename(name), first + second * x, matrix, plates=plates)


def widths(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers with weights whose widths are products, or are chosen by labels."""
    writer.has_predictor = True
    entry = writer.plate(f"{name}.entry", 3)
    own: Any = cv.Gamma(writer.rename(f"{name}.own"), 2.0, 1.0, plates=entry)
    if writer.pick(f"{name}/widths", ("product", "chosen")) == "product":
        precision = cv.Gamma(writer.rename(f"{name}.common"), 2.0, 1.0) * own
    else:
        narrow = cv.Categorical(writer.rename(f"{name}.narrow"), [0.4, 0.6], plates=entry)
        constant = cv.Constant(
            writer.rename(f"{name}.widths"), [1.0, 20.0], plates=writer.plate(f"{name}.two", 2)
        )
        precision = constant[narrow]
    w = cv.MultivariateNormal(writer.rename(f"{name}.w"), np.zeros(3), cv.diagonal(precision))
    x = writer.known(f"{name}.x", "covariate", writer.local_plates(f"{name}.x", plates), 3)
    return cv.Normal(writer.rename(name), cv.dot(x, w), writer.scale(f"{name}.scale", plates), plates=plates)


def states(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers, counts or answers about the states of a chain of vectors."""
    chain: Any = writer.states
    size = chain.dimension
    if writer.pick(f"{name}/vectors", (False, True)):
        matrix = writer.matrix(f"{name}.matrix", plates, size, 1)
        return cv.MultivariateNormal(writer.rename(name), chain, matrix, plates=plates)
    eta: Any = cv.dot(np.arange(1.0, size + 1), chain)
    if writer.pick(f"{name}/loaded", (False, True)):
        loadings = cv.MultivariateNormal(writer.rename(f"{name}.w"), np.ones(size), np.eye(size))
        eta = cv.dot(loadings, chain)
    if writer.pick(f"{name}/beside", (False, True)):
        eta = eta + writer.parent(f"{name}.level", plates, lambda p, own: writer.unshared(p, own))
    if writer.pick(f"{name}/link", (False, True)):
        return cv.Bernoulli(writer.rename(name), cv.logistic(eta), plates=plates)
    return cv.Normal(writer.rename(name), eta, writer.scale(f"{name}.scale", plates), plates=plates)


def frequencies(writer: Writer, name: str, plates: Plates) -> Any:
    """Return numbers or answers about how often each label occurs among some of the row."""
    writer.has_predictor = True
    size = writer.pick(f"{name}/categories", (2, 3))
    shares: Any = np.full(size, 1 / size)
    if writer.pick(f"{name}/shares", ("known", "unknown")) == "unknown":
        shares = cv.Dirichlet(writer.rename(f"{name}.shares"), np.full(size, 1.5))
    position = writer.plate(f"{name}.position", 3)
    z = cv.Categorical(writer.rename(f"{name}.z"), shares, plates=(writer.obs, position))
    weights = writer.pick(f"{name}/weights", (None, np.array([0.5, 0.0, -1.0])))
    b = cv.MultivariateNormal(writer.rename(f"{name}.b"), np.arange(size), np.eye(size))
    eta = cv.dot(b, cv.Frequencies(writer.rename(f"{name}.f"), z, weights=weights))
    if writer.pick(f"{name}/link", (False, True)):
        return cv.Bernoulli(writer.rename(name), cv.logistic(eta), plates=plates)
    return cv.Normal(writer.rename(name), eta, writer.scale(f"{name}.scale", plates), plates=plates)


LEAVES: dict[str, Callable[[Writer, str, Plates], Any]] = {
    "Potential": potential,
    "binary": binary,
    "overdispersed": overdispersed,
    "ordered": ordered,
    "several": several,
    "censored": censored,
    "truncated": truncated,
    "unknown shape": unknown_shape,
    "Student": student,
    "unknown concentration": unknown_concentration,
    "sparse": sparse,
    "numbers 0 or 1": numbers_zero_or_one,
    "sum of vectors": sum_of_vectors,
    "widths": widths,
    "states": states,
    "frequencies": frequencies,
}
_OF_ROWS = {
    "frequencies",
    "several",
    "censored",
    "sparse",
    "numbers 0 or 1",
    "sum of vectors",
    "widths",
    "Student",
}
