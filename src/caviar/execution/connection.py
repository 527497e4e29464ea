"""A client of a cluster: one that is given, one for an address, or one of a cluster on this machine."""

from __future__ import annotations

import signal
import threading
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

from .._errors import CaviarError, ClusterError, ClusterWarning, ParameterError
from .._extras import install_command
from .._version import versions
from ..lazy.silence import Patience, Watch
from ..numerics.blas import arithmetic

_RESTART = 3.0
"""Seconds within which a worker that was lost is usually started again."""


def is_client(value: Any) -> bool:
    """Whether a value is a client of Dask; Dask is not loaded for it."""
    if value is None:
        return False
    return any(
        f"{kind.__module__}.{kind.__qualname__}" == "distributed.client.Client"
        for kind in type(value).__mro__
    )


class Connection:
    """A client, closed at the end if it was made here, as is the cluster.

    Parameters
    ----------
    where
        A client, the address of a scheduler, or None for workers on this machine.
    n_workers
        Of those on this machine.
    timeout
        Seconds after which a cluster that does not answer at first is given up.
    patience
        With its silence later.

    Attributes
    ----------
    watch
        Waits for the cluster while it answers.
    """

    def __init__(self, where: Any, n_workers: int, timeout: float, patience: Patience | None = None) -> None:
        self.timeout = timeout
        self._cluster: Any = None
        self._checked: set[str] = set()
        self._is_own = not is_client(where)
        self.client = where if is_client(where) else self._connect(where, n_workers)
        self.watch = Watch(self.client, patience)
        cluster = getattr(self.client, "cluster", None)
        self.direct = True if type(cluster).__name__ == "LocalCluster" else None
        """Whether data go to the workers past the scheduler, as they can on one machine."""

    def _connect(self, where: str | None, n_workers: int) -> Any:
        try:
            from distributed import Client, LocalCluster
        except ImportError as error:
            message = f"clusters need Dask ({error}); install it by {install_command('dask')}"
            raise ImportError(message) from error
        if where is not None:
            _check_address(where)
            try:
                return Client(where, timeout=self.timeout, set_as_default=False)
            except (OSError, MemoryError, EOFError) as error:
                # of a message of another kind Dask may take the first bytes for its length
                raise ClusterError(
                    f"no scheduler answers at {where!r} within {self.timeout:g} s ({error}). Give the "
                    f"address that 'dask scheduler' prints, such as 'tcp://10.0.0.1:8786', and check that "
                    f"this machine can reach it"
                ) from error
        with _interrupts_ignored():
            # any free port: the usual one may be another cluster's
            self._cluster = LocalCluster(
                n_workers=n_workers, threads_per_worker=1, processes=True, dashboard_address="127.0.0.1:0"
            )
        return Client(self._cluster, timeout=self.timeout, set_as_default=False)

    def close(self) -> None:
        """Close what was made here."""
        if self._is_own:
            self.watch.try_briefly(self.client.close, timeout=self.timeout)
        if self._cluster is not None:
            self._cluster.close(timeout=self.timeout)

    def threads(self, n_before: int = 0) -> dict[str, int]:
        """Return the number of threads of each worker by its address, of workers that can do the work.

        Parameters
        ----------
        n_before
            Workers that there were: those that are started again in the place of lost ones are waited for a little.

        Raises
        ------
        ClusterError
            If the scheduler does not answer, there are no workers, or their versions are not those of this process.
        """
        found = self.ask()
        if len(found) < n_before:
            with suppress(TimeoutError):
                self.client.wait_for_workers(n_before, timeout=min(_RESTART, self.timeout))
            found = self.ask()
        if not found:
            try:
                self.client.wait_for_workers(1, timeout=self.timeout)
            except TimeoutError as error:
                raise ClusterError(
                    f"the cluster of {self.client!r} has no workers after {self.timeout:g} s; start some, "
                    f"for example by 'dask worker {self._address()}'"
                ) from error
            found = self.ask()
        self._check_versions(set(found) - self._checked)
        return dict(sorted(found.items()))

    def ask(self) -> dict[str, int]:
        """Return the number of threads of each worker that the scheduler knows now."""
        if self.client.status != "running":
            raise ClusterError(
                f"the connection to the scheduler at {self._address()} is {self.client.status}: the "
                f"scheduler has ended, and the data on the workers are lost. Start it again, make a new "
                f"client, and fit again"
            )
        try:
            return dict(self.watch.call(self.client.sync, self.client.scheduler.ncores))
        except OSError as error:
            if isinstance(error, CaviarError):
                raise
            raise ClusterError(
                f"the scheduler at {self._address()} cannot be reached ({error}); check that it still "
                f"runs, and fit again"
            ) from error

    def _address(self) -> str:
        scheduler = getattr(self.client, "scheduler", None)
        return str(getattr(scheduler, "address", "an unknown address"))

    def _check_versions(self, addresses: set[str]) -> None:
        """Refuse workers whose results could differ in their bits, or that do not have what they need."""
        if not addresses:
            return
        mine = versions()
        found = self.watch.call(self.client.run, versions, workers=sorted(addresses), on_error="return")
        for address, theirs in found.items():
            if isinstance(theirs, (ImportError, AttributeError)):
                raise ClusterError(
                    f"the worker at {address} cannot load this version of caviar, {mine['caviar']} ({theirs}); "
                    "install the same one there"
                )
            if isinstance(theirs, BaseException):
                # it was lost between the question and its answer
                continue
            for name, own in mine.items():
                if theirs[name] != own:
                    raise ClusterError(
                        f"the worker at {address} has {name} {theirs[name]}, but this process has {own}; "
                        f"install the same version on both, so that results are identical to the bit"
                    )
            self._checked.add(address)
        self._tell_other_kernels(addresses & self._checked)

    def _tell_other_kernels(self, addresses: set[str]) -> None:
        """Say where workers compute with other kernels than this process: versions are the same, and bits are not."""
        mine = arithmetic()
        found = self.watch.call(self.client.run, arithmetic, workers=sorted(addresses), on_error="return")
        others = {
            address: theirs
            for address, theirs in found.items()
            if isinstance(theirs, dict) and theirs != mine
        }
        if not others:
            return
        address, theirs = next(iter(others.items()))
        differing = [name for name, own in mine.items() if theirs.get(name) != own]
        told = "; ".join(f"{name} {theirs.get(name)} and not {mine[name]}" for name in differing)
        more = f", as {len(others) - 1} more" if len(others) > 1 else ""
        warnings.warn(
            f"the worker at {address}{more} computes with other kernels than this process: {told}. The "
            f"fit is as good, but its last digits may differ from those of a fit here or on other "
            f"workers. For identical bits start all with the same OPENBLAS_CORETYPE and "
            f"NPY_DISABLE_CPU_FEATURES, or on processors of one kind",
            ClusterWarning,
            stacklevel=2,
        )


def _check_address(where: str) -> None:
    from distributed.comm.addressing import get_address_host_port

    try:
        get_address_host_port(where, strict=True)
    except ValueError as error:
        raise ParameterError(
            f"{where!r} is not the address of a scheduler ({error}); write it as 'tcp://10.0.0.1:8786'"
        ) from error


@contextmanager
def _interrupts_ignored() -> Iterator[None]:
    """Ignore Ctrl-C, as do processes that are started meanwhile: it is for this process, which then ends them."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
