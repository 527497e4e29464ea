"""A variable stands before its parents, also where one parent is shared between children far apart."""

import numpy as np

import caviar as cv


def shared_scale() -> cv.Model:
    """State a precision that is the concentration of the weights of another leaf too, and met there last."""
    obs, component = cv.Plate("obs"), cv.Plate("component", 3)
    scale = cv.Gamma("scale", 2.0, 1.0)
    z = cv.Categorical("z", cv.StickBreaking("weights", scale, 3), plates=obs)
    p = cv.Beta("p", 1.0, 1.0, plates=component)
    return cv.Model(cv.Normal("x", 0.0, scale, plates=obs), cv.Bernoulli("y", p[z], plates=obs))


def test_children_stand_before_their_parents():
    nodes = shared_scale().nodes
    for place, node in enumerate(nodes):
        for parent in getattr(node, "parents", ()):
            assert nodes.index(parent) > place


def test_a_tree_stays_in_the_order_of_its_statement():
    obs, component = cv.Plate("obs"), cv.Plate("component", 2)
    mean = cv.Normal("mean", 0.0, 1.0, plates=component)
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    tau = cv.Gamma("tau", 1.0, 1.0, plates=component)
    assert list(cv.Model(cv.Normal("x", mean[z], tau[z], plates=obs)).variables) == [
        "x",
        "mean",
        "z",
        "weights",
        "tau",
    ]


def test_a_shared_parent_is_fitted_from_every_start():
    data = {"x": [0.3, -1.0, 2.0, 0.1], "y": [0, 1, 1, 1]}
    for init in ("auto", "prior"):
        cv.testing.check_model(shared_scale(), data, init=init).raise_if_failed()
