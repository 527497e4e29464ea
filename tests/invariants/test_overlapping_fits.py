"""Fits that overlap in threads: each has one BLAS thread until its own end, gives its own bits, and leaves no trace."""

import multiprocessing
import threading
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import scipy.linalg.blas  # noqa: F401 (its library is to be found)
from threadpoolctl import ThreadpoolController, threadpool_info, threadpool_limits

import caviar as cv
from caviar.execution.threads import Threads
from caviar.numerics import blas
from caviar.numerics.blas import one_blas_thread

pytestmark = pytest.mark.first_guess

_LIBRARIES = ThreadpoolController().select(user_api="blas")


@pytest.fixture(autouse=True)
def three_threads():
    """Give BLAS another number of threads than one, as it has on a machine with several cores."""
    with _LIBRARIES.limit(limits=3):
        yield


def blas_threads() -> set[int]:
    return {own.num_threads for own in _LIBRARIES.lib_controllers}


def set_by_others(n_threads: int) -> None:
    """Set the number of threads as other code does, for good."""
    threadpool_limits(n_threads, user_api="blas")
    for own in _LIBRARIES.lib_controllers:
        getattr(own, "clear_controlling_thread", lambda **_: None)(force=True)


def model_and_rows(n_rows=2_500, size=12, n_components=4):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(n_rows, size)) + 2.0 * rng.integers(3, size=(n_rows, 1))
    return cv.models.gaussian_mixture(size, n_components), rows


@pytest.mark.thinned(2)
@pytest.mark.parametrize("executor", [1, 2])
def test_a_long_fit_under_which_short_ones_begin_and_end(executor):
    """Short fits run whole, and end, between the iterations of a long one, and one that began before it ends there."""
    model, rows = model_and_rows()
    small = cv.models.gaussian_mixture(2, 2)
    alone = model.fit({"x": rows}, seed=0, max_iter=6, tol=0.0, executor=executor)
    before, seen, opened, ended = threadpool_info(), [], threading.Event(), threading.Event()

    def short(progress=None):
        return small.fit({"x": rows[:200, :2]}, seed=0, max_iter=3, progress=progress or False)

    def earlier(event):
        opened.set()
        ended.wait(20)

    with ThreadPoolExecutor(2) as pool:
        first = pool.submit(short, earlier)
        assert opened.wait(20)

        def watch(event):
            pool.submit(short).result(20)
            if event.iteration == 4:
                ended.set()
                first.result(20)
            seen.append(blas_threads())

        overlapped = model.fit({"x": rows}, seed=0, max_iter=6, tol=0.0, executor=executor, progress=watch)
    assert seen == [{1}] * 6
    np.testing.assert_array_equal(overlapped.elbo_trace, alone.elbo_trace)
    np.testing.assert_array_equal(overlapped["mean"].mean, alone["mean"].mean)
    assert threadpool_info() == before


def test_a_short_fit_of_the_main_thread_that_ends_under_a_long_one():
    """The long one begins in another thread, under the short one."""
    model, rows = model_and_rows()
    alone = model.fit({"x": rows}, seed=0, max_iter=8, tol=0.0)
    before, seen, begun, ended, several = threadpool_info(), [], threading.Event(), threading.Event(), []

    def watch(event):
        begun.set()
        assert ended.wait(20)
        seen.append(blas_threads())

    def long():
        return model.fit({"x": rows}, seed=0, max_iter=8, tol=0.0, progress=watch)

    with ThreadPoolExecutor(1) as pool:

        def begin(event):
            several.append(pool.submit(long)) if not several else None
            assert begun.wait(20)

        cv.models.gaussian_mixture(2, 2).fit({"x": rows[:200, :2]}, seed=0, max_iter=2, progress=begin)
        ended.set()
        overlapped = several[0].result(60)
    assert seen == [{1}] * 8
    np.testing.assert_array_equal(overlapped.elbo_trace, alone.elbo_trace)
    assert threadpool_info() == before


@pytest.mark.slow
def test_fits_that_begin_and_end_in_any_order():
    before = threadpool_info()
    rng = np.random.default_rng(0)
    small = cv.models.gaussian_mixture(2, 2)
    rows = rng.normal(size=(300, 2))

    def fit(number):
        return small.fit({"x": rows}, seed=number % 3, max_iter=5 + number, tol=0.0).elbo_trace[:5]

    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(fit, range(12)))
    for number, trace in enumerate(found):
        np.testing.assert_array_equal(trace, found[number % 3])
    assert threadpool_info() == before


def test_one_executor_for_fits_in_several_threads():
    """The threads of an executor are there until the last of its sessions has ended."""
    threads, inside = Threads(2), threading.Event()
    with threads.session():

        def other():
            with threads.session():
                inside.set()
                return list(threads.map(lambda number: number, 3))

        several = threads.map(lambda number: number, 50)
        found = [next(several)]
        with ThreadPoolExecutor(1) as pool:
            assert pool.submit(other).result(20) == [0, 1, 2]
        assert inside.is_set()
        found += several
    assert found == list(range(50))


def _raise_within(error):
    with one_blas_thread():
        assert blas_threads() == {1}
        raise error


def test_errors_interrupts_and_nested_use():
    before = threadpool_info()
    for error in (ValueError, KeyboardInterrupt, GeneratorExit):
        with pytest.raises(error), one_blas_thread():
            _raise_within(error)
        assert threadpool_info() == before

    def broken_off(event):
        raise RuntimeError

    model, rows = model_and_rows(300)
    with pytest.raises(RuntimeError):
        model.fit({"x": rows}, seed=0, progress=broken_off)
    assert threadpool_info() == before


def test_a_generator_that_nobody_finishes():
    def numbers():
        with one_blas_thread():
            yield 1
            yield 2

    before = threadpool_info()
    own = numbers()
    next(own)
    assert blas_threads() == {1}
    own.close()
    assert threadpool_info() == before


@pytest.mark.parametrize("at", ["hold", "renew", "release", "_put_back"])
def test_ctrl_c_in_the_middle_of_the_count(at, monkeypatch):
    """An interrupt on the way in or out leaves the number of threads as it was."""
    before, real, came = threadpool_info(), getattr(blas._limit, at), []

    def interrupted(*arguments):
        real(*arguments) if at == "hold" else None
        if not came:
            came.append(at)
            raise KeyboardInterrupt
        return None if at == "hold" else real(*arguments)

    monkeypatch.setattr(blas._limit, at, interrupted)
    with pytest.raises(KeyboardInterrupt), one_blas_thread():
        pass
    monkeypatch.undo()
    assert threadpool_info() == before
    with one_blas_thread():
        assert blas_threads() == {1}
    assert threadpool_info() == before


def test_code_beside_a_fit_that_sets_the_number_of_threads():
    """Where other code raises the number while a fit runs, its next pass has one thread; the end puts back what was."""
    model, rows = model_and_rows(2_000)
    alone = model.fit({"x": rows}, seed=0, max_iter=6, tol=0.0)
    before, during = threadpool_info(), []

    def meddle(event):
        during.append(blas_threads())
        set_by_others(2)

    def watched(number):
        during.append(blas_threads())
        return number

    threads = Threads(1)
    with threads.session():
        set_by_others(2)
        assert list(threads.map(watched, 1)) == [0]
    assert during.pop() == {1}
    assert threadpool_info() == before
    beside = model.fit({"x": rows}, seed=0, max_iter=6, tol=0.0, progress=meddle)
    np.testing.assert_array_equal(beside.elbo_trace, alone.elbo_trace)
    assert threadpool_info() == before


def test_limits_of_others_that_began_before_and_end_within():
    """scikit-learn holds BLAS to one thread now and then: what it puts back meanwhile is there after the end."""
    other = threadpool_limits(1, user_api="blas")
    holding = one_blas_thread()
    holding.__enter__()
    other.restore_original_limits()
    blas.see_to_one_thread()
    assert blas_threads() == {1}
    holding.__exit__(None, None, None)
    assert blas_threads() == {3}


def _in_child(connection):
    before = blas_threads()
    with one_blas_thread():
        during = blas_threads()
    connection.send((before, during, blas_threads()))
    connection.close()


@pytest.mark.skipif("fork" not in multiprocessing.get_all_start_methods(), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_process_that_is_forked_while_another_thread_fits():
    """The child has no fit, so no limit; its own fits have one."""
    holding, done = threading.Event(), threading.Event()

    def hold():
        with one_blas_thread():
            holding.set()
            done.wait(30)

    thread = threading.Thread(target=hold)
    thread.start()
    try:
        assert holding.wait(10)
        context = multiprocessing.get_context("fork")
        here, there = context.Pipe()
        child = context.Process(target=_in_child, args=(there,))
        child.start()
        assert here.poll(30)
        assert here.recv() == ({3}, {1}, {3})
        child.join(10)
        assert blas_threads() == {1}
    finally:
        done.set()
        thread.join()
    assert blas_threads() == {3}


class _OfThread:
    """A library whose number of threads belongs to the thread that calls it, as on OpenMP."""

    internal_api, version, threading_layer = "openblas", "0", "openmp"

    def __init__(self):
        self._own = threading.local()

    @property
    def num_threads(self):
        return getattr(self._own, "n", 3)

    def set_num_threads(self, n_threads):
        self._own.n = n_threads


def test_libraries_whose_number_belongs_to_a_thread(monkeypatch):
    """Each thread of a fit has one, until the end of its own; the others keep theirs."""
    library = _OfThread()
    monkeypatch.setattr(blas, "_libraries", lambda: (library,))
    threads, begun, done = Threads(2), threading.Event(), threading.Event()

    def other():
        with one_blas_thread():
            begun.set()
            done.wait(20)
            return library.num_threads

    with ThreadPoolExecutor(1) as pool:
        with threads.session():
            found = pool.submit(other)
            assert begun.wait(20)
            assert library.num_threads == 1
            assert set(threads.map(lambda number: library.num_threads, 20)) == {1}
        assert library.num_threads == 3
        done.set()
        assert found.result(20) == 1
        assert pool.submit(lambda: library.num_threads).result(20) == 3
