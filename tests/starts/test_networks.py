"""Starts of block models: communities that members are not told by on their own."""

import numpy as np
import pytest

import caviar as cv

N = 60


def network(block):
    """Return labels, in turn, and data of a network with these probabilities of links."""
    rng = np.random.default_rng(0)
    labels = np.arange(N) % len(block)
    first, second = (own[~np.eye(N, dtype=bool)] for own in np.indices((N, N)))
    linked = rng.random(len(first)) < block[labels[first], labels[second]]
    return labels, {"linked": linked, "sender": first, "receiver": second}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("block", [0.06 + 0.25 * np.eye(3), 0.05 + 0.4 * np.roll(np.eye(4), 1, axis=1)])
def test_every_start_finds_the_communities(block):
    """By how often they send alone, members of communities alike are not told apart."""
    k, (labels, data) = len(block), network(block)
    dyad, person, sides = cv.Plate("dyad"), cv.Plate("person", N), (cv.Plate("from", k), cv.Plate("to", k))
    z = cv.Categorical("z", cv.Dirichlet("shares", np.ones(k)), plates=person)
    pair = tuple(z[cv.Data(name, plates=dyad)] for name in ("sender", "receiver"))
    model = cv.Model(cv.Bernoulli("linked", cv.Beta("block", 1, 1, plates=sides)[pair], plates=dyad))
    best = model.fit(data, init={"z": labels}).elbo
    for seed in range(2):
        posterior = model.fit(data, seed=seed)
        assert posterior.elbo >= best - 1e-4
        found = posterior["z"].probabilities.argmax(1)
        assert len(set(zip(found.tolist(), labels.tolist(), strict=True))) == k
