"""Further models of papers from 2020 on, stated from the documentation alone, each against an oracle of its own."""

from __future__ import annotations

from itertools import product

import numpy as np
from numpy.testing import assert_allclose, assert_array_equal
from scipy.integrate import quad
from scipy.special import logsumexp
from scipy.stats import gamma, multivariate_normal, norm, poisson

import caviar as cv

from .exact import normal_evidence, over_grid, path_evidence, sum_over_labels

OBS = cv.Plate("obs")


def test_links_between_records():
    """Kundinger, Reiter and Steorts (Bayesian Analysis, 2024), fabl: which record of A is that of B, or none."""
    rng = np.random.default_rng(0)
    match, other = np.array([[0.9, 0.1], [0.8, 0.2]]), np.array([[0.2, 0.8], [0.3, 0.7]])
    prior = np.r_[0.5, np.full(4, 0.125)]
    is_match = np.concatenate([np.zeros((4, 1), dtype=int), np.eye(4, dtype=int)], axis=1)
    agrees = rng.integers(0, 2, (3, 4, 2))
    record, candidate, field = cv.Plate("record of A", 4), cv.Plate("candidate", 5), cv.Plate("field", 2)
    z = cv.Categorical("z", prior, plates=OBS)
    table = cv.Constant("table", np.stack([other, match]), plates=(cv.Plate("kind", 2), field))
    cell = cv.Data("cell", plates=(record, candidate))
    posterior = cv.Model(cv.Categorical("agrees", table[cell[z]], plates=(OBS, record, field))).fit(
        {"agrees": agrees, "cell": is_match}
    )
    of_field = np.log(np.stack([other, match]))[:, np.arange(2), agrees].sum(axis=-1)  # (kind, B, A)
    each = [of_field[is_match[:, k], :, np.arange(4)].sum(axis=0) for k in range(5)]
    assert_allclose(posterior.elbo, logsumexp(np.log(prior)[:, None] + each, axis=0).sum(), rtol=1e-12)


def test_skills_that_change():
    """Yamaguchi and Martinez (2023): answers need the skills of a hidden profile, which changes in time."""
    rng = np.random.default_rng(1)
    profiles, needs = np.array(list(product([0, 1], repeat=2))), np.array([[1, 0], [0, 1], [1, 1]])
    mastered = (profiles >= needs[:, None]).all(axis=-1).astype(int)  # (item, profile)
    right = np.array([[0.2, 0.9], [0.1, 0.8], [0.25, 0.85]])
    initial, transition = np.full(4, 0.25), np.full((4, 4), 0.1) + 0.6 * np.eye(4)
    y, starts = rng.integers(0, 2, (10, 3)), np.tile(np.eye(1, 5)[0], 2)
    item, profile = cv.Plate("item", 3), cv.Plate("profile", 4)
    s = cv.MarkovChain("s", initial, transition, along=OBS, starts=cv.Data("starts", plates=OBS))
    p = cv.Constant("p", right, plates=(item, cv.Plate("mastered", 2)))
    told = p[cv.Data("cell", plates=(item, profile))[s]]
    posterior = cv.Model(cv.Bernoulli("y", told, plates=(OBS, item))).fit(
        {"y": y, "cell": mastered, "starts": starts}
    )
    of_profile = right[np.arange(3)[:, None], mastered]  # (item, profile)
    logs = np.log(np.where(y[:, :, None], of_profile, 1 - of_profile)).sum(axis=1)
    exact = sum(path_evidence(initial, transition, own) for own in (logs[:5], logs[5:]))
    assert_allclose(posterior.elbo, exact, rtol=1e-12)


def test_columns_that_tell_clusters_apart():
    """Rao and Kirk (Bioinformatics, 2025), VICatMix: a column has a table for each cluster, or a known one for all."""
    rng = np.random.default_rng(2)
    n, columns, clusters = 200, 10, 3
    told = np.arange(columns) < 6
    p = rng.dirichlet(np.full(3, 0.3), size=(clusters, columns))
    kind = rng.integers(clusters, size=n)
    which = np.where(told, kind[:, None], 0)
    x = np.array([[rng.choice(3, p=p[which[i, j], j]) for j in range(columns)] for i in range(n)])
    item, component = cv.Plate("item", columns), cv.Plate("component", clusters)
    z = cv.Categorical("z", cv.Dirichlet("shares", np.ones(clusters)), plates=OBS)
    relevant = cv.Categorical("relevant", cv.Dirichlet("share", [1, 1]), plates=item)
    table = cv.Dirichlet("p", np.ones(3), plates=(cv.Plate("cells", clusters + 1), item))
    cell = cv.Data("cell", plates=(cv.Plate("told", 2), component))
    model = cv.Model(cv.Categorical("x", table[cell[relevant, z]], plates=(OBS, item)))
    known = np.full((clusters + 1, columns, 3), np.nan)
    known[clusters] = [(np.bincount(own, minlength=3) + 1) / (n + 3) for own in x.T]
    cells = np.array([[clusters] * clusters, list(range(clusters))])
    data = {"x": x, "cell": cells, "p": known}
    posterior = model.fit(data, seed=0)
    # of the sixth column two of three tables are nearly the same: one for all has the higher ELBO
    told[5] = False
    assert_array_equal(posterior["relevant"].probabilities[:, 1] > 0.5, told)
    found = posterior.local(data)["z"].probabilities.argmax(axis=1)
    both = np.zeros((clusters, clusters))
    np.add.at(both, (found, kind), 1)
    assert both.max(axis=1).sum() > 0.9 * n


def test_a_counterfactual():
    """Pang, Liu and Xu (Political Analysis, 2022): factors in time predict treated units as if they were not."""
    rng = np.random.default_rng(4)
    T, N, tau = 12, 4, 4.0
    loadings, path = rng.normal(size=(N, 1)), rng.normal(size=T)
    y = path[:, None] @ loadings.T + 0.5 * rng.normal(size=(T, N))
    y[8:, 3] = np.nan
    time, unit = cv.Plate("time"), cv.Plate("unit", N)
    f = cv.LinearGaussianChain("f", [0.0], [[1.0]], [[0.7]], [[1.0]], along=time)
    mean = cv.dot(cv.Constant("loadings", loadings, plates=unit), f)
    posterior = cv.Model(cv.Normal("y", mean, tau, plates=(time, unit))).fit({"y": y})
    variance = np.cumsum(0.49 ** np.arange(T))
    steps = np.arange(T)
    of_path = 0.7 ** abs(np.subtract.outer(steps, steps)) * variance[np.minimum.outer(steps, steps)]
    whole, seen = np.kron(of_path, loadings @ loadings.T) + np.eye(T * N) / tau, ~np.isnan(y.ravel())
    assert_allclose(
        posterior.elbo, normal_evidence(y.ravel()[seen], 0.0, whole[np.ix_(seen, seen)]), rtol=1e-10
    )
    gain = np.linalg.solve(whole[np.ix_(seen, seen)], whole[np.ix_(seen, ~seen)])
    found = posterior.predict({"y": y})["y"]
    assert_allclose(found.mean[8:, 3], gain.T @ y.ravel()[seen], rtol=1e-8)
    left = whole[np.ix_(~seen, ~seen)] - whole[np.ix_(~seen, seen)] @ gain
    assert_allclose(found.standard_deviation[8:, 3], np.sqrt(np.diag(left)), rtol=1e-8)


def test_neighbours_on_a_map():
    """Bansal, Krueger and Graham (CSDA, 2021): effects of areas, of which neighbours are alike; a Normal leaf here."""
    rng = np.random.default_rng(5)
    near = np.diag(np.ones(5), 1) + np.diag(np.ones(5), -1)
    map_, area = np.diag(near.sum(axis=1)) - 0.9 * near, rng.integers(0, 6, 30)
    y, at = rng.normal(size=30) + area / 3, np.eye(6)[area]
    phi = cv.MultivariateNormal("phi", np.zeros(6), cv.Constant("map", map_) * cv.Gamma("tau", 2, 1))
    model = cv.Model(cv.Normal("y", cv.dot(cv.Data("at", plates=OBS), phi), 1.0, plates=OBS))
    posterior = model.fit({"y": y, "at": at})

    def density(tau):
        spread = at @ np.linalg.inv(tau * map_) @ at.T
        return np.exp(normal_evidence(y, 0.0, spread, np.eye(30)) + 60) * gamma(2).pdf(tau)

    exact = np.log(quad(density, 0, 30)[0]) - 60
    assert exact - 0.2 < posterior.elbo < exact


def test_groups_of_coefficients_that_may_be_absent():
    """He and Wand (2024) and Komodromos and others (2023): a curve or a group of coefficients is there or not."""
    rng = np.random.default_rng(6)
    Z = [rng.normal(size=(25, 3)) for _ in range(2)]
    y = Z[0] @ [1, -1, 0.5] + rng.normal(size=25)
    parts = [
        cv.Bernoulli(f"in{j}", 0.3)
        * cv.dot(cv.Data(f"Z{j}", plates=OBS), cv.MultivariateNormal(f"u{j}", np.zeros(3), np.eye(3)))
        for j in range(2)
    ]
    posterior = cv.Model(cv.Normal("y", parts[0] + parts[1], 1.0, plates=OBS)).fit(
        {"y": y, "Z0": Z[0], "Z1": Z[1]}
    )

    def log_joint(there):
        prior = np.log([0.7, 0.3])[list(there)].sum()
        return prior + normal_evidence(
            y, 0.0, np.eye(25), *(own * Z[j] @ Z[j].T for j, own in enumerate(there))
        )

    exact, _ = sum_over_labels((2, 2), log_joint)
    assert exact - 0.5 < posterior.elbo < exact


def test_mixture_of_linear_dynamics():
    """Chen and Poor (ICML, 2022): short series, each from one of several vector autoregressions."""
    rng = np.random.default_rng(7)
    turn, noise = np.stack([0.7 * np.eye(2), [[0, 0.6], [-0.6, 0]]]), np.stack([np.eye(2), 2 * np.eye(2)])
    shares, of = np.array([0.4, 0.6]), np.repeat(np.arange(4), 5)
    before, after = rng.normal(size=(2, 20, 2))
    kind, series = cv.Plate("kind", 2), cv.Plate("series", 4)
    own = cv.Categorical("z", shares, plates=series)[cv.Data("of", plates=OBS)]
    columns = [cv.Constant(f"A{d}", turn[:, :, d], plates=kind)[own] for d in range(2)]
    mean = columns[0] * cv.Data("b0", plates=OBS) + columns[1] * cv.Data("b1", plates=OBS)
    model = cv.Model(cv.MultivariateNormal("y", mean, cv.Constant("W", noise, plates=kind)[own], plates=OBS))
    posterior = model.fit({"y": after, "b0": before[:, 0], "b1": before[:, 1], "of": of})
    each = np.stack(
        [
            multivariate_normal(np.zeros(2), np.linalg.inv(w)).logpdf(after - before @ a.T)
            for a, w in zip(turn, noise, strict=True)
        ]
    )
    whole = each.reshape(2, 4, 5).sum(axis=2) + np.log(shares)[:, None]
    assert_allclose(posterior.elbo, logsumexp(whole, axis=0).sum(), rtol=1e-12)


def test_topics_with_keywords():
    """Eshima, Imai and Sasaki (AJPS, 2024), keyATM: a word comes from all words of its topic, or from its keywords."""
    rng = np.random.default_rng(8)
    every, keys = rng.dirichlet(np.ones(5), size=2), np.array([[0.5, 0.5, 0, 0, 0], [0, 0, 0, 0.3, 0.7]])
    from_keys, theta = np.array([0.4, 0.6]), rng.dirichlet(np.ones(2), size=3)
    words, of = rng.integers(0, 5, 12), np.repeat(np.arange(3), 4)
    document, topic, two = cv.Plate("document", 3), cv.Plate("topic", 2), cv.Plate("from keywords", 2)
    shares = cv.Constant("theta", theta, plates=document)[cv.Data("of", plates=OBS)]
    z = cv.Categorical("z", shares, plates=OBS)
    pi = cv.Constant("pi", np.stack([1 - from_keys, from_keys], axis=1), plates=topic)
    s = cv.Categorical("s", pi[z], plates=OBS)
    table = cv.Constant("words", np.stack([every, keys], axis=1), plates=(topic, two))
    posterior = cv.Model(cv.Categorical("word", table[z, s], plates=OBS)).fit({"word": words, "of": of})
    mixed = (1 - from_keys)[:, None] * every + from_keys[:, None] * keys
    assert_allclose(posterior.elbo, np.log((theta[of] * mixed[:, words].T).sum(axis=1)).sum(), rtol=1e-12)


def test_how_long_states_last():
    """Pohle, Adam and Beumer (CSDA, 2022): any dwell times, by steps within a state that have one emission."""
    rng = np.random.default_rng(9)
    lasts, steps, x = np.array([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]]), 3, rng.normal(size=9)
    transition = np.zeros((6, 6))
    for k, r in np.ndindex(2, steps):
        ends = lasts[k, r] / lasts[k, r:].sum()
        transition[k * steps + r, (1 - k) * steps] = ends
        if r < steps - 1:
            transition[k * steps + r, k * steps + r + 1] = 1 - ends
    initial = np.array([0.5, 0, 0, 0.5, 0, 0])
    s = cv.MarkovChain("s", initial, transition, along=OBS)
    mean = cv.Constant("mean", [-1.0, 1.0], plates=cv.Plate("state", 2))
    cell = cv.Data("cell", plates=cv.Plate("step", 6))
    posterior = cv.Model(cv.Normal("x", mean[cell[s]], 1.0, plates=OBS)).fit(
        {"x": x, "cell": np.repeat([0, 1], steps)}
    )
    # by the durations: the density of all before t, the last state being over at t
    logs = norm.logpdf(x[:, None], [-1.0, 1.0])
    over = np.full((10, 2), -np.inf)
    over[0] = np.log(0.5)  # of what begins at t
    ends = []
    for t, k in product(range(9), range(2)):
        for d in range(1, steps + 1):
            until = over[t, k] + logs[t : t + d, k].sum()
            if t + d >= 9:
                ends.append(until + np.log(lasts[k, d - 1]))
            else:
                over[t + d, 1 - k] = np.logaddexp(over[t + d, 1 - k], until + np.log(lasts[k, d - 1]))
    assert_allclose(posterior.elbo, logsumexp(ends), rtol=1e-10)


def test_coefficients_that_drift():
    """Koop and Korobilis (International Economic Review, 2023), without their selection: a random walk of each."""
    rng = np.random.default_rng(10)
    X, y = rng.normal(size=(10, 2)), rng.normal(size=10)
    b = cv.LinearGaussianChain("b", np.zeros(2), np.eye(2), np.eye(2), np.diag([4.0, 9.0]), along=OBS)
    posterior = cv.Model(cv.Normal("y", cv.dot(cv.Data("X", plates=OBS), b), 2.0, plates=OBS)).fit(
        {"y": y, "X": X}
    )
    steps = np.minimum.outer(np.arange(10), np.arange(10))
    covariance = sum(
        np.outer(own, own) * (1 + steps / width) for own, width in zip(X.T, (4.0, 9.0), strict=True)
    )
    assert_allclose(posterior.elbo, normal_evidence(y, 0.0, covariance, np.eye(10) / 2), rtol=1e-10)


def test_counts_that_excite_themselves():
    """Browning and others (PLOS ONE, 2021): a rate is a background and a share of what came before."""
    y = np.random.default_rng(11).poisson(2, 15)
    past = np.array([1e-12 + sum(y[s] * 0.5 ** (t - s) for s in range(t)) for t in range(15)])
    rate = cv.Gamma("background", 2, 1) + cv.Gamma("share", 1, 2) * cv.Data("past", plates=OBS)
    posterior = cv.Model(cv.Poisson("y", rate, plates=OBS)).fit({"y": y, "past": past})

    m, a = np.meshgrid(np.linspace(0.005, 12, 400), np.linspace(0.005, 4, 400), indexing="ij")
    logs = poisson(m[..., None] + a[..., None] * past).logpmf(y).sum(axis=-1)
    exact, _ = over_grid(logs + gamma(2).logpdf(m) + gamma(1, scale=0.5).logpdf(a), m[:, 0], a[0])
    assert exact - 1.5 < posterior.elbo < exact


def test_instruments_of_which_some_are_invalid():
    """Zhao and others (Bioinformatics, 2020): effects of variants on an exposure and an outcome, with outliers."""
    rng = np.random.default_rng(12)
    effect = rng.normal(size=8)
    exposure, outcome = effect + 0.3 * rng.normal(size=8), 0.5 * effect + 0.5 * rng.normal(size=8)
    outcome[0] += 4
    invalid = cv.Categorical("invalid", [0.8, 0.2], plates=OBS)
    own, slope = cv.Normal("own", 0.0, 1.0, plates=OBS), cv.Normal("slope", 0.0, 1.0)
    width = cv.Constant("width", [1 / 0.25, 1 / 5.25], plates=cv.Plate("two", 2))
    model = cv.Model(
        cv.Normal("exposure", own, 1 / 0.09, plates=OBS),
        cv.Normal("outcome", slope * own, width[invalid], plates=OBS),
    )
    posterior = model.fit({"exposure": exposure, "outcome": outcome})
    grid, both = np.linspace(-5, 5, 401), np.column_stack([exposure, outcome])

    def given(b):
        each = [
            np.log(share) + multivariate_normal(np.zeros(2), [[1.09, b], [b, b * b + variance]]).logpdf(both)
            for share, variance in ((0.8, 0.25), (0.2, 5.25))
        ]
        return logsumexp(each, axis=0).sum() + norm.logpdf(b)

    exact = logsumexp([given(b) for b in grid]) + np.log(grid[1] - grid[0])
    assert exact - 0.3 < posterior.elbo < exact


def test_communities_over_several_networks():
    """Amini, Paez and Lin (Bayesian Analysis, 2024), with known tables: each network has its own table of links."""
    rng = np.random.default_rng(15)
    one, other = (np.tile(own, 2) for own in np.triu_indices(4, 1))
    of, table, y = np.repeat([0, 1], 6), rng.beta(1, 1, (2, 2, 2)), rng.integers(0, 2, 12)
    z = cv.Categorical("z", [0.5, 0.5], plates=cv.Plate("person", 4))
    links = cv.Constant(
        "links", table, plates=(cv.Plate("from", 2), cv.Plate("to", 2), cv.Plate("network", 2))
    )
    each = [z[cv.Data(name, plates=OBS)] for name in ("one", "other")]
    model = cv.Model(cv.Bernoulli("y", links[(*each, cv.Data("of", plates=OBS))], plates=OBS))
    posterior = model.fit({"y": y, "one": one, "other": other, "of": of}, seed=0)

    def log_joint(labels):
        p = table[np.array(labels)[one], np.array(labels)[other], of]
        return np.log(np.where(y, p, 1 - p)).sum() + 4 * np.log(0.5)

    exact, probabilities = sum_over_labels((2,) * 4, log_joint)
    assert exact + np.log(probabilities.max()) - 1e-9 < posterior.elbo < exact


def test_effects_in_several_conditions():
    """Yang, Carbonetto, Gerard and Stephens (2024), mash: known kinds of effects, errors of each row known too."""
    rng = np.random.default_rng(14)
    covariances = np.array([np.eye(2), [[1.0, 0.9], [0.9, 1.0]], 0.01 * np.eye(2)])
    errors = rng.uniform(0.5, 1.5, (60, 2))[:, None] * np.eye(2)
    widths = covariances[rng.choice(3, 60, p=[0.2, 0.3, 0.5])] + errors
    x = np.array([rng.multivariate_normal(np.zeros(2), width) for width in widths])
    z = cv.Categorical("z", cv.Dirichlet("shares", np.ones(3)), plates=OBS)
    of_kinds = cv.Constant("of kinds", np.linalg.inv(covariances), plates=cv.Plate("kind", 3))
    effect = cv.MultivariateNormal("effect", np.zeros(2), of_kinds[z], plates=OBS)
    model = cv.Model(cv.MultivariateNormal("x", effect, cv.Data("precision", plates=OBS), plates=OBS))
    data = {"x": x, "precision": np.linalg.inv(errors)}
    posterior = model.fit(data, seed=0, point=["shares"])
    shares = posterior["shares"].mean
    each = np.array(
        [
            [multivariate_normal.logpdf(own, np.zeros(2), c + e) for c in covariances]
            for own, e in zip(x, errors, strict=True)
        ]
    )
    # the density of the shares is 2 everywhere
    exact = logsumexp(np.log(shares) + each, axis=1)
    assert_allclose(posterior.elbo, exact.sum() + np.log(2), rtol=1e-10)
    given = np.exp(np.log(shares) + each - exact[:, None])
    assert_allclose(posterior.local(data)["z"].probabilities, given, atol=1e-10)
    # at the maximum the shares are the mean responsibilities
    assert_allclose(shares, given.mean(axis=0), atol=1e-3)


def test_factors_of_all_studies_and_of_each():
    """Hansen, Avalos-Pacheco, Russo and De Vito (2023): loadings that studies share, and those of each study."""
    rng = np.random.default_rng(15)
    common, own = rng.normal(size=(4, 1)), rng.normal(size=(2, 4, 1))
    loadings = np.concatenate([np.broadcast_to(common, (2, 4, 1)), own], axis=2)
    study, widths = rng.integers(0, 2, 20), loadings @ loadings.transpose(0, 2, 1) + 0.25 * np.eye(4)
    x = np.array([rng.multivariate_normal(np.zeros(4), widths[s]) for s in study])
    exact = sum(
        multivariate_normal.logpdf(own, np.zeros(4), widths[s]) for own, s in zip(x, study, strict=True)
    )
    gene, studies, of = cv.Plate("gene", 4), cv.Plate("studies", 2), cv.Data("study", plates=OBS)
    both = cv.MultivariateNormal("both", np.zeros(2), np.eye(2), plates=OBS)
    known = cv.Constant("loadings", loadings, plates=(studies, gene))[of]
    stacked = cv.Model(cv.Normal("x", cv.dot(known, both), 4.0, plates=(OBS, gene)))
    assert_allclose(stacked.fit({"x": x, "study": study}).elbo, exact, rtol=1e-12)
    one, other = (cv.MultivariateNormal(name, np.zeros(1), np.eye(1), plates=OBS) for name in ("f", "l"))
    mean = cv.dot(cv.Constant("common", common, plates=gene), one)
    mean = mean + cv.dot(cv.Constant("own", own, plates=(studies, gene))[of], other)
    apart = cv.Model(cv.Normal("x", mean, 4.0, plates=(OBS, gene))).fit({"x": x, "study": study})
    assert exact - 5 < apart.elbo < exact
