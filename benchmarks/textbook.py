"""Six models of textbooks, none used in development, beside NUTS: means, standard deviations and 90% intervals.

    python -m pip install numpyro
    OMP_NUM_THREADS=1 python benchmarks/textbook.py [--draws 4000] [--only NAME]

The models are stated twice, in caviar and in NumPyro, with the same priors; the data are written out here. caviar's
standard deviations and intervals are those that it shows by default, and those of ``posterior.importance_sample`` where
it is possible. The table is the one of docs/uncertainty.md.

Sources: eight schools, Rubin (1981), in Gelman et al., *Bayesian Data Analysis*; rats, Gelfand et al. (1990); dyes, Box
and Tiao (1973); stack loss, Brownlee (1965); eyes, Bowmaker et al. (1985); LSAT, Bock and Lieberman (1970). The last
five are in the examples of WinBUGS.
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from scipy.special import gammaln

import caviar as cv

OBS = cv.Plate("obs")
Draws = dict[str, np.ndarray]


@dataclass(frozen=True)
class Textbook:
    """A model, stated twice.

    Attributes
    ----------
    name
        Of the model.
    model, data
        For caviar.
    nuts
        The same as a function for NumPyro.
    told
        Name for both -> what is compared: indices into the variable, all if None. "sd NAME" is the standard deviation
        that belongs to a precision.
    over
        Precisions to integrate over.
    of_draws
        Changes draws before they are compared, as components in order.
    fitted
        More arguments of the fit.
    """

    name: str
    model: cv.Model
    data: dict[str, Any]
    nuts: Callable[[], None]
    told: dict[str, Any]
    over: tuple[str, ...] = ()
    of_draws: Callable[[Draws], Draws] = lambda draws: draws
    fitted: dict[str, Any] = field(default_factory=dict)


def half_t(name: str, scale: float, plates: Any = ()) -> cv.Gamma:
    """Return a precision whose standard deviation is half-t with 4 degrees of freedom and this scale."""
    return cv.Gamma(
        name, 2.0, cv.Gamma(f"rate of {name}", 0.5, 1.0 / (4.0 * scale**2), plates=plates), plates=plates
    )


def nuts_half_t(name: str, scale: float) -> Any:
    """Sample the same precision with NumPyro."""
    import numpyro
    import numpyro.distributions as dist

    rate = numpyro.sample(f"rate of {name}", dist.Gamma(0.5, 1.0 / (4.0 * scale**2)))
    return numpyro.sample(name, dist.Gamma(2.0, rate))


def eight_schools() -> Textbook:
    """Return effects of coaching in eight schools, each with a known standard error."""
    effect = np.array([28.0, 8.0, -3.0, 7.0, -1.0, 1.0, 18.0, 12.0])
    error = np.array([15.0, 10.0, 16.0, 11.0, 9.0, 11.0, 10.0, 18.0])
    mu = cv.Normal("mu", 0.0, 1 / 20.0**2)
    theta = cv.Normal("theta", mu, half_t("between", 10.0), plates=OBS)
    y = cv.Normal("y", theta, cv.Data("known", plates=OBS), plates=OBS)

    def nuts() -> None:
        import numpyro
        import numpyro.distributions as dist

        level = numpyro.sample("mu", dist.Normal(0.0, 20.0))
        between = nuts_half_t("between", 10.0)
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([8]))
        numpyro.sample("y", dist.Normal(level + z / between**0.5, error), obs=effect)

    return Textbook(
        "eight schools",
        cv.Model(y),
        {"y": effect, "known": error**-2.0},
        nuts,
        {"mu": None, "sd between": None},
        ("between",),
    )


RATS = """151 199 246 283 320 145 199 249 293 354 147 214 263 312 328 155 200 237 272 297 135 188 230 280 323
159 210 252 298 331 141 189 231 275 305 159 201 248 297 338 177 236 285 350 376 134 182 220 260 296
160 208 261 313 352 143 188 220 273 314 154 200 244 289 325 171 221 270 326 358 163 216 242 281 312
160 207 248 288 324 142 187 234 280 316 156 203 243 283 317 157 212 259 307 336 152 203 246 286 321
154 205 253 298 334 139 190 225 267 302 146 191 229 272 302 157 211 250 285 323 132 185 237 286 331
160 207 257 303 345 169 216 261 295 333 157 205 248 289 316 137 180 219 258 291 153 200 244 286 324"""


def rats() -> Textbook:
    """Return growth curves of 30 rats: an intercept and a slope each, correlated."""
    weight = np.array(RATS.split(), dtype=float)
    day = np.tile(np.array([8.0, 15.0, 22.0, 29.0, 36.0]) - 22.0, 30)
    rat, design = np.repeat(np.arange(30), 5), np.column_stack([np.ones(150), day])
    mu = cv.MultivariateNormal("mu", np.array([240.0, 6.0]), np.diag([1e-4, 1e-2]))
    spread = cv.Wishart("spread", 3.0, np.diag([200.0, 0.2]))
    growth = cv.MultivariateNormal("growth", mu, spread, plates=cv.Plate("rat", 30))
    mean = cv.dot(cv.Data("X", plates=OBS), growth[cv.Data("rat", plates=OBS)])
    y = cv.Normal("y", mean, half_t("tau", 10.0), plates=OBS)

    def nuts() -> None:
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        level = numpyro.sample(
            "mu", dist.MultivariateNormal(jnp.array([240.0, 6.0]), jnp.diag(jnp.array([1e4, 1e2])))
        )
        scale = jnp.diag(1.0 / jnp.array([200.0, 0.2]))
        lower = numpyro.sample("lower", dist.WishartCholesky(3.0, scale))
        numpyro.deterministic("spread", lower @ lower.T)
        own = numpyro.sample(
            "growth", dist.MultivariateNormal(level, precision_matrix=lower @ lower.T).expand([30])
        )
        tau = nuts_half_t("tau", 10.0)
        numpyro.sample("y", dist.Normal((design * own[rat]).sum(-1), tau**-0.5), obs=weight)

    told = {"mu": None, "spread": ([0, 1], [0, 1]), "growth": ([0, 0], [0, 1]), "sd tau": None}
    return Textbook("rats", cv.Model(y), {"y": weight, "X": design, "rat": rat}, nuts, told, ("spread",))


DYES = """1545 1440 1440 1520 1580 1540 1555 1490 1560 1495 1595 1550 1605 1510 1560
1445 1440 1595 1465 1545 1595 1630 1515 1635 1625 1520 1455 1450 1480 1445"""


def dyes() -> Textbook:
    """Return the yield of six batches of dye, five samples each."""
    amount, batch = np.array(DYES.split(), dtype=float), np.repeat(np.arange(6), 5)
    mu = cv.Normal("mu", 1500.0, 1e-4)
    own = cv.Normal("batch", 0.0, half_t("between", 50.0), plates=cv.Plate("batches", 6))
    y = cv.Normal("y", mu + own[cv.Data("of", plates=OBS)], half_t("tau", 50.0), plates=OBS)

    def nuts() -> None:
        import numpyro
        import numpyro.distributions as dist

        level = numpyro.sample("mu", dist.Normal(1500.0, 100.0))
        between, tau = nuts_half_t("between", 50.0), nuts_half_t("tau", 50.0)
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([6]))
        own = numpyro.deterministic("batch", z / between**0.5)
        numpyro.sample("y", dist.Normal(level + own[batch], tau**-0.5), obs=amount)

    told = {"mu": None, "batch": ([0, 4],), "sd between": None, "sd tau": None}
    return Textbook("dyes", cv.Model(y), {"y": amount, "of": batch}, nuts, told, ("between",))


STACK_LOSS = """42 37 37 28 18 18 19 20 15 14 14 13 11 12 8 7 8 8 9 15 15
80 80 75 62 62 62 62 62 58 58 58 58 58 58 50 50 50 50 50 56 70
27 27 25 24 22 23 24 24 23 18 18 17 18 19 18 18 19 19 20 20 20
89 88 90 87 87 87 93 93 87 80 89 88 82 93 89 86 72 79 80 82 91"""


def stack_loss() -> Textbook:
    """Return the loss of ammonia by three measurements, with Student-t noise of 4 degrees of freedom."""
    table = np.array(STACK_LOSS.split(), dtype=float).reshape(4, 21)
    loss, columns = table[0], table[1:].T
    design = np.column_stack([np.ones(21), (columns - columns.mean(axis=0)) / columns.std(axis=0)])
    w = cv.MultivariateNormal("w", np.array([17.0, 0.0, 0.0, 0.0]), 1e-2 * np.eye(4))
    weight = cv.Gamma("weight", 2.0, 2.0, plates=OBS)
    y = cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), w), weight * half_t("tau", 5.0), plates=OBS)

    def nuts() -> None:
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        own = numpyro.sample("w", dist.Normal(jnp.array([17.0, 0.0, 0.0, 0.0]), 10.0))
        tau = nuts_half_t("tau", 5.0)
        numpyro.sample("y", dist.StudentT(4.0, design @ own, tau**-0.5), obs=loss)

    told = {"w": None, "sd tau": None}
    return Textbook("stack loss", cv.Model(y), {"y": loss, "X": design}, nuts, told, ("tau",))


EYES = """529.0 530.0 532.0 533.1 533.4 533.6 533.7 534.1 534.8 535.3 535.4 535.9 536.1 536.3 536.4 536.6 537.0 537.4
537.5 538.3 538.5 538.6 539.4 539.6 540.4 540.8 542.0 542.8 543.0 543.5 543.8 543.9 545.3 546.2 548.8 548.7 548.9 549.0
549.4 549.9 550.6 551.2 551.4 551.5 551.6 552.8 552.9 553.2"""


def eyes() -> Textbook:
    """Return peaks of the sensitivity of 48 eyes: a mixture of two Normals with one precision."""
    peak = np.array(EYES.split(), dtype=float)
    z = cv.Categorical("z", cv.Dirichlet("weights", [1.0, 1.0]), plates=OBS)
    mean = cv.Normal("mean", 540.0, 1 / 20.0**2, plates=cv.Plate("component", 2))
    y = cv.Normal("y", mean[z], half_t("tau", 5.0), plates=OBS)

    def nuts() -> None:
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        weights = numpyro.sample("weights", dist.Dirichlet(jnp.ones(2)))
        own = numpyro.sample("mean", dist.Normal(540.0, 20.0).expand([2]))
        tau = nuts_half_t("tau", 5.0)
        numpyro.sample(
            "y", dist.MixtureSameFamily(dist.Categorical(weights), dist.Normal(own, tau**-0.5)), obs=peak
        )

    def in_order(draws: Draws) -> Draws:
        order = np.argsort(draws["mean"], axis=1)
        return draws | {name: np.take_along_axis(draws[name], order, axis=1) for name in ("mean", "weights")}

    told = {"mean": None, "weights": ([0],), "sd tau": None}
    return Textbook("eyes", cv.Model(y), {"y": peak}, nuts, told, of_draws=in_order)


LSAT = """3 6 2 11 1 1 3 4 1 8 0 16 0 3 2 15 10 29 14 81 3 28 15 80 16 56 21 173 11 61 28 298"""


def lsat() -> Textbook:
    """Return the answers of 1,000 students to five questions: Rasch's model."""
    patterns = np.array([[number >> (4 - item) & 1 for item in range(5)] for number in range(32)])
    answers = np.repeat(patterns, np.array(LSAT.split(), dtype=int), axis=0).astype(float)
    student, item = (own.ravel() for own in np.indices(answers.shape))
    ability = cv.Normal("ability", 0.0, half_t("precision", 2.0), plates=cv.Plate("student", 1000))
    ease = cv.Normal("ease", 0.0, 0.1, plates=cv.Plate("item", 5))
    predictor = ability[cv.Data("student", plates=OBS)] + ease[cv.Data("item", plates=OBS)]
    y = cv.Bernoulli("y", cv.logistic(predictor, method="expectation"), plates=OBS)

    def nuts() -> None:
        import numpyro
        import numpyro.distributions as dist

        precision = nuts_half_t("precision", 2.0)
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([1000]))
        own = numpyro.sample("ease", dist.Normal(0.0, 10**0.5).expand([5]))
        numpyro.sample("y", dist.Bernoulli(logits=z[:, None] / precision**0.5 + own), obs=answers)

    data = {"y": answers.ravel(), "student": student, "item": item}
    told = {"ease": None, "sd precision": None}
    return Textbook("LSAT", cv.Model(y), data, nuts, told, fitted={"uncertainty": "linear_response"})


MODELS = (eight_schools, rats, dyes, stack_loss, eyes, lsat)


def drawn(book: Textbook, n_draws: int) -> Draws:
    """Return draws of NUTS: two chains, after 1,000 steps of warm-up each."""
    import jax
    import numpyro
    from numpyro.infer import MCMC, NUTS, init_to_median

    numpyro.enable_x64()
    kernel = NUTS(book.nuts, target_accept_prob=0.95, init_strategy=init_to_median)
    sampler = MCMC(
        kernel,
        num_warmup=1000,
        num_samples=n_draws // 2,
        num_chains=2,
        chain_method="sequential",
        progress_bar=False,
    )
    sampler.run(jax.random.PRNGKey(0))
    return book.of_draws({name: np.asarray(own) for name, own in sampler.get_samples().items()})


@dataclass(frozen=True, eq=False)
class Told:
    """What a method says of all numbers of a variable: means, standard deviations, lower and upper ends."""

    mean: np.ndarray
    sd: np.ndarray
    lower: np.ndarray
    upper: np.ndarray

    def at(self, place: Any) -> str:
        """Return the cells of one number."""
        ends = f"{self.lower[place]:.4g} to {self.upper[place]:.4g}"
        return f"{self.mean[place]:.4g} | {self.sd[place]:.3g} | {ends}"


def of_fit(posterior: cv.Posterior, name: str, as_sd: bool) -> Told:
    """Return what a posterior shows; of a precision as a standard deviation, by its Gamma if nothing else is known."""
    if as_sd and posterior.uncertainty == "integrated":
        # over this precision too, or the others would depend on it
        return of_integrated(posterior, name, as_sd)
    mean, sd = posterior.mean(name), posterior.sd(name)
    lower, upper = posterior.interval(name, 0.9)
    if not as_sd:
        return Told(mean, sd, lower, upper)
    shape, rate = (mean / sd) ** 2, mean / sd**2
    own = np.sqrt(rate) * np.exp(gammaln(shape - 0.5) - gammaln(shape))
    variance = np.where(shape > 1, rate / (shape - 1.0) - own**2, np.inf)
    return Told(own, np.sqrt(variance), upper**-0.5, lower**-0.5)


def of_weights(sample: Any, name: str, as_sd: bool) -> Told:
    """Return what importance sampling says."""
    values = np.asarray(sample.draws[name])
    values = values**-0.5 if as_sd else values
    weights = sample.weights
    mean = np.tensordot(weights, values, axes=1)
    sd = np.sqrt(np.tensordot(weights, (values - mean) ** 2, axes=1))
    ends = np.empty((2, *mean.shape))
    for place in np.ndindex(mean.shape):
        own = values[(slice(None), *place)]
        order = np.argsort(own)
        ends[(slice(None), *place)] = np.interp((0.05, 0.95), np.cumsum(weights[order]), own[order])
    return Told(mean, sd, ends[0], ends[1])


def of_integrated(found: Any, name: str, as_sd: bool) -> Told:
    """Return what is found by integrating over precisions."""
    if not as_sd:
        return Told(found.mean(name), found.sd(name), *found.interval(name, 0.9))
    own = found.transformed(lambda precision: precision**-0.5, name)
    return Told(own.mean, own.sd, *own.interval(0.9))


def of_draws(draws: np.ndarray, as_sd: bool) -> Told:
    """Return what a sampler says."""
    own = draws**-0.5 if as_sd else draws
    return Told(own.mean(axis=0), own.std(axis=0), *np.quantile(own, (0.05, 0.95), axis=0))


def sampled(posterior: cv.Posterior, data: dict[str, Any]) -> Any:
    """Return weighted draws of the posterior; None where there are none, or their weights are of no use."""
    try:
        found = posterior.importance_sample(data, n_draws=4000, seed=0)
    except cv.ModelError:
        return None
    return found if found.is_usable else None


def lines(book: Textbook, n_draws: int) -> Iterator[str]:
    """Yield a line of the table for each number."""
    start = time.process_time()
    posterior = book.model.fit(book.data, seed=0, tol=1e-10, max_iter=2000, **book.fitted)
    names = {name.removeprefix("sd ") for name in book.told}
    shown = {name: of_fit(posterior, name.removeprefix("sd "), name.startswith("sd ")) for name in book.told}
    seconds = time.process_time() - start
    start = time.process_time()
    integrated = posterior.integrated(book.data, book.over) if book.over else None
    of_lattice = f", integrated {time.process_time() - start:.1f} s" if integrated is not None else ""
    start = time.process_time()
    weighted = sampled(posterior, book.data)
    of_sampling = f", importance sampling {time.process_time() - start:.1f} s" if weighted is not None else ""
    start = time.process_time()
    draws = drawn(book, n_draws)
    of_nuts = time.process_time() - start
    order = np.argsort(posterior["mean"].mean) if "mean" in names else None
    first = f"{book.name}: {seconds:.2f} s{of_lattice}{of_sampling}, NUTS {of_nuts:.0f} s"
    for name, where in book.told.items():
        own, as_sd = name.removeprefix("sd "), name.startswith("sd ")
        theirs = of_draws(draws[own], as_sd)
        over = None if integrated is None else of_integrated(integrated, own, as_sd)
        places = list(np.ndindex(theirs.mean.shape)) if where is None else list(zip(*where, strict=True))
        for place in places:
            # components are in the order of their means
            mine = place if order is None or not place else (int(order[place[0]]), *place[1:])
            entry = name if not place else f"{name} {', '.join(str(number + 1) for number in place)}"
            by_lattice = "| | " if over is None else over.at(mine)
            by_weights = "| | " if weighted is None else of_weights(weighted, own, as_sd).at(mine)
            mine = f"{shown[name].at(mine)} | {by_lattice} | {by_weights}"
            yield f"| {first} | {entry} | {mine} | {theirs.at(place)} |"
            first = ""


def tabulate(
    what: str,
    methods: Sequence[str],
    models: Sequence[Callable[[], Textbook]],
    of: Callable[[Textbook, int], Iterator[str]],
) -> None:
    """Print the lines of models, as the command line asks.

    Parameters
    ----------
    what
        What the program does.
    methods
        What each three columns are of.
    models
        Each returns a model with its data.
    of
        Returns the lines of a model, for a number of draws of NUTS.
    """
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("--draws", type=int, default=4000, help="of NUTS")
    parser.add_argument("--only", help="part of the name of a model")
    asked = parser.parse_args()
    print(f"| model | number | {' | '.join(f'{own}mean | sd | 90%' for own in methods)} |")
    print("|" + "---|" * (2 + 3 * len(methods)))
    for make in models:
        book = make()
        if asked.only is None or asked.only in book.name:
            for line in of(book, asked.draws):
                print(line, flush=True)


def main() -> None:
    """Print the table."""
    what = "Fit models of textbooks with caviar and with NUTS."
    tabulate(what, ("", "integrated: ", "importance sampling: ", "NUTS: "), MODELS, lines)


if __name__ == "__main__":
    main()
