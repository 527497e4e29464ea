"""Components that describe one cluster are merged first; what two confuse is counted from responsibilities."""

import numpy as np
import pytest

import caviar as cv
from caviar.plot._dendrogram import merges
from plot.fits import BANANAS, bananas, chain, faithful, steps


def labels_of(ax):
    return [label.get_text() for label in ax.get_yticklabels()]


def test_shares_are_those_of_hennig():
    """Written out for three components: the share of the rows of one that are assigned to another."""
    rng = np.random.default_rng(0)
    shares = rng.dirichlet([0.4, 0.4, 0.4], 200)
    best = shares.argmax(axis=1)

    def confused(i, j):
        return shares[best == j, i].sum() / shares[:, i].sum()

    pairs = {(i, j): max(confused(i, j), confused(j, i)) for i in range(3) for j in range(i)}
    (j, i), largest = max(((own[::-1], value) for own, value in pairs.items()), key=lambda pair: pair[1])
    first, last = merges(shares)
    assert (set(first.one + first.other), first.share) == ({i, j}, pytest.approx(largest))
    assert set(last.one + last.other) == {0, 1, 2}
    together = np.stack([shares[:, [i, j]].sum(axis=1), shares[:, 3 - i - j]], axis=1)
    own = together.argmax(axis=1)
    expected = max(
        together[own == 1, 0].sum() / together[:, 0].sum(), together[own == 0, 1].sum() / together[:, 1].sum()
    )
    assert last.share == pytest.approx(expected)


def test_parts_of_a_bent_cluster_join_and_another_cluster_stays():
    ax = cv.plot.dendrogram(bananas(), BANANAS)
    assert ax.get_title() == "6 components, 2 clusters that confuse fewer than 2.5% of rows"
    round_one = int(bananas().means_[:, 0].argmax())
    assert labels_of(ax)[0] == f"component {round_one} (27%)"
    strict = cv.plot.dendrogram(bananas(), BANANAS, threshold=0.9)
    assert "6 clusters" in strict.get_title()


def test_the_merge_is_where_its_share_is():
    mixture = faithful()
    rows = cv.datasets.load_faithful().values
    ax = cv.plot.dendrogram(mixture, rows, names=["short", "long"])
    (step,) = merges(mixture.predict_proba(rows))
    joins = [
        drawn.get_xdata()
        for drawn in ax.lines
        if len(set(drawn.get_ydata())) == 2 and len(drawn.get_xdata()) == 2
    ]
    assert any(np.allclose(x, max(step.share, 1e-4)) for x in joins)
    assert sorted(label.partition(" (")[0] for label in labels_of(ax)) == ["long", "short"]


def test_states_of_a_chain_have_a_dendrogram():
    assert len(labels_of(cv.plot.dendrogram(chain(), steps()))) == 3


@pytest.mark.parametrize(
    ("keywords", "says"),
    [({"threshold": 2}, "between 0 and 1; got 2"), ({"names": ["a"]}, "6 entries, but names= gives 1")],
)
def test_the_message_says_what_to_do(keywords, says):
    with pytest.raises(cv.ParameterError, match=says):
        cv.plot.dendrogram(bananas(), BANANAS, **keywords)


def test_one_component_has_no_dendrogram():
    rows = np.random.default_rng(0).normal(size=(50, 2))
    with pytest.raises(cv.ParameterError, match="'z' has 1"):
        cv.plot.dendrogram(cv.GaussianMixture(1).fit(rows), rows)
