"""Records whose labels are drawn with the probabilities of members begin at clusters of the members.

A record has one answer, which hardly tells its labels. Random labels let a fit end in one community for nearly all.
"""

import numpy as np
import pytest

import caviar as cv

OBS = cv.Plate("obs")
K = 3


def members(rng, n=40):
    """Return a block model with mixed membership, its data, and the labels that drew them."""
    shares, chance = rng.dirichlet(np.full(K, 0.2), n), 0.05 + 0.6 * np.eye(K)
    sender, receiver = (side[~np.eye(n, dtype=bool)] for side in np.indices((n, n)))
    of = {
        name: np.array([rng.choice(K, p=shares[i]) for i in side])
        for name, side in (("zs", sender), ("zr", receiver))
    }
    theta = cv.Dirichlet("theta", np.full(K, 0.2), plates=cv.Plate("member", n))
    labels = [
        cv.Categorical(name, theta[cv.Data(side, plates=OBS)], plates=OBS)
        for name, side in (("zs", "s"), ("zr", "r"))
    ]
    links = cv.Beta("links", 1, 1, plates=(cv.Plate("from", K), cv.Plate("to", K)))
    model = cv.Model(cv.Bernoulli("y", links[labels[0], labels[1]], plates=OBS))
    data = {"y": (rng.random(len(sender)) < chance[of["zs"], of["zr"]]) * 1, "s": sender, "r": receiver}
    return model, data, of


def answers(rng, n=120, n_items=20):
    """Return a grade of membership: each answer has a label, drawn with the probabilities of the person."""
    shares, chance = rng.dirichlet(np.full(K, 0.05), n), rng.choice([0.1, 0.9], (K, n_items))
    person, item = (side.ravel() for side in np.indices((n, n_items)))
    z = np.array([rng.choice(K, p=shares[i]) for i in person])
    theta = cv.Dirichlet("theta", np.full(K, 0.05), plates=cv.Plate("person", n))
    label = cv.Categorical("z", theta[cv.Data("person_of", plates=OBS)], plates=OBS)
    right = cv.Beta("right", 1, 1, plates=(cv.Plate("kind", K), cv.Plate("item", n_items)))
    model = cv.Model(cv.Bernoulli("y", right[label][cv.Data("item_of", plates=OBS)], plates=OBS))
    data = {"y": (rng.random(len(z)) < chance[z, item]) * 1, "person_of": person, "item_of": item}
    return model, data, {"z": z}


@pytest.mark.thinned(2)
@pytest.mark.parametrize("draw", [members, answers])
def test_fits_end_about_as_high_as_from_the_labels_that_drew_the_data(draw):
    model, data, labels = draw(np.random.default_rng([0, 5]))
    found, truth = (model.fit(data, seed=0, init=init, uncertainty="mean_field") for init in ("auto", labels))
    assert found.elbo > truth.elbo - 10
