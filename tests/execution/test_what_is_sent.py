"""What a pass sends: the model without its data, and what changes from pass to pass; keys are values."""

import pickle

import numpy as np
import pytest
from invariants.registry import CASES, Case
from scipy.sparse import csr_array

import caviar as cv
from caviar.data import ArrayRows
from caviar.execution.on_worker import ModelOfRows
from caviar.execution.threads import Threads


class Seen(Threads):
    """Threads that remember the work of a fit and its rows."""

    def __init__(self):
        super().__init__(1)
        self.works = {}

    def sum(self, work, source, chunks, carried):
        if isinstance(source, ArrayRows):
            self.works.setdefault(type(work), (work, source, chunks, carried))
        return super().sum(work, source, chunks, carried)


def works_of(case, n, **arguments):
    seen = Seen()
    data = case.draw(np.random.default_rng(0), n)
    case.fit(data, executor=seen, max_iter=0, **arguments)
    return seen.works


def sizes(model, data):
    seen = Seen()
    model.fit(data, seed=0, max_iter=1, init="prior", executor=seen)
    return [len(pickle.dumps(ModelOfRows(work.rows), protocol=5)) for work, *_ in seen.works.values()]


def hidden_markov_model(rng, n):
    return {"x": rng.normal(size=(n, 2)), "starts": np.arange(n) % 100 == 0}


def gappy(rng, n):
    x = rng.normal(size=(n, 3))
    return {"x": np.where(rng.random((n, 3)) < 0.2, np.nan, x)}


def words_of_documents(rng, n):
    """Counts with documents of no word, and so few words in most that many topics have none."""
    return {"word": csr_array(rng.poisson(0.2, size=(n, 12)).astype(float))}


MORE = {
    "documents": Case(lambda: cv.models.latent_dirichlet_allocation(3, 12), words_of_documents),
    "successive states": Case(
        lambda: cv.models.gaussian_hidden_markov_model(2, 3, with_starts=True),
        hidden_markov_model,
    ),
    "vectors missing in part": Case(lambda: cv.models.normal_wishart_mixture(3, 2), gappy),
}


@pytest.mark.thinned(10)
@pytest.mark.parametrize("name", [*CASES, *MORE])
def test_work_that_was_sent_gives_the_same_bits(name):
    for work, source, chunks, carried in works_of({**CASES, **MORE}[name], 300).values():
        sent = pickle.dumps((ModelOfRows(work.rows), work.task(), carried[0]), protocol=5)
        model, task, before = pickle.loads(sent)
        assert len(pickle.dumps(model)) < 20_000
        chunk = chunks[0]
        expected, left = work(source, chunk, carried[0])
        found, left_there = task(rows=model.rows, scratch=model.scratch)(source, chunk, before)
        found, left_there = pickle.loads(pickle.dumps((found, left_there)))
        assert found.fused.keys() == expected.fused.keys()
        assert found.parts.keys() == expected.parts.keys()
        for key, value in {**expected.fused, **expected.parts}.items():
            np.testing.assert_array_equal({**found.fused, **found.parts}[key], value)
        assert found.entropy == expected.entropy
        assert found.log_partition == expected.log_partition
        assert (left is None) == (left_there is None)
        for own, there in zip(left or [], left_there or [], strict=True):
            assert list(own) == list(there)
            assert all(np.array_equal(own[key], there[key]) for key in own)


def test_the_size_of_what_is_sent_does_not_follow_the_rows():
    rng = np.random.default_rng(0)
    model = cv.models.gaussian_mixture(2, 3)
    few, many = rng.normal(size=(20_000, 2)), rng.normal(size=(50_000, 2))
    assert (
        max(abs(a - b) for a, b in zip(sizes(model, {"x": few}), sizes(model, {"x": many}), strict=True)) < 50
    )


def test_missing_entries_stay_with_their_rows():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(50_000, 3))
    x[rng.random(x.shape) < 0.1] = np.nan
    assert max(sizes(cv.models.gaussian_mixture(3, 2), {"x": x})) < 20_000


@pytest.mark.slow
def test_constants_as_long_as_the_data_stay_with_their_rows():
    rng, obs = np.random.default_rng(0), cv.Plate("obs")
    z = cv.Categorical("z", cv.Dirichlet("weights", np.ones(2)), plates=obs)
    mean = cv.Normal("mean", 0, 1, plates=cv.Plate("component", 2))
    model = cv.Model(cv.Normal("x", mean[z], rng.gamma(2, size=30_000), plates=obs))
    assert max(sizes(model, {"x": rng.normal(size=30_000)})) < 20_000
