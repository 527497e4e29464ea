"""Five more models of textbooks beside NUTS: what is shown by default, and what second order makes of it.

    python -m pip install numpyro
    OMP_NUM_THREADS=1 python benchmarks/textbook_more.py [--draws 4000] [--only NAME]

As ``textbook.py``, with models that were fitted here for the first time. Importance sampling is left out where a draw
would need hidden values that cannot be summed out. The table is the second one of docs/uncertainty.md.

Sources: beetles, Bliss (1935); jaws, Elston and Grizzle (1962); beta blockers, Carlin (1992); coal mines, Jarrett
(1979); teeth, Potthoff and Roy (1964).
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import numpy as np
from textbook import (
    OBS,
    Draws,
    Textbook,
    drawn,
    half_t,
    nuts_half_t,
    of_draws,
    of_fit,
    of_weights,
    sampled,
    tabulate,
)

import caviar as cv

BEETLES = """1.6907 1.7242 1.7552 1.7842 1.8113 1.8369 1.8610 1.8839 59 60 62 56 63 59 62 60 6 13 18 28 52 53 61 60"""


def beetles() -> Textbook:
    """Return how many beetles eight doses of a poison killed."""
    dose, n, killed = np.array(BEETLES.split(), dtype=float).reshape(3, 8)
    design = np.column_stack([np.ones(8), 10.0 * (dose - dose.mean())])
    w = cv.MultivariateNormal("w", np.zeros(2), 1e-2 * np.eye(2))
    y = cv.Binomial(
        "y", cv.Data("n", plates=OBS), cv.logistic(cv.dot(cv.Data("X", plates=OBS), w)), plates=OBS
    )

    def nuts() -> None:
        import numpyro
        import numpyro.distributions as dist

        own = numpyro.sample("w", dist.Normal(0.0, 10.0).expand([2]))
        numpyro.sample("y", dist.Binomial(n.astype(int), logits=design @ own), obs=killed)

    return Textbook("beetles", cv.Model(y), {"y": killed, "n": n, "X": design}, nuts, {"w": None})


JAWS = """47.8 48.8 49.0 49.7 46.4 47.3 47.7 48.4 46.3 46.8 47.8 48.5 45.1 45.3 46.1 47.2 47.6 48.5 48.9 49.3
52.5 53.2 53.3 53.7 51.2 53.0 54.3 54.5 49.8 50.0 50.3 52.7 48.1 50.8 52.3 54.4 45.0 47.0 47.3 48.3
51.2 51.4 51.6 51.9 48.5 49.2 53.0 55.5 52.1 52.8 53.7 55.0 48.2 48.9 49.3 49.8 49.6 50.4 51.2 51.8
50.7 51.7 52.7 53.3 47.2 47.7 48.4 49.5 53.3 54.6 55.1 55.3 46.2 47.5 48.1 48.4 46.3 47.6 51.3 51.8"""


def jaws() -> Textbook:
    """Return the height of the jaw of 20 boys at four ages: a mean and a precision matrix."""
    height = np.array(JAWS.split(), dtype=float).reshape(20, 4)
    mean = cv.MultivariateNormal("mu", 50.0 * np.ones(4), 1e-2 * np.eye(4))
    spread = cv.Wishart("spread", 6.0, 4.0 * np.eye(4))
    y = cv.MultivariateNormal("y", mean, spread, plates=OBS)

    def nuts() -> None:
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        own = numpyro.sample("mu", dist.Normal(50.0, 10.0).expand([4]))
        lower = numpyro.sample("lower", dist.WishartCholesky(6.0, 0.25 * jnp.eye(4)))
        numpyro.deterministic("spread", lower @ lower.T)
        numpyro.sample("y", dist.MultivariateNormal(own, precision_matrix=lower @ lower.T), obs=height)

    told = {"mu": ([0, 3],), "spread": ([0, 3, 2], [0, 3, 3])}
    return Textbook("jaws", cv.Model(y), {"y": height}, nuts, told)


BLOCKERS = """3 7 5 102 28 4 98 60 25 138 64 45 9 57 25 33 28 8 6 32 27 22
38 114 69 1533 355 59 945 632 278 1916 873 263 291 858 154 207 251 151 174 209 391 680
3 14 11 127 27 6 152 48 37 188 52 47 16 45 31 38 12 6 3 40 43 39
39 116 93 1520 365 52 939 471 282 1921 583 266 293 883 147 213 122 154 134 218 364 674"""


def blockers() -> Textbook:
    """Return deaths in 22 trials of beta blockers: a level for each trial, and effects that differ."""
    table = np.array(BLOCKERS.split(), dtype=float).reshape(4, 22)
    died, n = np.concatenate([table[0], table[2]]), np.concatenate([table[1], table[3]])
    trial, treated = np.tile(np.arange(22), 2), np.repeat([1.0, 0.0], 22)
    trials = cv.Plate("trials", 22)
    level = cv.Normal("level", -2.0, 0.1, plates=trials)
    effect = cv.Normal("effect", 0.0, half_t("between", 0.5), plates=trials)
    common = cv.Normal("common", 0.0, 0.1)
    of, on = cv.Data("of", plates=OBS), cv.Data("treated", plates=OBS)
    predictor = level[of] + on * common + on * effect[of]
    link = cv.logistic(predictor, method="expectation")
    y = cv.Binomial("y", cv.Data("n", plates=OBS), link, plates=OBS)

    def nuts() -> None:
        import numpyro
        import numpyro.distributions as dist

        own = numpyro.sample("level", dist.Normal(-2.0, 10**0.5).expand([22]))
        delta = numpyro.sample("common", dist.Normal(0.0, 10**0.5))
        between = nuts_half_t("between", 0.5)
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([22]))
        effects = numpyro.deterministic("effect", z / between**0.5)
        logits = own[trial] + treated * (delta + effects[trial])
        numpyro.sample("y", dist.Binomial(n.astype(int), logits=logits), obs=died)

    told = {"common": None, "effect": ([0, 6],), "level": ([0, 6],), "sd between": None}
    data = {"y": died, "n": n, "of": trial, "treated": treated}
    return Textbook("beta blockers", cv.Model(y), data, nuts, told)


COAL = """4 5 4 0 1 4 3 4 0 6 3 3 4 0 2 6 3 3 5 4 5 3 1 4 4 1 5 5 3 4 2 5 2 2 3 4 2 1 3 2 2 1 1 1 1 3 0 0 1 0 1 1 0 0 3
1 0 3 2 2 0 1 1 1 0 1 0 1 0 0 0 2 1 0 0 0 1 1 0 2 3 3 1 1 2 1 1 1 1 2 4 2 0 0 1 4 0 0 0 1 0 0 0 0 0 1 0 0 1 0 1"""


def coal() -> Textbook:
    """Return disasters in coal mines by year: a hidden Markov chain of two rates."""
    disasters = np.array(COAL.split(), dtype=float)
    state, time_ = cv.Plate("state", 2), cv.Plate("time")
    begin = cv.Dirichlet("begin", np.ones(2))
    transition = cv.Dirichlet("transition", np.ones(2) + 4.0 * np.eye(2), plates=state)
    rate = cv.Gamma("rate", 2.0, 1.0, plates=state)
    s = cv.MarkovChain("s", begin, transition, along=time_)
    y = cv.Poisson("y", rate[s], plates=time_)

    def nuts() -> None:
        import jax
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist
        from jax.scipy.special import logsumexp

        first = numpyro.sample("begin", dist.Dirichlet(jnp.ones(2)))
        rows = numpyro.sample("transition", dist.Dirichlet(jnp.ones((2, 2)) + 4.0 * jnp.eye(2)))
        own = numpyro.sample("rate", dist.Gamma(2.0, 1.0).expand([2]))
        seen = dist.Poisson(own).log_prob(jnp.asarray(disasters)[:, None])

        def step(before: jax.Array, here: jax.Array) -> tuple[jax.Array, None]:
            return logsumexp(before[:, None] + jnp.log(rows), axis=0) + here, None

        last, _ = jax.lax.scan(step, jnp.log(first) + seen[0], seen[1:])
        numpyro.factor("y", logsumexp(last))

    def in_order(draws: Draws) -> Draws:
        order = np.argsort(-draws["rate"], axis=1)
        stays = np.take_along_axis(np.diagonal(draws["transition"], axis1=1, axis2=2), order, axis=1)
        rows = np.stack(
            [np.stack([stays[:, 0], 1 - stays[:, 0]], 1), np.stack([1 - stays[:, 1], stays[:, 1]], 1)], 1
        )
        return draws | {"rate": np.take_along_axis(draws["rate"], order, axis=1), "transition": rows}

    told = {"rate": None, "transition": ([0, 1], [0, 1])}
    arguments = {"init": {"rate": np.array([3.0, 1.0])}}
    return Textbook(
        "coal mines", cv.Model(y), {"y": disasters}, nuts, told, of_draws=in_order, fitted=arguments
    )


TEETH = """26 25 29 31 21.5 22.5 23 26.5 23 22.5 24 27.5 25.5 27.5 26.5 27 20 23.5 22.5 26 24.5 25.5 27 28.5 22 22 24.5
26.5 24 21.5 24.5 25.5 23 20.5 31 26 27.5 28 31 31.5 23 23 23.5 25 21.5 23.5 24 28 17 24.5 26 29.5 22.5 25.5 25.5 26
23 24.5 26 30 22 21.5 23.5 25 21 20 21.5 23 21 21.5 24 25.5 20.5 24 24.5 26 23.5 24.5 25 26.5 21.5 23 22.5 23.5
20 21 21 22.5 21.5 22.5 23 25 23 23 23.5 24 20 21 22 21.5 16.5 19 19 19.5 24.5 25 28 28"""


def teeth() -> Textbook:
    """Return growth of 16 boys and 11 girls: an effect of each child, and robust noise."""
    distance = np.array(TEETH.split(), dtype=float)
    child, age = np.repeat(np.arange(27), 4), np.tile([-3.0, -1.0, 1.0, 3.0], 27)
    girl = (child >= 16).astype(float)
    design = np.column_stack([np.ones(108), age, girl, age * girl])
    w = cv.MultivariateNormal("w", np.array([24.0, 0.0, 0.0, 0.0]), 1e-2 * np.eye(4))
    own = cv.Normal("child", 0.0, half_t("between", 2.0), plates=cv.Plate("children", 27))
    weight = cv.Gamma("weight", 2.0, 2.0, plates=OBS)
    at = cv.dot(cv.Data("X", plates=OBS), w) + own[cv.Data("of", plates=OBS)]
    y = cv.Normal("y", at, weight * half_t("tau", 2.0), plates=OBS)

    def nuts() -> None:
        import jax.numpy as jnp
        import numpyro
        import numpyro.distributions as dist

        coefficients = numpyro.sample("w", dist.Normal(jnp.array([24.0, 0.0, 0.0, 0.0]), 10.0))
        between, tau = nuts_half_t("between", 2.0), nuts_half_t("tau", 2.0)
        z = numpyro.sample("z", dist.Normal(0.0, 1.0).expand([27]))
        effects = numpyro.deterministic("child", z / between**0.5)
        numpyro.sample(
            "y", dist.StudentT(4.0, design @ coefficients + effects[child], tau**-0.5), obs=distance
        )

    told = {"w": None, "child": ([9, 25],), "sd between": None, "sd tau": None}
    return Textbook("teeth", cv.Model(y), {"y": distance, "X": design, "of": child}, nuts, told)


MODELS = (beetles, jaws, blockers, coal, teeth)


def lines(book: Textbook, n_draws: int) -> Iterator[str]:
    """Yield a line of the table for each number."""
    posteriors, seconds = {}, {}
    for kind in ("auto", "second_order"):
        start = time.process_time()
        fit = book.model.fit(book.data, seed=0, tol=1e-10, max_iter=2000, uncertainty=kind, **book.fitted)
        fit.summary()
        posteriors[kind], seconds[kind] = fit, time.process_time() - start
    start = time.process_time()
    weighted = sampled(posteriors["auto"], book.data)
    by_weights = (
        f"importance sampling {time.process_time() - start:.1f} s" if weighted else "no importance sampling"
    )
    start = time.process_time()
    draws = drawn(book, n_draws)
    first = (
        f"{book.name}: {seconds['auto']:.2f} s, second order {seconds['second_order']:.2f} s, {by_weights}, "
        f"NUTS {time.process_time() - start:.0f} s"
    )
    for name, where in book.told.items():
        own, as_sd = name.removeprefix("sd "), name.startswith("sd ")
        theirs = of_draws(draws[own], as_sd)
        told = [of_fit(posterior, own, as_sd) for posterior in posteriors.values()]
        told += [of_weights(weighted, own, as_sd) if weighted else None, theirs]
        places = list(np.ndindex(theirs.mean.shape)) if where is None else list(zip(*where, strict=True))
        for place in places:
            entry = name if not place else f"{name} {', '.join(str(number + 1) for number in place)}"
            cells = " | ".join("| | " if figures is None else figures.at(place) for figures in told)
            yield f"| {first} | {entry} | {cells} |"
            first = ""


def main() -> None:
    """Print the table."""
    what = "Fit more models of textbooks with caviar and with NUTS."
    tabulate(what, ("", "second order: ", "importance sampling: ", "NUTS: "), MODELS, lines)


if __name__ == "__main__":
    main()
