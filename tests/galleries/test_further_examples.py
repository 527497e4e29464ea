"""Further examples of the galleries: figures that samplers give, sums over labels, quadrature, draws."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.special import expit, logsumexp
from scipy.stats import expon, norm, truncnorm

import caviar as cv
from caviar.testing import elbo_estimate

from .exact import over_grid

OBS = cv.Plate("obs")

# Gelfand et al. (1990): weights of 30 rats at 8, 15, 22, 29 and 36 days
RATS = """151 199 246 283 320 145 199 249 293 354 147 214 263 312 328 155 200 237 272 297 135 188 230 280 323
159 210 252 298 331 141 189 231 275 305 159 201 248 297 338 177 236 285 350 376 134 182 220 260 296
160 208 261 313 352 143 188 220 273 314 154 200 244 289 325 171 221 270 326 358 163 216 242 281 312
160 207 248 288 324 142 187 234 280 316 156 203 243 283 317 157 212 259 307 336 152 203 246 286 321
154 205 253 298 334 139 190 225 267 302 146 191 229 272 302 157 211 250 285 323 132 185 237 286 331
160 207 257 303 345 169 216 261 295 333 157 205 248 289 316 137 180 219 258 291 153 200 244 286 324"""


@pytest.mark.parametrize("kind", ["one effect", "two effects"])
def test_rats(kind):
    """Means within .1 standard deviations of samplers.

    One effect each: alpha.c and beta.c of the BUGS examples. Two, correlated: NUTS, by ``benchmarks/textbook.py``.
    """
    weight = np.array(RATS.split(), dtype=float)
    day, rat = np.tile(np.array([8.0, 15.0, 22.0, 29.0, 36.0]) - 22.0, 30), np.repeat(np.arange(30), 5)
    rats, of = cv.Plate("rat", 30), cv.Data("rat", plates=OBS)
    if kind == "one effect":
        level, growth = cv.Normal("level", 0.0, 1e-6), cv.Normal("growth", 0.0, 1e-6)
        a = cv.Normal("a", level, cv.Gamma("tau a", 1e-3, 1e-3), plates=rats)
        b = cv.Normal("b", growth, cv.Gamma("tau b", 1e-3, 1e-3), plates=rats)
        mean = a[of] + b[of] * cv.Data("day", plates=OBS)
        model = cv.Model(cv.Normal("y", mean, cv.Gamma("tau", 1e-3, 1e-3), plates=OBS))
        posterior = model.fit({"y": weight, "day": day, "rat": rat})
        found = [posterior["level"].mean, posterior["growth"].mean]
        told, sd = np.array([106.6 + 22 * 6.186, 6.186]), np.array([2.7, 0.106])
    else:
        mu = cv.MultivariateNormal("mu", [240.0, 6.0], np.diag([1e-4, 1e-2]))
        spread = cv.Wishart("spread", 3.0, np.diag([200.0, 0.2]))
        growth = cv.MultivariateNormal("growth", mu, spread, plates=rats)
        mean = cv.dot(cv.Data("X", plates=OBS), growth[of])
        # a half t of the standard deviation of the noise
        tau = cv.Gamma("tau", 0.5, cv.Gamma("aux", 0.5, 1 / 10.0**2))
        model = cv.Model(cv.Normal("y", mean, tau, plates=OBS))
        posterior = model.fit({"y": weight, "X": np.column_stack([np.ones(150), day]), "rat": rat})
        found = [*posterior["mu"].mean, *posterior["growth"].mean[0]]
        told, sd = np.array([242.7, 6.185, 239.9, 6.063]), np.array([2.67, 0.105, 2.7, 0.223])
    assert (np.abs(found - told) < 0.1 * sd).all()


def test_rats_with_a_factor_for_each_variable():
    """The figures that Infer.NET prints for variational message passing, to their last digits."""
    day, rat = np.tile([-14.0, -7.0, 0.0, 7.0, 14.0], 30), np.repeat(np.arange(30), 5)
    rats, of = cv.Plate("rat", 30), cv.Data("rat", plates=OBS)
    level, growth = cv.Normal("level", 0.0, 1e-4), cv.Normal("growth", 0.0, 1e-4)
    a = cv.Normal("a", level, cv.Gamma("tau a", 1e-3, 1e-3), plates=rats)
    b = cv.Normal("b", growth, cv.Gamma("tau b", 1e-3, 1e-3), plates=rats)
    tau = cv.Gamma("tau", 1e-3, 1e-3)
    model = cv.Model(cv.Normal("y", a[of] + b[of] * cv.Data("day", plates=OBS), tau, plates=OBS))
    data = {"y": np.array(RATS.split(), dtype=float), "day": day, "rat": rat}
    q = model.fit(data, factors="apart", tol=1e-12)
    level, growth, tau = q["level"], q["growth"], q["tau"]
    assert level.mean - 22 * growth.mean == pytest.approx(106.4, abs=0.05)
    assert level.variance + 22**2 * growth.variance == pytest.approx(11.04, abs=5e-3)
    assert growth.mean == pytest.approx(6.186, abs=5e-4)
    assert growth.variance == pytest.approx(0.008808, abs=5e-7)
    assert [tau.shape, 1 / tau.rate] == pytest.approx([75, 0.0003699], rel=2e-4)


@pytest.mark.slow
def test_matchbox():
    """Likes by traits of users and of films, with a bias each: the ELBO is that of the densities, likes are told."""
    rng = np.random.default_rng(0)
    trait, film = rng.normal(size=(40, 2)), rng.normal(size=(12, 2))
    likes = rng.random((40, 12)) < expit(3 * trait @ film.T)
    asked = rng.random(likes.shape) < 0.8
    user, item = np.nonzero(asked)
    users, films = cv.Plate("users", 40), cv.Plate("films", 12)
    u = cv.MultivariateNormal("u", np.zeros(2), np.eye(2), plates=users)
    v = cv.MultivariateNormal("v", np.zeros(2), np.eye(2) / 4, plates=films)
    biases = cv.Normal("b", 0.0, 1.0, plates=users), cv.Normal("c", 0.0, 1.0, plates=films)
    of, on = cv.Data("user", plates=OBS), cv.Data("film", plates=OBS)
    eta = cv.dot(u[of], v[on]) + biases[0][of] + biases[1][on]
    model = cv.Model(cv.Bernoulli("likes", cv.logistic(eta), plates=OBS))
    data = {"likes": likes[asked], "user": user, "film": item}
    posterior = model.fit(data, seed=0)
    estimate = elbo_estimate(posterior, data, n_draws=200)
    assert abs(posterior.elbo - estimate.value) < 4 * estimate.error
    user, item = np.nonzero(~asked)
    m, n = (np.column_stack([posterior[a].mean, posterior[b].mean]) for a, b in ("ub", "vc"))
    told = (m[user, :2] * n[item, :2]).sum(axis=1) + m[user, 2] + n[item, 2] > 0
    assert np.mean(told == likes[~asked]) > 0.75


def test_dawid_and_skene():
    """Votes of annotators with known confusions, each item seen by some: sums over its class, exact."""
    rng = np.random.default_rng(0)
    item, voter = np.array([0, 0, 1, 2, 2, 2, 3, 3]), np.array([0, 1, 2, 0, 1, 2, 1, 2])
    vote, table = rng.integers(3, size=8), rng.dirichlet(np.ones(3), size=(3, 3))
    shares = np.array([0.5, 0.3, 0.2])
    z = cv.Categorical("z", shares, plates=cv.Plate("item", 4))
    confusion = cv.Constant("confusion", table, plates=(cv.Plate("class", 3), cv.Plate("annotator", 3)))
    chosen = confusion[z[cv.Data("of", plates=OBS)]][cv.Data("by", plates=OBS)]
    posterior = cv.Model(cv.Categorical("vote", chosen, plates=OBS)).fit(
        {"vote": vote, "of": item, "by": voter}
    )
    logs = np.tile(np.log(shares), (4, 1))
    np.add.at(logs, item, np.log(table[:, voter, vote].T))
    assert posterior.elbo == pytest.approx(logsumexp(logs, axis=1).sum(), rel=1e-12)
    shares = np.exp(logs - logsumexp(logs, axis=1, keepdims=True))
    np.testing.assert_allclose(posterior["z"].probabilities, shares, atol=1e-12)


@pytest.mark.slow
def test_cp_factorisation():
    """Of rank one: quadrature with the last side integrated out. Of rank two: the table of three sides is found."""
    y = np.array([[1.3, 0.4], [-0.8, -0.5]])
    a = cv.Normal("a", 0.0, 1.0, plates=OBS)
    b, c = (cv.Normal(name, 0.0, 1.0, plates=cv.Plate(f"of {name}", 2)) for name in "bc")
    plates = (OBS, *b.plates, *c.plates)
    posterior = cv.Model(cv.Normal("y", a * b * c, 4.0, plates=plates)).fit({"y": y[None]}, tol=1e-12)
    grid = np.linspace(-5, 5, 81)
    first, *others = np.meshgrid(grid, grid, grid, indexing="ij")
    log_p = norm.logpdf(first) + norm.logpdf(others).sum(axis=0)
    square = first**2 * (others[0] ** 2 + others[1] ** 2)
    for own in y.T:
        inner = first * (own[0] * others[0] + own[1] * others[1])
        log_p += -0.5 * (4 * own @ own - 16 * inner**2 / (1 + 4 * square)) - 0.5 * np.log1p(4 * square)
        log_p += np.log(4) - np.log(2 * np.pi)
    exact, _ = over_grid(log_p, grid, grid, grid)
    # one of four choices of signs
    assert exact - np.log(4) - 1.5 < posterior.elbo < exact
    rng = np.random.default_rng(0)
    sides = [rng.normal(size=(size, 2)) for size in (12, 5, 4)]
    truth = np.einsum("ir,jr,kr->ijk", *sides)
    plates = OBS, cv.Plate("j", 5), cv.Plate("k", 4)
    parts = [
        [cv.Normal(f"{side}{r}", 0, 1, plates=own) for side, own in zip("ijk", plates, strict=True)]
        for r in (0, 1)
    ]
    mean = parts[0][0] * parts[0][1] * parts[0][2] + parts[1][0] * parts[1][1] * parts[1][2]
    data = {"y": truth + 0.1 * rng.normal(size=truth.shape)}
    posterior = cv.Model(cv.Normal("y", mean, 100.0, plates=plates)).fit(data, seed=0)
    local = posterior.local(data)
    found = sum(
        np.einsum("i,j,k->ijk", local[f"i{r}"].mean, posterior[f"j{r}"].mean, posterior[f"k{r}"].mean)
        for r in (0, 1)
    )
    assert np.sqrt(np.mean((found - truth) ** 2)) < 0.1


@pytest.mark.thinned(2)
@pytest.mark.parametrize("kind", ["mixture", "chain"])
def test_unequal_priors(kind):
    """Components whose priors differ: the default fit is the best of many starts, not the order that comes first."""
    rng = np.random.default_rng(0)
    truth = np.repeat([0, 1, 0, 1], [12, 4, 10, 6])
    data = {"x": rng.normal(np.array([4.0, -4.0])[truth], 1.0)}
    k, prior = cv.Plate("k", 2), np.array([0.8, 6.0])
    if kind == "mixture":
        label = cv.Categorical("z", cv.Dirichlet("weights", prior), plates=OBS)
    else:
        rows = cv.Constant("prior", [[20.0, 1.0], [1.0, 5.0]], plates=k)
        label = cv.MarkovChain("z", [0.5, 0.5], cv.Dirichlet("moves", rows, plates=k), along=OBS)
    mean = cv.Normal("mean", cv.Constant("centre", [-3.0, 3.0], plates=k), 0.1, plates=k)
    model = cv.Model(cv.Normal("x", mean[label], cv.Gamma("tau", 2.0, 2.0, plates=k)[label], plates=OBS))
    best = max(
        model.fit(data, init={"z": own}, tol=1e-10).elbo
        for own in (truth, 1 - truth, *rng.integers(2, size=(6, 32)))
    )
    assert model.fit(data, seed=0, tol=1e-10).elbo > best - 1e-5


@pytest.mark.parametrize(
    ("kind", "prior", "lost", "off"),
    [(cv.HalfNormal, truncnorm(0, np.inf), 0.5, 0.15), (cv.Exponential, expon(), 0.6, 0.3)],
)
def test_nonnegative_factorisation(kind, prior, lost, off):
    """Half Normals or exponential numbers on both sides, Gaussian noise: quadrature of one row and two columns."""
    y = np.array([[1.4, 0.5]])
    w = kind("w", 1.0, plates=OBS)
    h = kind("h", 1.0, plates=cv.Plate("column", 2))
    model = cv.Model(cv.Normal("y", w * h, 4.0, plates=(OBS, *h.plates)))
    posterior = model.fit({"y": y}, tol=1e-12)
    grid = np.linspace(0.005, 12, 1200)
    log_p = prior.logpdf(grid)
    each = [log_p + norm.logpdf(own, np.multiply.outer(grid, grid), 0.5) for own in y[0]]
    of_w = log_p + sum(logsumexp(own, axis=1) + np.log(grid[1] - grid[0]) for own in each)
    exact, (mean,) = over_grid(of_w, grid)
    assert exact - lost < posterior.elbo < exact
    assert posterior.local({"y": y})["w"].mean[0] == pytest.approx(mean, rel=off)
    assert (posterior["h"].mean > 0).all()


def test_supervised_topics():
    """The response belongs to each token: known topics and levels, quadrature over the shares of a document."""
    topics, levels, words = (
        np.array([[0.7, 0.2, 0.1], [0.1, 0.2, 0.7]]),
        np.array([-1.0, 2.0]),
        np.array([0, 0, 2, 1, 0]),
    )
    doc, topic = cv.Plate("doc"), cv.Plate("topic", 2)
    token = cv.Plate("token", within=doc)
    z = cv.Categorical("z", cv.Dirichlet("theta", np.ones(2), plates=doc), plates=token)
    word = cv.Categorical("word", cv.Constant("topics", topics, plates=topic)[z], plates=token)
    score = cv.Normal("score", cv.Constant("level", levels, plates=topic)[z], 1.0, plates=token)
    posterior = cv.Model(word, score).fit({"word": [words], "score": [np.full(5, 0.8)]}, tol=1e-13)
    each = topics[:, words] * norm.pdf(0.8, levels)[:, None]
    grid = np.linspace(0, 1, 20_001)
    exact = np.log(np.trapezoid(np.prod(np.outer(grid, each[0]) + np.outer(1 - grid, each[1]), axis=1), grid))
    assert exact - 0.5 < posterior.elbo < exact
