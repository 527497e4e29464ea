"""Several indices: tables chosen by a label and known labels, ``mean[z][site]``, or by known labels alone."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import norm

import caviar as cv

OBS, KIND, SITE = cv.Plate("obs"), cv.Plate("kind", 2), cv.Plate("site", 3)
RNG = np.random.default_rng(3)
N = 60
SITES, ROWS = RNG.integers(3, size=N), RNG.integers(2, size=N)
Y = RNG.normal(size=N) + 3.0 * ROWS
TABLE = np.array([[0.0, 1.0, -1.0], [3.0, 4.0, 2.5]])


def site():
    return cv.Data("site", plates=OBS)


def mixture():
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=OBS)
    mean = cv.Normal("mean", 0, 0.1, plates=(KIND, SITE))
    return cv.Model(cv.Normal("y", mean[z][site()], cv.Gamma("tau", 1, 1), plates=OBS))


def test_a_known_table_has_the_exact_evidence():
    z = cv.Categorical("z", [0.4, 0.6], plates=OBS)
    table = cv.Constant("table", TABLE, plates=(KIND, SITE))
    data = {"y": Y, "site": SITES}
    joint = np.log([0.4, 0.6]) + norm.logpdf(Y[:, None], TABLE[:, SITES].T)
    for chosen in (table[z][site()], table[site()][z]):
        posterior = cv.Model(cv.Normal("y", chosen, 1.0, plates=OBS)).fit(data)
        assert posterior.elbo == pytest.approx(logsumexp(joint, axis=1).sum(), rel=1e-13)
        found = posterior.local(data)["z"].probabilities
        np.testing.assert_allclose(found, np.exp(joint - logsumexp(joint, axis=1)[:, None]), atol=1e-12)


def test_two_known_labels_choose_from_a_table():
    mean = cv.Normal("mean", 0, 1.0, plates=(KIND, SITE))
    row = cv.Data("row", plates=OBS)
    posterior = cv.Model(cv.Normal("y", mean[row][site()], 2.0, plates=OBS)).fit(
        {"y": Y, "site": SITES, "row": ROWS}
    )
    counts, sums = np.zeros((2, 3)), np.zeros((2, 3))
    np.add.at(counts, (ROWS, SITES), 1)
    np.add.at(sums, (ROWS, SITES), Y)
    np.testing.assert_allclose(posterior["mean"].precision, 1 + 2 * counts, rtol=1e-14)
    np.testing.assert_allclose(posterior["mean"].mean, 2 * sums / (1 + 2 * counts), rtol=1e-12)
    new = {"row": ROWS[:4], "site": SITES[:4]}
    own = posterior["mean"][ROWS[:4], SITES[:4]]
    np.testing.assert_allclose(posterior.predict(new)["y"].mean, own.mean, rtol=1e-13)
    density = norm.logpdf(Y[:4], own.mean, np.sqrt(0.5 + own.variance))
    np.testing.assert_allclose(posterior.log_predictive({**new, "y": Y[:4]}), density, rtol=1e-10)


@pytest.mark.slow
def test_a_mixture_within_each_site_is_one_label_for_pairs():
    """The same rows site by site: sums over its rows are those of the table's column."""
    data = {"y": Y, "site": SITES}
    posterior = mixture().fit(data, tol=1e-12)
    r = posterior.local(data)["z"].probabilities
    tau = posterior["tau"].mean
    counts, sums = np.zeros((2, 3)), np.zeros((2, 3))
    for column in range(3):
        (own,) = np.nonzero(np.equal(SITES, column))
        counts[:, column] = r[own].sum(0)
        sums[:, column] = r[own].T @ Y[own]
    np.testing.assert_allclose(posterior["mean"].precision, 0.1 + tau * counts, rtol=1e-4)
    np.testing.assert_allclose(posterior["mean"].mean, tau * sums / (0.1 + tau * counts), atol=1e-4)
    assert posterior.elbo >= mixture().fit(data, seed=5, n_restarts=10).elbo - 1e-3


def test_the_order_of_the_indices_is_that_of_the_plates_where_several_fit():
    square = cv.Normal("square", 0, 1.0, plates=(cv.Plate("first", 3), cv.Plate("second", 3)))
    one, other = cv.Data("one", plates=OBS), cv.Data("other", plates=OBS)
    y = cv.Normal("y", square[one][other], 1.0, plates=OBS)
    labels = {"one": SITES, "other": (SITES + ROWS) % 3}
    posterior = cv.Model(y).fit({"y": Y, **labels})
    counts = np.zeros((3, 3))
    np.add.at(counts, (labels["one"], labels["other"]), 1)
    np.testing.assert_allclose(posterior["square"].precision, 1 + counts)


@pytest.mark.usefixtures("figures_of_factors")
def test_saved_and_simulated(tmp_path):
    data = {"y": Y, "site": SITES}
    posterior = mixture().fit(data)
    posterior.save(tmp_path / "table.caviar")
    again = cv.load(tmp_path / "table.caviar")
    assert repr(again.model.leaves[0].stated["mean"]) == "mean[z][site]"
    np.testing.assert_array_equal(
        again.predict({"site": SITES})["y"].mean, posterior.predict({"site": SITES})["y"].mean
    )
    drawn = mixture().simulate(0, data={"site": SITES}, given={"mean": 100 * TABLE, "tau": 1e4})
    np.testing.assert_allclose(drawn["y"], 100 * TABLE[drawn["z"], SITES], atol=0.1)


def test_far_from_the_origin():
    data = {"y": Y + 1e6, "site": SITES}
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=OBS)
    mean = cv.Normal("mean", 1e6, 0.1, plates=(KIND, SITE))
    far = cv.Model(cv.Normal("y", mean[z][site()], cv.Gamma("tau", 1, 1), plates=OBS)).fit(data)
    assert far.elbo == pytest.approx(mixture().fit({"y": Y, "site": SITES}).elbo, abs=1e-6)


@pytest.mark.parametrize(
    ("chosen", "words"),
    [
        (lambda m, z, v: m[site()][site()][site()], "3 indices could choose from"),
        (lambda m, z, v: m[z][site()][site()], "3 indices could choose from"),
    ],
)
def test_what_cannot_be_chosen_is_refused(chosen, words):
    z, v = cv.Categorical("z", [0.5, 0.5], plates=OBS), cv.Categorical("v", np.full(3, 1 / 3), plates=OBS)
    mean = cv.Normal("mean", 0, 1, plates=(KIND, SITE))
    with pytest.raises(cv.PlateError, match=words):
        cv.Normal("y", chosen(mean, z, v), 1.0, plates=OBS)


def test_labels_off_the_table_are_refused():
    with pytest.raises(cv.DataError, match="'site', which choose from plate 'site' of 'mean'"):
        mixture().fit({"y": Y, "site": SITES + 1})
