"""Rows of Dask collections stay on the workers: results are the bits of arrays, whatever the chunks."""

import gc
import os
import pickle
import time
import warnings
from weakref import WeakSet

import numpy as np
import pandas as pd
import pytest

import caviar as cv
from caviar._version import versions
from caviar.data import ArrayRows, as_rows
from caviar.data.dask_rows import DaskRows, _DaskPieces, dask_rows
from caviar.engine.design.keys import ColumnKey
from caviar.engine.rows.subsample import sample_of
from caviar.execution.threads import Threads
from caviar.lazy import block_map
from caviar.lazy.graph_rows import Packer, unpacked

distributed = pytest.importorskip("distributed")
da = pytest.importorskip("dask.array")
dd = pytest.importorskip("dask.dataframe")

N, D = 20_011, 3


@pytest.fixture(scope="module")
def rows():
    rng = np.random.default_rng(0)
    return rng.normal(size=(N, D)) * [1.0, 2.0, 0.5] + 3.0 * rng.integers(0, 2, (N, 1)) + 10.0


@pytest.fixture(scope="module")
def counts():
    rng = np.random.default_rng(1)
    found = rng.poisson([[1.0, 6.0, 2.0]], (N, D)) * rng.integers(1, 4, (N, 1)).astype(float)
    found[rng.random(found.shape) < 0.1] = np.nan
    found[5::97] = np.nan
    return found


@pytest.fixture(autouse=True)
def nothing_is_left(client):
    yield
    # the collections of a test live as long as its posteriors, and as frames of threads that are about to end
    deadline = time.monotonic() + 30
    while any(client.has_what().values()) and time.monotonic() < deadline:
        gc.collect()
        time.sleep(0.05)
    assert not any(client.has_what().values())


@pytest.fixture
def decoded(monkeypatch):
    """Numbers of the chunks that were read in this process."""
    numbers = []
    decode = _DaskPieces.decode

    def counting(self, number):
        numbers.append(self.first + number)
        return decode(self, number)

    monkeypatch.setattr(_DaskPieces, "decode", counting)
    return numbers


def settle(model, data, **keywords):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cv.ConvergenceWarning)
        return model.fit(data, seed=0, max_iter=5, **keywords)


def assert_same_bits(one, other):
    np.testing.assert_array_equal(one.elbo_trace, other.elbo_trace)
    for name in one:
        for a, b in zip(one[name].natural, other[name].natural, strict=True):
            np.testing.assert_array_equal(a, b)


def coordinates_of(values, npartitions=7):
    coordinates = pd.DataFrame(values, columns=list("abc"))
    return dd.from_pandas(coordinates, npartitions=npartitions, sort=False)


def off_the_start(block):
    """Return all rows but the first of a partition: nobody knows how many there are before."""
    return block.iloc[1:]


CONTAINERS = {
    "one chunk": lambda values: da.from_array(values, chunks=-1),
    "other chunks than ours": lambda values: da.from_array(values, chunks=(1_234, D)),
    "chunks of columns": lambda values: da.from_array(values, chunks=(2_345, 2)),
    "an empty chunk": lambda values: da.concatenate([da.zeros((0, D)), da.from_array(values, chunks=3_333)]),
    "a table": coordinates_of,
}


@pytest.mark.thinned(5)
@pytest.mark.parametrize("container", CONTAINERS)
@pytest.mark.parametrize("is_persisted", [True, False])
def test_the_bits_of_arrays(client, rows, container, is_persisted):
    model = cv.models.normal_wishart_mixture(D, 2)
    value = CONTAINERS[container](rows)
    value = client.persist(value) if is_persisted else value
    assert_same_bits(settle(model, {"x": value}, executor=client), settle(model, {"x": rows}, executor=1))


@pytest.mark.slow
@pytest.mark.parametrize("container", CONTAINERS)
def test_missing_entries_and_weights(client, counts, container):
    weights = np.random.default_rng(2).choice([0.0, 0.7, 2.5], N)
    model = cv.models.poisson_mixture(D, 2)
    expected = settle(model, {"x": counts}, sample_weight=weights, executor=1)
    value = client.persist(CONTAINERS[container](counts))
    own = da.from_array(weights, chunks=4_321)
    assert_same_bits(settle(model, {"x": value}, sample_weight=own, executor=client), expected)


def test_a_table_whose_lengths_nobody_knows_beside_an_array(client, rows):
    table = client.persist(coordinates_of(rows).map_partitions(off_the_start))
    X = table.compute(scheduler=client).to_numpy()
    y = X @ [1.0, -2.0, 0.5] + np.random.default_rng(3).normal(size=len(X))
    model = cv.models.linear_regression(D)
    assert_same_bits(
        settle(model, {"X": table, "y": y}, executor=client), settle(model, {"X": X, "y": y}, executor=1)
    )


def test_columns_of_one_table_in_single_precision(client, rows):
    coordinates = pd.DataFrame(rows.astype(np.float32), columns=list("abc"))
    table = client.persist(dd.from_pandas(coordinates, npartitions=5, sort=False))
    model = cv.models.linear_regression(2)
    data = {"X": coordinates[["a", "b"]], "y": coordinates["c"]}
    assert_same_bits(
        settle(model, {"X": table[["a", "b"]], "y": table["c"]}, executor=client),
        settle(model, data, executor=1),
    )


def test_no_row_is_read_here(client, rows, decoded):
    value = client.persist(da.from_array(rows, chunks=(3_000, D)))
    settle(cv.models.normal_wishart_mixture(D, 2), {"x": value}, executor=client, tol=0.0)
    assert not decoded


@pytest.mark.thinned(2)
@pytest.mark.parametrize("fractions", [True, False])
def test_no_row_with_weights_and_missing_entries_is_read_here(client, counts, decoded, fractions):
    """Many rows are equal, and sums of fractions depend on their order."""
    few = np.minimum(counts, 3.0)
    weights = np.random.default_rng(5).choice([0.0, 0.7, 2.6] if fractions else [0.0, 1.0, 3.0], N)
    model = cv.models.poisson_mixture(D, 2)
    data = {"x": client.persist(coordinates_of(few))}
    own = client.persist(da.from_array(weights, chunks=4_321))
    found = settle(model, data, sample_weight=own, executor=client)
    assert not decoded
    assert_same_bits(found, settle(model, {"x": few}, sample_weight=weights, executor=1))


class Counting(Threads):
    """Threads that remember how many chunks had been read here before their first pass."""

    def __init__(self, decoded):
        super().__init__(1)
        self.decoded, self.before = decoded, None

    def sum(self, work, source, chunks, carried):
        if self.before is None:
            self.before = len(self.decoded)
        return super().sum(work, source, chunks, carried)


@pytest.mark.slow
def test_missing_steps_of_a_chain_and_labels_of_empty_groups(client):
    """Which rows lead to an observation is looked up in collections as in arrays."""
    rng = np.random.default_rng(5)
    x, starts = rng.normal(size=3_000), np.arange(3_000) % 20 == 0
    x[np.arange(3_000) % 20 > 14] = np.nan
    time_, state = cv.Plate("time"), cv.Plate("state", 2)
    begins = cv.Data("starts", plates=time_)
    s = cv.MarkovChain("s", [0.5, 0.5], [[0.8, 0.2], [0.1, 0.9]], along=time_, starts=begins)
    chain = cv.Model(cv.Normal("x", cv.Normal("mean", 0.0, 0.1, plates=state)[s], 1.0, plates=time_))
    group, obs = cv.Plate("group", 9), cv.Plate("obs")
    m = cv.Normal("m", 0.0, cv.Gamma("tau", 1.0, 1.0), plates=group)
    groups = cv.Model(cv.Normal("x", m[cv.Data("g", plates=obs)], 1.0, plates=obs))
    labels = np.arange(3_000) % 7
    for model, data in ((chain, {"x": x, "starts": starts}), (groups, {"x": x, "g": labels})):
        collections = {name: da.from_array(values, chunks=700) for name, values in data.items()}
        one, other = settle(model, data), settle(model, collections, executor=client)
        assert_same_bits(one, other)
    assert one["tau"].shape == 1.0 + 0.5 * 7


def test_threads_read_rows_in_their_passes_only(client, rows, decoded):
    value = client.persist(da.from_array(rows, chunks=(3_000, D)))
    model, threads = cv.models.normal_wishart_mixture(D, 2), Counting(decoded)
    found = settle(model, {"x": value}, executor=threads)
    assert threads.before == 0
    assert_same_bits(found, settle(model, {"x": rows}, executor=1))


@pytest.mark.slow
def test_an_estimator_reads_no_row_here(client, rows, decoded):
    weights = np.random.default_rng(6).random(N)
    held = client.persist(da.from_array(weights, chunks=4_321))

    def fitted(X, weights, executor):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", cv.ConvergenceWarning)
            estimator = cv.BayesianGaussianMixture(2, random_state=0, max_iter=4, executor=executor)
            return estimator.fit(X, sample_weight=weights)

    found = fitted(client.persist(coordinates_of(rows)), held, cv.DaskExecutor(client))
    assert not decoded
    assert found.elbo_ == fitted(pd.DataFrame(rows, columns=list("abc")), weights, None).elbo_


@pytest.mark.parametrize("unit", [1, 3])
def test_a_sample_is_that_of_arrays_wherever_it_is_cut(client, counts, unit, monkeypatch):
    monkeypatch.setattr(block_map, "_FEWEST_BLOCKS", unit)
    monkeypatch.setattr(block_map, "_RUNS", 2)
    few = np.nan_to_num(counts)
    weights = np.random.default_rng(7).choice([0.0, 0.7, 2.6], N)
    there = ArrayRows(
        {ColumnKey("x"): dask_rows(client.persist(da.from_array(few, chunks=(1_234, 2))))},
        N,
        dask_rows(client.persist(da.from_array(weights, chunks=4_321))),
    )
    assert block_map.is_cut(there)
    for largest in (20, 100_000):
        ours = sample_of(there, largest)
        expected = sample_of(ArrayRows({ColumnKey("x"): few}, N, weights), largest)
        np.testing.assert_array_equal(ours.columns[ColumnKey("x")], expected.columns[ColumnKey("x")])
        np.testing.assert_array_equal(ours.row_weights, expected.row_weights)
        assert ours.is_part == expected.is_part


def _with(rows, place, value):
    changed = rows.copy()
    changed[place] = value
    return changed


@pytest.mark.parametrize(
    ("place", "value", "told"),
    [((17_001, 1), np.inf, "infinity in row 17001"), ((17_001, 1), np.nan, "some entries missing")],
)
def test_what_is_wrong_with_rows_is_told_as_of_arrays(client, rows, decoded, place, value, told):
    wrong = client.persist(da.from_array(_with(rows, place, value), chunks=(3_000, 2)))
    with pytest.raises(cv.DataError, match=told):
        settle(cv.models.normal_wishart_mixture(D, 2), {"x": wrong}, executor=client)
    assert not decoded


def test_numbers_off_the_support_and_wrong_weights(client, counts, decoded):
    model = cv.models.poisson_mixture(D, 2)
    wrong = client.persist(coordinates_of(_with(counts, (9_000, 0), 0.5)))
    with pytest.raises(cv.DataError, match="counted from row 8192"):
        settle(model, {"x": wrong}, executor=client)
    weights = client.persist(da.from_array(_with(np.ones(N), 12_345, -1.0), chunks=2_000))
    with pytest.raises(cv.DataError, match="got -1 in row 12345"):
        settle(model, {"x": client.persist(coordinates_of(counts))}, sample_weight=weights, executor=client)
    assert not decoded


def test_workers_of_another_version_do_not_look_at_rows(client, rows, decoded, monkeypatch):
    monkeypatch.setattr(block_map, "_alike", WeakSet())
    monkeypatch.setattr(block_map, "versions", _older)
    value = dask_rows(client.persist(da.from_array(rows, chunks=(3_000, D))))
    # of this process only
    monkeypatch.setenv("CAVIAR_TEST", "1")
    assert block_map.total_of(value) == block_map.total_of(rows)
    assert len(decoded) == 7


def _older():
    own = versions()
    return {**own, "numpy": "1.0"} if "CAVIAR_TEST" in os.environ else own


def test_rows_are_cut_from_chunks_without_a_copy(rows):
    pieces = dask_rows(da.from_array(rows, chunks=(5_000, D)))
    within, across = pieces.between(5_100, 9_000), pieces.between(4_000, 6_000)
    (numbers, made), chunk = within.needed(), rows[5_000:10_000]
    assert numbers == range(1, 2)
    assert np.shares_memory(made([chunk]), chunk)
    numbers, made = across.needed()
    assert numbers == range(2)
    np.testing.assert_array_equal(made([rows[:5_000], chunk]), rows[4_000:6_000])
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(across)).to_numpy(), rows[4_000:6_000])
    assert isinstance(across, DaskRows)


@pytest.mark.thinned(3)
@pytest.mark.parametrize("chunks", [(3_000, 1, 2), (2_000, 2, 4), (20_011, 1, 4)])
def test_chunks_along_every_axis(client, chunks):
    values = np.random.default_rng(8).integers(0, 9, (N, 2, 5))
    own = dask_rows(client.persist(da.from_array(values, chunks=chunks)))
    for start, stop in ((0, N), (5_000, 5_001), (1_999, 6_001)):
        packed, pieces = Packer(client).pack([own.between(start, stop)])
        (found,) = unpacked(packed, client.gather(pieces))
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(found, values[start:stop])


def test_a_chunk_of_another_shape_than_planned(client, rows):
    own = da.from_delayed(client.submit(np.ones, (N, D + 1)), shape=(N, D), dtype=float)
    with pytest.raises(cv.DataError, match=r"chunk 0 .* shape \(20011, 4\), but its plan says \(20011, 3\)"):
        settle(cv.models.normal_wishart_mixture(D, 2), {"x": client.persist(own)}, executor=client)


@pytest.mark.slow
def unequal(second, rows):
    """Return a DataFrame of two chunks, of which Dask does not check that they are as it was told."""
    dask = pytest.importorskip("dask")
    first = pd.DataFrame(rows[:12_000], columns=list("abc"))
    return dd.from_delayed([dask.delayed(first), dask.delayed(second)], meta=first[:0], verify_meta=False)


def test_columns_of_a_chunk_are_found_by_their_names(rows):
    second = pd.DataFrame(rows[12_000:], columns=list("abc"))
    found = dask_rows(unequal(second[["c", "a", "b"]], rows))
    np.testing.assert_array_equal(found[:], rows)
    for other, told in (
        (second.rename(columns={"b": "d"}), "chunk 1 .* has the columns 'a', 'd', 'c', but .* 'a', 'b', 'c'"),
        (second[["a", "b"]], "chunk 1 .* has the columns 'a', 'b', but its plan"),
        (second.assign(b="high"), "chunk 1 .* does not hold numbers.*'high'.*Choose columns of numbers"),
    ):
        with pytest.raises(cv.DataError, match=told):
            dask_rows(unequal(other, rows))[:]


def test_a_chunk_that_fails_in_this_process_is_told_as_on_a_cluster(rows):
    dask = pytest.importorskip("dask")

    def fail():
        raise OSError("the disk is gone")

    for collection in (
        lambda: unequal(dask.delayed(fail)(), rows),
        lambda: da.from_delayed(dask.delayed(fail)(), (20, 2), float),
    ):
        with pytest.raises(cv.DataError, match=r"cannot be computed: OSError: the disk is gone\. Find it"):
            dask_rows(collection())[:]


def test_arrays_beside_few_numbers_of_a_cluster_are_not_sent_for_a_look(client, rows, tmp_path):
    weights = np.random.default_rng(9).choice([0.0, 0.7, 2.5], N)
    held = dask_rows(client.persist(da.from_array(weights, chunks=4_321)))
    assert not block_map.is_cut(ArrayRows({"x": rows}, N, held))
    file = tmp_path / "few.npy"
    np.save(file, weights)
    there = dask_rows(client.persist(da.from_array(rows, chunks=(3_000, D))))
    assert block_map.is_cut(ArrayRows({"x": there}, N, weights))
    assert not block_map.is_cut(ArrayRows({"x": there}, N, as_rows(np.load(file, mmap_mode="r"))))
    model = cv.models.normal_wishart_mixture(D, 2)
    found = settle(model, {"x": rows}, sample_weight=held, executor=client)
    assert_same_bits(found, settle(model, {"x": rows}, sample_weight=weights, executor=1))


def _fitted_there(value):
    return settle(cv.models.normal_wishart_mixture(D, 2), {"x": value}, executor=1).elbo


@pytest.mark.slow
def test_a_fit_in_a_task_waits_for_no_other(client, rows):
    """Both workers are busy with fits: whoever waited for a thread of theirs would wait for ever."""
    value = da.from_array(rows, chunks=(5_000, D))
    fits = client.map(_fitted_there, [value, value], pure=False)
    expected = settle(cv.models.normal_wishart_mixture(D, 2), {"x": rows}, executor=1).elbo
    assert client.gather(fits) == [expected, expected]


@pytest.fixture
def fleeting():
    """A client of a cluster whose workers are threads of this process, and a function that loses some of them."""
    workers = {"n_workers": 2, "threads_per_worker": 1, "processes": False}
    with (
        distributed.LocalCluster(**workers, dashboard_address=None, silence_logs=50) as own,
        distributed.Client(own, set_as_default=False) as client,
    ):

        def lose(number):
            lost = list(own.workers.values())[:number]
            # others first, so that nobody waits for them
            own.scale(2 + number)
            client.wait_for_workers(2 + number, timeout=20)
            for worker in lost:
                own.sync(worker.close)

        yield client, lose


def test_a_lost_worker_changes_no_bit(fleeting, rows):
    client, lose = fleeting
    model = cv.models.normal_wishart_mixture(D, 2)
    value = client.persist(da.from_array(rows, chunks=(1_234, 2)))
    held = set(client.has_what())
    survived = settle(
        model, {"x": value}, executor=client, progress=lambda told: told.iteration == 2 and lose(1)
    )
    assert len(held - set(client.has_what())) == 1
    assert_same_bits(survived, settle(model, {"x": rows}, executor=1))


def _until(block, path):
    """Return a chunk as long as a file is there."""
    if not os.path.exists(path):
        raise RuntimeError("the disk is gone")
    return block


class Unmounted(cv.DaskExecutor):
    """Removes a file before the first pass."""

    path = ""

    def sum(self, work, source, chunks, carried):
        if os.path.exists(self.path):
            os.remove(self.path)
        return super().sum(work, source, chunks, carried)


def test_a_graph_that_fails_is_refused_at_once(client, rows, tmp_path):
    path = tmp_path / "mounted"
    path.touch()
    executor = Unmounted(client)
    executor.path = str(path)
    value = da.from_array(rows, chunks=(3_000, D)).map_blocks(_until, str(path), dtype=float)
    with pytest.raises(cv.DataError, match="cannot be computed: RuntimeError: the disk is gone"):
        settle(cv.models.normal_wishart_mixture(D, 2), {"x": value}, executor=executor, init="prior")
    assert not path.exists()


@pytest.mark.slow
def test_what_another_cluster_holds(client, rows):
    with (
        distributed.LocalCluster(
            n_workers=1, threads_per_worker=1, dashboard_address="127.0.0.1:0", silence_logs=50
        ) as other,
        distributed.Client(other, set_as_default=False) as theirs,
    ):
        value = theirs.persist(da.from_array(rows, chunks=(3_000, D)))
        with pytest.raises(
            cv.DataError, match=r"was persisted on the cluster at .*executor=cv\.DaskExecutor"
        ):
            settle(cv.models.normal_wishart_mixture(D, 2), {"x": value}, executor=client)


def test_another_client_of_the_same_cluster(cluster, client, rows):
    value = client.persist(da.from_array(rows, chunks=(3_000, D)))
    model = cv.models.normal_wishart_mixture(D, 2)
    found = settle(model, {"x": value}, executor=cluster.scheduler_address)
    assert_same_bits(found, settle(model, {"x": rows}, executor=1))


def test_what_was_sent_by_hand_and_is_lost(fleeting, rows):
    client, lose = fleeting
    chunk = client.submit(np.asarray, client.scatter(rows, hash=False))
    value = client.persist(da.from_delayed(chunk, shape=rows.shape, dtype=rows.dtype))

    def progress(told):
        if told.iteration == 2:
            # both: what was made of the rows may lie on another worker than these, and outlive them
            lose(2)

    model = cv.models.normal_wishart_mixture(D, 2)
    with pytest.raises(cv.DataError, match="was lost with a worker, and cannot be computed again"):
        settle(model, {"x": value}, executor=client, progress=progress, tol=0.0)
