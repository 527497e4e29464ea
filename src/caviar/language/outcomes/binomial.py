"""The Binomial: how many of a known number of trials succeeded."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, gammaln, log_expit

from ... import families
from ..._errors import ModelError
from ..._typing import AnyArray, Array
from ...families.base.family import draw_shape
from ..nodes.algebra import Link, LinkOfProbability
from ..nodes.expected_slots import ExpectedSlots
from ..nodes.node import Expression, Indexed, Node
from ..nodes.plates import Plates
from ..nodes.roles import PROBABILITY, TRIALS
from ..nodes.templates import LOG_2, Density, template
from .batches import Batch
from .counts import CountAnswer
from .expectations import MomentsOfTrials
from .links import Hidden, Logistic, LogisticOfNormal, PolyaGammaOfSeveral
from .nodes_of_predictors import nodes, probability_at


class PolyaGammaOfTrials(PolyaGammaOfSeveral):
    r"""The Polya-Gamma number of an answer of n trials: a sum of those of its trials.

    .. math:: \omega \sim PG(n, 0); \qquad \omega \mid y, \eta \sim PG(n, |\eta|)
    """

    term: ClassVar[Density] = template(
        (1, "self.x probability.x"),
        (-1 / 2, "trials.x probability.x"),
        (-1 / 2, "trials.x hidden.x probability.xx"),
        (1, "trials.x hidden.relative_entropy"),
        (-LOG_2, "trials.x"),
    )

    def distribution_given(self, slots: Mapping[str, Any]) -> families.PolyaGammaSum:
        """Return the distribution given the predictor and the trials; it does not depend on the answer."""
        shape = np.broadcast_shapes(*(np.shape(slots[name]) for name in ("answer", "predictor", "trials")))
        tilt = np.broadcast_to(np.abs(slots["predictor"]), shape)
        return families.PolyaGammaSum(np.broadcast_to(slots["trials"], shape), tilt)


_HIDDEN: Mapping[type[Link], type[Hidden]] = {Logistic: PolyaGammaOfTrials, LogisticOfNormal: MomentsOfTrials}


class Binomial(CountAnswer):
    r"""The number of successes in n trials.

    .. math:: \log \mathrm{Bin}(x \mid n, p) = x\log p + (n - x)\log(1 - p) + \log \binom{n}{x}

    It must be observed, because the expectation of the log binomial coefficient has no closed form.

    Parameters
    ----------
    name
        Name of the variable, unique within the model.
    trials
        Number of trials n: a number, an array over the last plates, or :class:`Data`, whose values come with the data.
    probability
        Probability of a success: a number, an array or a Beta; or :func:`logistic` of a predictor, which adds the
        hidden variable ``"y.polya_gamma"`` to the model, one PG(n, 0) number for each observation.
    plates
        Plates along which the variable is repeated.

    Notes
    -----
    The ELBO is that of n Bernoulli outcomes with the same predictor, plus the log binomial coefficient; the cost does
    not depend on n. Polson, Scott and Windle (2013).

    Examples
    --------
    >>> import caviar as cv
    >>> hospital, rate = cv.Plate("hospital"), cv.Beta("rate", 1, 1)
    >>> model = cv.Model(cv.Binomial("deaths", cv.Data("operations", plates=hospital), rate, plates=hospital))
    >>> model.fit({"deaths": [0, 18, 8], "operations": [47, 148, 119]})["rate"]
    Beta(
        a=27.0,
        b=289.0,
    )  # batch ()
    """

    family = families.Bernoulli
    """Of one trial: the statistic and natural parameter of the sum are the same."""
    letters: ClassVar = {"x": ""}
    base = template((1, "self.log_carrier"))
    density = template(
        (1, "probability.log_x self.x"),
        (-1, "probability.log_complement self.x"),
        (1, "trials.x probability.log_complement"),
    )
    zeros = template((1, "probability.zero_x self.x"), (1, "probability.zero_complement self.complement"))
    beside = ("trials",)

    def __init__(
        self, name: str, trials: Expression, probability: Expression, *, plates: Plates = ()
    ) -> None:
        if isinstance(trials, Indexed) or (isinstance(trials, Node) and not trials.is_known):
            raise ModelError(
                f"'trials' of Binomial '{name}' must be known: a number, an array, a Data or a Constant; got "
                f"{trials!r}. Give the trials of each answer with the data: Data('trials', plates=...)"
            )
        own = {"trials": (trials, TRIALS)}
        if isinstance(probability, Logistic):
            self._state_link(name, plates, "probability", probability, _HIDDEN[type(probability)], **own)
        elif isinstance(probability, LinkOfProbability):
            raise ModelError(
                f"'probability' of Binomial '{name}' takes logistic(...) of a predictor, not "
                f"{probability!r}. State a Bernoulli with a row for each success and each failure, or with "
                f"two rows and their numbers as sample_weight="
            )
        else:
            self._state(name, plates, {**own, "probability": (probability, PROBABILITY)}, dimension=1)

    def unlinked(self, value: Array, known: Mapping[str, Array]) -> Array:
        """Return log-odds of shares of successes, with half a success and half a failure more."""
        return np.log(value + 0.5) - np.log(known["trials"] - value + 0.5)

    def distribution_given(self, slots: Mapping[str, Any]) -> Any:
        """Return the distribution of the number of successes."""
        probability = np.asarray(slots["probability"], dtype=np.float64)
        if self.hidden is not None:
            odds = probability
        else:
            with np.errstate(divide="ignore"):
                odds = np.log(probability) - np.log1p(-probability)
        shape = np.broadcast_shapes(np.shape(slots["trials"]), odds.shape)
        return Successes(np.broadcast_to(slots["trials"], shape), np.broadcast_to(odds, shape))

    def moments_given(self, slots: ExpectedSlots) -> tuple[Array, Array]:
        """Return mean and variance."""
        trials, _ = slots.entries("trials")
        stated = self.stated["probability"]
        if isinstance(stated, LinkOfProbability):
            mean, variance = slots.normal(stated.predictor)
            yes, no = stated.expected(mean, variance)
            product = stated.expected_product(mean, variance)
            spread = np.maximum(yes * no - product, 0.0)
        else:
            yes, spread = slots.entries("probability")
            product = yes * (1.0 - yes) - spread
        return trials * yes, trials * product + np.square(trials) * spread

    def parts_given(
        self, slots: ExpectedSlots, mean: Array, variance: Array
    ) -> list[tuple[Array, Array, Array]]:
        """Return Binomials at a few values of the probability."""
        trials, _ = slots.entries("trials")
        stated = self.stated["probability"]
        is_link = isinstance(stated, LinkOfProbability)
        center, width = slots.normal(stated.predictor) if is_link else slots.entries("probability")
        wide = np.sqrt(width)
        with np.errstate(divide="ignore", invalid="ignore"):
            own = mean * (1.0 - mean / trials)
            ratio = wide * np.sqrt(own) if is_link else wide * trials / np.sqrt(own)
        found = []
        for place, weight in nodes(ratio):
            yes = expit(center + place * wide) if is_link else probability_at(place, center, width)
            found.append((np.asarray(weight), trials * yes, trials * yes * (1.0 - yes)))
        return found

    def statistic_beside(self, name: str, value: AnyArray, known: Mapping[str, AnyArray]) -> Array:
        """Return the number of successes or of failures, or the logarithm of the binomial coefficient."""
        x = np.asarray(value, dtype=np.float64)
        # what is missing lies anywhere, and counts nothing
        failures = np.maximum(known["trials"] - x, 0.0)
        if name == "complement":
            return failures
        if name != "log_carrier":
            return x
        return gammaln(x + failures + 1.0) - gammaln(x + 1.0) - gammaln(failures + 1.0)

    def problem_beside(self, value: AnyArray, known: Mapping[str, AnyArray]) -> str:
        """Return what is wrong with more successes than trials."""
        trials = np.broadcast_to(known["trials"], value.shape)
        wrong = value > trials
        if not np.any(wrong):
            return ""
        where = tuple(np.argwhere(wrong)[0])
        place = f"; row {where[0]} has" if where else "; got"
        return f"must not exceed its trials{place} {value[where]:g} successes in {trials[where]:g} trials"


@dataclass(frozen=True)
class Successes(Batch):
    """Binomial distributions, to be drawn from and evaluated.

    Attributes
    ----------
    trials
        Of the batch shape.
    log_odds
        Of a success, of the batch shape.
    """

    trials: AnyArray
    log_odds: Array

    def sample(self, size: int | tuple[int, ...] | None, seed: int | np.random.Generator | None) -> AnyArray:
        """Return counts of shape size + batch."""
        probability = np.exp(log_expit(self.log_odds))
        trials = np.asarray(self.trials, dtype=np.int64)
        return np.asarray(
            np.random.default_rng(seed).binomial(trials, probability, draw_shape(size, self.batch_shape))
        )

    def log_density(self, value: AnyArray) -> Array:
        """Return the log-probability of counts; minus infinity outside 0 to n."""
        x = np.asarray(value, dtype=np.float64)
        inside = (x >= 0) & (x <= self.trials) & (x == np.floor(x))
        x = np.where(inside, x, 0.0)
        rest = self.trials - x
        choices = gammaln(np.asarray(self.trials) + 1.0) - gammaln(x + 1.0) - gammaln(rest + 1.0)
        # at a probability of 0 or 1 one of the logarithms is minus infinity
        with np.errstate(invalid="ignore"):
            successes = np.where(x > 0, x * log_expit(self.log_odds), 0.0)
            failures = np.where(rest > 0, rest * log_expit(-self.log_odds), 0.0)
        return np.where(inside, choices + successes + failures, -np.inf)
