"""Candidates of a start: what each is made from, and where it begins."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from ...language import Indexed, MultivariateNormal, Normal, NormalGamma, Part, Predictor, Variable
from ..ascent.problem import Problem, statistics_of
from ..binding.clamped.factor import PointMass
from ..rows.row_map import RowMap
from ..rows.subsample import Sample
from .clustering.sequences import in_order
from .components.gates import gates_of
from .factors.prior import Start, prior_draw, prior_start
from .guesses.assignment import assigned
from .guesses.basis import Basis, Guess, Several, by_themselves
from .guesses.from_labels import from_labels
from .products.columns import Setting
from .products.indicators.guessed import indicators_of
from .products.labels import labels_of_products
from .products.rates.guessed import rates_of
from .products.scales import balanced
from .products.scores import scores_of
from .products.several.ways import factors_of
from .products.statement import multiplies_chains, with_told_axes


def basis_of(
    problem: Problem,
    sample: Sample,
    row_map: RowMap,
    rng: np.random.Generator,
    several: Several = by_themselves,
) -> Basis:
    """Return what the candidates of a start are made from: of a chain that is guessed, rows that follow each other."""
    gates = gates_of(problem)
    if any(gate.chain is not None for gate in gates) or (problem.chains and multiplies_chains(problem)):
        sample = in_order(row_map.source, problem.chains)
    q = prior_start(problem)
    multiplied = problem.fact("locations multiplied", lambda: multiplied_in(problem))
    told = with_told_axes(problem) if multiplied else set()
    for variable in multiplied:
        if variable not in told:
            q[variable] = prior_draw(problem, variable, statistics_of(problem, q), rng)
    host = RowMap(problem.rows, sample, row_map.executor.host)
    return Basis(problem, gates, sample, host, q, rng, several, has_told_axes=bool(told))


def start_from(basis: Basis, guess: Guess) -> Start:
    """Return the globals that follow from labels, each cluster in the component that it fits best."""
    problem, q, _ = from_labels(basis, assigned(basis, guess, from_labels))
    return balanced((problem, q))


def by_products(basis: Basis) -> Iterator[Guess]:
    """Yield labels of the rows that choose both numbers of a product: as many clusters as there are pairs."""
    yield from labels_of_products(Setting(basis.problem, basis.sample, {}), basis.rng)


def with_scores(basis: Basis, guess: Guess) -> Iterator[Basis]:
    """Yield bases in which hidden locations that are multiplied are guessed, of two one; none without products.

    Values of the rows are in the place of draws, and globals are held while the others are updated first.
    """
    problem = basis.problem
    setting = Setting(problem, basis.sample, guess)
    of_more = factors_of(setting, basis.rng)
    of_two = list(scores_of(setting, basis.rng)) or ([of_more] if of_more else [])
    for found in ({**of_more, **own} for own in of_two):
        points = {variable: own for variable, own in found.items() if variable not in problem.order}
        held = {
            variable: problem.with_known(variable, PointMass.of(variable, own))
            for variable, own in found.items()
            if variable in problem.order
        }
        yield replace(basis, points=points, held=held)


def with_rates(basis: Basis, **draws: int) -> Iterator[Basis]:
    """Yield a basis in which Gammas that are multiplied in rates are guessed; none where there are none.

    Those of the rows follow from the others. A draw ends lower, unless labels say more.
    """
    found = rates_of(Setting(basis.problem, basis.sample, {}), basis.rng, **draws)
    order = basis.problem.order
    held = {own: basis.problem.with_known(own, factor) for own, factor in found.items() if own in order}
    if held:
        yield replace(basis, held=held, follows=True, replaces_draw=not basis.gates)


def with_indicators(basis: Basis) -> Iterator[Basis]:
    """Yield bases in which hidden numbers 0 or 1 of the rows are guessed; none where there are none."""
    for found in indicators_of(Setting(basis.problem, basis.sample, {}), basis.rng):
        yield replace(basis, points=found)


def with_followers(basis: Basis, guess: Guess) -> Iterator[Basis]:
    """Yield a basis in which the chains beside guessed labels, and other hidden values, follow from these labels first.

    A draw of a Gaussian chain goes wherever the values go, and widths that follow from it let the chain make the jumps
    of the labels. None where no labels are guessed, or nothing else is hidden in the rows.
    """
    guessed = [factor for factor in basis.problem.factors if factor.variables[0] in guess]
    if basis.problem.chains and 0 < len(guessed) < len(basis.problem.factors):
        yield replace(basis, follows=True)


def multiplied_in(problem: Problem) -> list[Variable]:
    """Return the global locations that another one multiplies in a predictor.

    Where all of these have mean 0 the ELBO has a saddle point, at which no update moves any of them.
    """
    found: dict[Variable, None] = {}
    predictors = (
        stated
        for node in problem.bound.nodes
        if isinstance(node, Variable)
        for stated in node.stated.values()
        if isinstance(stated, Predictor)
    )
    for addend in (addend for predictor in predictors for addend in predictor.addends):
        nodes = [op.node if isinstance(op, Indexed | Part) else op for op in addend.operands]
        locations = [n for n in nodes if isinstance(n, Normal | MultivariateNormal | NormalGamma)]
        together = [n for n in locations if n in problem.order]
        if len(together) > 1:
            # one of them away from 0 is enough: a joint factor may stay
            found.update(dict.fromkeys(n for n in together if not isinstance(n, NormalGamma)))
    return list(found)
