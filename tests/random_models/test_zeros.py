"""Random tables with zeros: the evidence by enumeration where the data are possible, a refusal by row where not."""

import re

import numpy as np
import pytest
from numpy.testing import assert_allclose
from scipy.special import gammaln

import caviar as cv

MANY = 60


def sparse_table(rng, k, n):
    """Return k distributions over n values, about half of whose probabilities are zero."""
    table = rng.dirichlet(np.ones(n), k) * (rng.random((k, n)) < 0.6)
    table[np.arange(k), rng.integers(0, n, k)] += 0.5
    return table / table.sum(axis=-1, keepdims=True)


class Tables:
    """Known probabilities of a label or a chain, and of three leaves given it."""

    def __init__(self, rng, k, *, is_chain):
        self.k, self.is_chain = k, is_chain
        self.weights, self.steps = sparse_table(rng, 1, k)[0], sparse_table(rng, k, k)
        self.colours, self.counts = sparse_table(rng, k, 3), sparse_table(rng, k, 3)
        self.answers = np.where(rng.random(k) < 0.6, rng.integers(0, 2, k), rng.random(k))

    def model(self):
        obs, kind, pair = cv.Plate("obs"), cv.Plate("kind", self.k), cv.Plate("pair", 2)
        if self.is_chain:
            z = cv.MarkovChain("z", self.weights, self.steps, along=obs)
        else:
            z = cv.Categorical("z", self.weights, plates=obs)
        tables = {"x": self.colours, "y": self.answers, "c": self.counts}
        p = {name: cv.Constant(f"p{name}", table, plates=kind) for name, table in tables.items()}
        return cv.Model(
            cv.Categorical("x", p["x"][z], plates=obs),
            cv.Bernoulli("y", p["y"][z], plates=(obs, pair)),
            cv.Multinomial("c", None, p["c"][z], plates=obs),
        )

    def draw(self, rng, n):
        """Return data of n rows: drawn from the model, and then some at random, or missing."""
        z = rng.choice(self.k, n, p=self.weights)
        for t in range(1, n if self.is_chain else 0):
            z[t] = rng.choice(self.k, p=self.steps[z[t - 1]])
        x = np.array([rng.choice(3, p=self.colours[k]) for k in z]).astype(float)
        y = (rng.random((n, 2)) < self.answers[z][:, None]).astype(float)
        c = np.array([rng.multinomial(rng.integers(0, 4), self.counts[k]) for k in z])
        if rng.random() < 0.5:
            x[rng.integers(n)] = rng.integers(3)
        if rng.random() < 0.3:
            y[rng.integers(n)] = rng.integers(0, 2, 2)
        if n > 1 and rng.random() < 0.3:
            x[rng.integers(n)] = np.nan
        if rng.random() < 0.3:
            y[rng.integers(n), 0] = np.nan
        return {"x": x, "y": y, "c": c}, z

    def likelihoods(self, data):
        """Return the probability of each row in each category, entry by entry."""
        found = np.ones((len(data["x"]), self.k))
        for row, (x, y, c) in enumerate(zip(data["x"], data["y"], data["c"], strict=True)):
            for k in range(self.k):
                seen = [answer for answer in y if not np.isnan(answer)]
                found[row, k] *= 1.0 if np.isnan(x) else self.colours[k, int(x)]
                found[row, k] *= np.prod([self.answers[k] if a else 1 - self.answers[k] for a in seen])
                found[row, k] *= np.prod(self.counts[k] ** c)
            found[row] *= np.exp(gammaln(c.sum() + 1) - gammaln(c + 1).sum())
        return found

    def of_paths(self, likelihoods):
        """Return the probability of all rows of a chain."""
        weights = self.weights * likelihoods[0]
        for row in likelihoods[1:]:
            weights = (weights @ self.steps) * row
        return weights.sum()


@pytest.mark.thinned(3)
@pytest.mark.parametrize("seed", range(MANY))
def test_the_evidence_or_the_first_impossible_row(seed):
    rng = np.random.default_rng(seed)
    tables, n = Tables(rng, int(rng.integers(2, 4)), is_chain=seed % 4 == 0), int(rng.integers(2, 7))
    data, drawn = tables.draw(rng, n)
    likelihoods, weight = tables.likelihoods(data), np.ones(n)
    arguments = {"schedule": "incremental"} if seed % 3 == 0 else {}
    if tables.is_chain:
        by_row = np.full(1, tables.of_paths(likelihoods))
        weight = np.ones(1)
    else:
        joint = likelihoods * tables.weights
        if seed % 4 == 1:
            # labels known in part, one of them perhaps wrong
            labels = drawn.astype(float)
            labels[rng.integers(n)] = rng.integers(tables.k)
            labels[rng.integers(n)] = np.nan
            data["z"] = labels
            known = ~np.isnan(labels)
            joint[known] *= np.eye(tables.k)[labels[known].astype(int)]
        if seed % 4 == 2:
            weight = rng.integers(0, 3, n).astype(float) + np.eye(n)[0]
            arguments["sample_weight"] = weight
        by_row = joint.sum(axis=1)
    impossible = np.flatnonzero((weight > 0) & (by_row == 0))
    if impossible.size:
        with pytest.raises(cv.DataError, match="is impossible") as refusal:
            tables.model().fit(data, **arguments)
        named = int(re.search(r"row (\d+)", str(refusal.value)).group(1))
        assert tables.is_chain or named == impossible[0]
        return
    posterior = tables.model().fit(data, **arguments)
    counted = weight > 0
    assert_allclose(posterior.elbo, weight[counted] @ np.log(by_row[counted]), rtol=1e-11, atol=1e-12)
    if not tables.is_chain:
        new, _ = tables.draw(rng, 5)
        with np.errstate(divide="ignore"):
            expected = np.log(tables.likelihoods(new) @ tables.weights)
        assert_allclose(posterior.log_predictive(new), expected, rtol=1e-11, atol=1e-12)
