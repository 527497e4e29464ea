"""Labels of one plate that meet in a term, ``block[z[sender], z[receiver]]``: stochastic block models."""

from itertools import product

import numpy as np
import pytest
from scipy.special import betaln, digamma, gammaln, logsumexp, xlogy

import caviar as cv

RNG = np.random.default_rng(0)


def dyads(n):
    """Return senders and receivers of all ordered pairs of different members."""
    first, second = (own.ravel() for own in np.indices((n, n)))
    return first[first != second], second[first != second]


def network(n, block, seed=0):
    """Return labels that differ, and data of a network with these probabilities of edges."""
    rng = np.random.default_rng(seed)
    labels = np.arange(n) % len(block)
    first, second = dyads(n)
    edge = rng.random(len(first)) < block[labels[first], labels[second]]
    return labels, {"edge": edge.astype(float), "sender": first, "receiver": second}


def stated(n, shares, block):
    """Return a block model; shares and block are known arrays, or None for unknown ones of two communities."""
    dyad, person = cv.Plate("dyad"), cv.Plate("person", n)
    k = 2 if shares is None else len(shares)
    sides = (cv.Plate("from", k), cv.Plate("to", k))
    z = cv.Categorical("z", cv.Dirichlet("shares", np.ones(k)) if shares is None else shares, plates=person)
    table = (
        cv.Beta("block", 1, 1, plates=sides) if block is None else cv.Constant("block", block, plates=sides)
    )
    sender, receiver = (z[cv.Data(name, plates=dyad)] for name in ("sender", "receiver"))
    return cv.Model(cv.Bernoulli("edge", table[sender, receiver], plates=dyad))


SHARES, BLOCK = np.array([0.4, 0.6]), np.array([[0.9, 0.2], [0.1, 0.7]])


def log_joints(n, data, of_labels):
    """Return all labellings, (2 ** n, n), and the log joint of each."""
    every = np.array(list(product(range(2), repeat=n)))
    return every, np.array([of_labels(own) for own in every])


def known_joint(data):
    def of(labels):
        p = BLOCK[labels[data["sender"]], labels[data["receiver"]]]
        return np.log(SHARES)[labels].sum() + (xlogy(data["edge"], p) + xlogy(1 - data["edge"], 1 - p)).sum()

    return of


def bound_of(q, every, log_joint):
    """Return the bound with independent labels, over all labellings."""
    probability = np.prod(q[np.arange(q.shape[0]), every], axis=1)
    return probability @ log_joint - xlogy(q, q).sum()


@pytest.mark.parametrize("seed", range(4))
def test_the_elbo_is_that_of_all_labellings_and_no_label_can_raise_it(seed):
    _, data = network(6, BLOCK, seed)
    every, log_joint = log_joints(6, data, known_joint(data))
    posterior = stated(6, SHARES, BLOCK).fit(data, tol=1e-13)
    q = posterior["z"].probabilities
    assert posterior.elbo == pytest.approx(bound_of(q, every, log_joint), rel=1e-12)
    assert posterior.elbo < logsumexp(log_joint)
    for label in range(6):
        # the optimum given the others, by enumeration
        others = np.prod(np.delete(q, label, 0)[np.arange(5), np.delete(every, label, 1)], axis=1)
        logits = [others[every[:, label] == k] @ log_joint[every[:, label] == k] for k in range(2)]
        np.testing.assert_allclose(q[label], np.exp(logits - logsumexp(logits)), atol=1e-5)


def test_no_sweep_lowers_the_elbo_where_all_at_once_does():
    """All members are linked, and links are of different sides: all at once change to the same side together."""
    block, n = np.array([[0.05, 0.9], [0.9, 0.05]]), 12
    (first, second), edge = dyads(n), np.ones(n * (n - 1))
    data = {"edge": edge, "sender": first, "receiver": second}
    logs = np.log(block)

    def of(q):
        return np.einsum("nk,nl,kl->", q[first], q[second], logs) + n * np.log(0.5) - xlogy(q, q).sum()

    def at_once(q):
        logits = np.zeros((n, 2))
        np.add.at(logits, first, q[second] @ logs)
        np.add.at(logits, second, q[first] @ logs)
        return np.exp(logits - logsumexp(logits, axis=1, keepdims=True))

    start = 0.5 + np.array([0.02, -0.02]) * RNG.random((n, 1))
    assert of(at_once(start)) < of(start) - 29
    for q in (start, *RNG.dirichlet(np.ones(2), (3, n))):
        start = {"z": cv.families.Categorical(q)}
        trace = stated(n, np.full(2, 0.5), block).fit(data, init=start, tol=0.0, max_iter=8).elbo_trace
        assert np.diff(trace).min() > -1e-9
        assert trace[-1] > trace[0] + 1


def test_unknown_tables_are_the_updates_by_hand():
    _, data = network(9, BLOCK, 3)
    first, second, edge = data["sender"], data["receiver"], data["edge"]
    posterior = stated(9, None, None).fit(data, tol=1e-13)
    q = posterior["z"].probabilities
    ones, zeros = (np.einsum("nk,nl,n->kl", q[first], q[second], own) for own in (edge, 1 - edge))
    np.testing.assert_allclose(posterior["block"].a, 1 + ones, rtol=1e-5)
    np.testing.assert_allclose(posterior["block"].b, 1 + zeros, rtol=1e-5)
    np.testing.assert_allclose(posterior["shares"].concentration, 1 + q.sum(0), rtol=1e-5)
    yes, no = (digamma(own) - digamma(2 + ones + zeros) for own in (1 + ones, 1 + zeros))
    prior = digamma(1 + q.sum(0)) - digamma(11)
    logits = prior + np.array(
        [
            sum(
                np.where(edge[n], yes, no) @ q[second[n]]
                if first[n] == i
                else q[first[n]] @ np.where(edge[n], yes, no)
                for n in np.flatnonzero((first == i) | (second == i))
            )
            for i in range(9)
        ]
    )
    np.testing.assert_allclose(q, np.exp(logits - logsumexp(logits, axis=1, keepdims=True)), atol=1e-5)


def test_the_bound_lies_below_the_evidence_of_all_labellings():
    _, data = network(7, BLOCK, 5)

    def of(labels):
        place = 2 * labels[data["sender"]] + labels[data["receiver"]]
        ones, zeros = (np.bincount(place, own, 4) for own in (data["edge"], 1 - data["edge"]))
        counts = np.bincount(labels, minlength=2)
        return betaln(1 + ones, 1 + zeros).sum() + gammaln(1 + counts).sum() - gammaln(9)

    evidence = logsumexp(log_joints(7, data, of)[1])
    posterior = stated(7, None, None).fit(data, n_restarts=5, seed=0)
    # the labels have two names for each labelling
    assert evidence - 3.5 < posterior.elbo < evidence - np.log(2) + 0.1


def test_new_pairs_are_predicted_by_both_labels():
    _, data = network(9, BLOCK, 3)
    posterior = stated(9, None, None).fit(data)
    q, new = posterior["z"].probabilities, {"sender": np.array([0, 1, 5]), "receiver": np.array([1, 0, 8])}
    expected = np.einsum("nk,nl,kl->n", q[new["sender"]], q[new["receiver"]], posterior["block"].mean)
    np.testing.assert_allclose(posterior.predict(new)["edge"].mean, expected, rtol=1e-10)
    drawn = posterior.predictive(data=new, n_draws=500, seed=0)["edge"]
    np.testing.assert_allclose(drawn.mean(0), expected, atol=0.08)


def test_known_labels_missing_edges_and_weights():
    labels, data = network(6, BLOCK, 2)
    part = np.where(np.arange(6) < 3, labels, np.nan)
    every, log_joint = log_joints(6, data, known_joint(data))
    fits = every[:, :3] == labels[:3]
    posterior = stated(6, SHARES, BLOCK).fit({**data, "z": part}, tol=1e-13)
    q = posterior["z"].probabilities
    np.testing.assert_array_equal(q[:3].argmax(1), labels[:3])
    log_joint = np.where(fits.all(1), log_joint, -1e300)
    assert posterior.elbo == pytest.approx(bound_of(q, every[fits.all(1)], log_joint[fits.all(1)]), rel=1e-12)
    weights = np.ones(len(data["edge"]))
    weights[::4] = 0.0
    hidden = {**data, "edge": np.where(weights == 0, np.nan, data["edge"])}
    start = {"z": labels}
    model = stated(6, SHARES, BLOCK)
    weighted = model.fit(data, sample_weight=weights, init=start)
    assert weighted.elbo == pytest.approx(model.fit(hidden, init=start).elbo, rel=1e-12)


def test_linear_response_is_the_derivative_of_refits():
    """Labels that meet have second derivatives of their own among each other."""
    _, data = network(8, BLOCK, 4)

    def fitted(a):
        sides, dyad = (cv.Plate("from", 2), cv.Plate("to", 2)), cv.Plate("dyad")
        z = cv.Categorical("z", cv.Dirichlet("shares", [a, 4.0]), plates=cv.Plate("person", 8))
        table = cv.Beta("block", [[5.0, 4.0], [3.0, 3.0]], [[3.0, 6.0], [5.0, 3.0]], plates=sides)
        pair = tuple(z[cv.Data(name, plates=dyad)] for name in ("sender", "receiver"))
        start = {"z": np.arange(8) % 2}
        return cv.Model(cv.Bernoulli("edge", table[pair], plates=dyad)).fit(
            data, init=start, tol=1e-15, max_iter=5000
        )

    # wide enough for the last digits of where fits end to divide out
    h, response = 3e-2, fitted(5.0).linear_response(data)
    high, low = fitted(5.0 + h), fitted(5.0 - h)
    for name in ("block", "shares", "z"):
        slopes = (high[name].mean - low[name].mean) / (2 * h)
        np.testing.assert_allclose(
            response.sensitivity(name)["shares.concentration"][0], slopes, rtol=1e-4, atol=1e-8
        )


def test_what_cannot_meet_is_refused():
    dyad, person = cv.Plate("dyad"), cv.Plate("person", 4)
    z = cv.Categorical("z", [0.5, 0.5], plates=person)
    table = cv.Beta("block", 1, 1, plates=tuple(cv.Plate(name, 2) for name in "abc"))
    data = [cv.Data(name, plates=dyad) for name in "rst"]
    with pytest.raises(cv.PlateError, match=r"'z' is used three times in block\[z\[r\], z\[s\], z\[t\]\]"):
        table[z[data[0]], z[data[1]], z[data[2]]]
    with pytest.raises(cv.PlateError, match="'z' is used twice"):
        table[z[data[0]], z[data[0]]]
    with pytest.raises(cv.DataError, match="pairs label 0 of 'z' with itself"):
        stated(4, None, None).fit({"edge": [1, 0], "sender": [0, 1], "receiver": [0, 2]})
    rates = [cv.Gamma(name, 1, 1, plates=cv.Plate(f"kind of {name}", 2)) for name in "uvw"]
    own = [rate[z[known]] for rate, known in zip(rates, data, strict=True)]
    with pytest.raises(cv.ConjugacyError, match=r"'z' chooses in 'x' as z\[r\] and as z\[s\] and as z\[t\]"):
        cv.Model(cv.Poisson("x", own[0] * own[1] * own[2], plates=dyad))


def test_two_sides_of_a_sum_meet():
    """Sociability of the communities of both members in one mean: labels that meet outside one table."""
    dyad, person, kind = cv.Plate("dyad"), cv.Plate("person", 6), cv.Plate("kind", 2)
    z = cv.Categorical("z", SHARES, plates=person)
    sends = cv.Constant("sends", [0.0, 2.0], plates=kind)
    gets = cv.Constant("gets", [1.0, -2.0], plates=cv.Plate("other", 2))
    first, second = dyads(6)
    labels = np.arange(6) % 2
    y = (
        np.array([0.0, 2.0])[labels[first]]
        + np.array([1.0, -2.0])[labels[second]]
        + RNG.normal(size=len(first))
    )
    mean = sends[z[cv.Data("sender", plates=dyad)]] + gets[z[cv.Data("receiver", plates=dyad)]]
    posterior = cv.Model(cv.Normal("y", mean, 1.0, plates=dyad)).fit(
        {"y": y, "sender": first, "receiver": second}, tol=1e-13
    )

    def of(own):
        m = np.array([0.0, 2.0])[own[first]] + np.array([1.0, -2.0])[own[second]]
        return np.log(SHARES)[own].sum() - 0.5 * (np.square(y - m) + np.log(2 * np.pi)).sum()

    every, log_joint = log_joints(6, {}, of)
    assert posterior.elbo == pytest.approx(
        bound_of(posterior["z"].probabilities, every, log_joint), rel=1e-10
    )
    assert posterior.elbo <= logsumexp(log_joint) + 1e-9


@pytest.mark.slow
def test_saved_and_simulated(tmp_path):
    labels, data = network(9, BLOCK, 3)
    posterior = stated(9, None, None).fit(data)
    posterior.save(tmp_path / "block.caviar")
    again = cv.load(tmp_path / "block.caviar")
    np.testing.assert_array_equal(again["z"].probabilities, posterior["z"].probabilities)
    assert again.model.fit(data).elbo == pytest.approx(posterior.elbo, rel=1e-12)
    drawn = stated(9, None, None).simulate(
        0,
        data={own: data[own] for own in ("sender", "receiver")},
        given={"block": [[1, 0], [0, 1]], "z": labels},
    )
    same = labels[data["sender"]] == labels[data["receiver"]]
    np.testing.assert_array_equal(drawn["edge"], same)
