"""Array libraries: how torch, CuPy and array-api-strict hold arrays on a device, behind one interface."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from importlib import import_module
from types import ModuleType
from typing import Any

import numpy as np

from .._errors import ParameterError
from .._extras import install_command
from .._typing import AnyArray


class ArrayLibrary(ABC):
    """A library of the array API on one device.

    Attributes
    ----------
    xp
        Its namespace.
    writes_out
        Whether its functions take ``out=``.
    """

    xp: Any
    writes_out = True

    @abstractmethod
    def empty(self, size: int, *, single: bool) -> Any:
        """Return ``size`` numbers in float32 (``single``) or float64, their values undefined."""

    @abstractmethod
    def move(self, array: AnyArray, *, single: bool) -> Any:
        """Return a NumPy array of numbers on the device, in float32 (``single``) or float64."""

    @abstractmethod
    def numpy(self, array: Any) -> AnyArray:
        """Return an array of the device as one of NumPy; waits for what computes it."""

    @property
    def free_memory(self) -> int | None:
        """Bytes of the device that are free; None where it works in the memory of the host."""
        return None

    def session(self) -> AbstractContextManager[None]:
        """Return a context in which products are as exact as their type."""
        return nullcontext()

    def copying(self) -> AbstractContextManager[None]:
        """Return a context whose moves run beside what the device computes."""
        return nullcontext()

    def copied(self) -> Any:
        """Return a mark behind what was moved while :meth:`copying`."""
        return None

    def arrived(self, copied: Any, arrays: list[Any]) -> None:
        """Let what the device computes next wait for arrays that were moved before the mark ``copied``."""
        return

    def mark(self) -> Any:
        """Return a mark after the computations that the device has been given so far."""
        return None

    def reach(self, mark: Any) -> None:
        """Wait until the device has reached a mark."""
        return


class StrictLibrary(ArrayLibrary):
    """array-api-strict: nothing but the standard, to prove that no more is used."""

    writes_out = False

    def __init__(self, device: str) -> None:
        self.xp = _imported("array_api_strict", "array-api-strict")
        name = "CPU_DEVICE" if device == "cpu" else device
        try:
            self._device = self.xp.Device(name)
            self.empty(1, single=False)
        except ValueError as error:
            raise _unusable(device, "array_api_strict", error) from error

    def empty(self, size: int, *, single: bool) -> Any:
        return self.xp.empty(size, dtype=_dtype(self.xp, single=single), device=self._device)

    def move(self, array: AnyArray, *, single: bool) -> Any:
        return self.xp.asarray(
            np.array(array, dtype=_numpy_dtype(single=single), order="C"), device=self._device
        )

    def numpy(self, array: Any) -> AnyArray:
        return np.asarray(array.to_device(self.xp.Device("CPU_DEVICE")))


class TorchLibrary(ArrayLibrary):
    """torch, on a processor or on a CUDA device."""

    def __init__(self, device: str) -> None:
        self._torch = _imported("torch", "torch")
        _imported("array_api_compat", "array-api-compat")
        self.xp = import_module("array_api_compat.torch")
        try:
            self._device = self._torch.device(device)
            self.empty(1, single=False)
        except (RuntimeError, AssertionError, TypeError) as error:
            raise _unusable(device, "torch", error) from error
        # threads of this process hold BLAS, and torch with it, to one thread while they map
        self._n_threads = self._torch.get_num_threads()
        self._is_cuda = self._device.type == "cuda"
        self._side = self._torch.cuda.Stream(self._device) if self._is_cuda else None

    def empty(self, size: int, *, single: bool) -> Any:
        return self._torch.empty(size, dtype=_dtype(self._torch, single=single), device=self._device)

    def move(self, array: AnyArray, *, single: bool) -> Any:
        tensor = self._torch.from_numpy(np.array(array, dtype=_numpy_dtype(single=single), order="C"))
        if not self._is_cuda:
            return tensor.to(self._device)
        # from pinned memory the copy runs by itself; torch keeps that memory until the copy is done
        return tensor.pin_memory().to(self._device, non_blocking=True)

    def numpy(self, array: Any) -> AnyArray:
        return array.cpu().numpy()

    @property
    def free_memory(self) -> int | None:
        if not self._is_cuda:
            return None
        free, _ = self._torch.cuda.mem_get_info(self._device)
        # what torch holds for later allocations is free as well
        cached = self._torch.cuda.memory_reserved(self._device) - self._torch.cuda.memory_allocated(
            self._device
        )
        return free + cached

    @contextmanager
    def session(self) -> Iterator[None]:
        """Hold products in float32 to 24 bits, whatever a program has allowed, over torch's threads on a processor."""
        precision, threads = self._torch.get_float32_matmul_precision(), self._torch.get_num_threads()
        self._torch.set_float32_matmul_precision("highest")
        self._torch.set_num_threads(self._n_threads)
        try:
            yield
        finally:
            self._torch.set_float32_matmul_precision(precision)
            self._torch.set_num_threads(threads)

    def copying(self) -> AbstractContextManager[None]:
        return nullcontext() if self._side is None else self._torch.cuda.stream(self._side)

    def copied(self) -> Any:
        return None if self._side is None else self._side.record_event()

    def arrived(self, copied: Any, arrays: list[Any]) -> None:
        if copied is not None:
            here = self._torch.cuda.current_stream(self._device)
            here.wait_event(copied)
            for array in arrays:
                array.record_stream(here)

    def mark(self) -> Any:
        return self._torch.cuda.current_stream(self._device).record_event() if self._is_cuda else None

    def reach(self, mark: Any) -> None:
        if mark is not None:
            mark.synchronize()


class CuPyLibrary(ArrayLibrary):
    """CuPy, on a CUDA device."""

    def __init__(self, device: str) -> None:
        self._cupy = _imported("cupy", "cupy-cuda12x")
        _imported("array_api_compat", "array-api-compat")
        self.xp = import_module("array_api_compat.cupy")
        kind, _, number = device.partition(":")
        try:
            if kind != "cuda":
                raise ValueError("CuPy has CUDA devices only: 'cuda', 'cuda:1', ...")
            self._device = self._cupy.cuda.Device(int(number or 0))
            self.empty(1, single=False)
        except (RuntimeError, ValueError) as error:
            raise _unusable(device, "cupy", error) from error

    def empty(self, size: int, *, single: bool) -> Any:
        with self._device:
            return self._cupy.empty(size, dtype=_numpy_dtype(single=single))

    def move(self, array: AnyArray, *, single: bool) -> Any:
        with self._device:
            return self._cupy.asarray(np.array(array, dtype=_numpy_dtype(single=single), order="C"))

    def numpy(self, array: Any) -> AnyArray:
        return self._cupy.asnumpy(array)

    @property
    def free_memory(self) -> int | None:
        with self._device:
            pool = self._cupy.get_default_memory_pool()
            return self._device.mem_info[0] + pool.free_bytes()

    @contextmanager
    def session(self) -> Iterator[None]:
        """Compute on the device."""
        with self._device:
            yield


def library_of(name: str, device: str) -> ArrayLibrary:
    """Return a library on a device.

    Raises
    ------
    ParameterError
        If the name is none of those that are known, the library is not installed, or it cannot use the device in
        float64.
    """
    known = {"torch": TorchLibrary, "cupy": CuPyLibrary, "array_api_strict": StrictLibrary}
    if name not in known:
        raise ParameterError(f"library must be one of {', '.join(map(repr, known))}; got {name!r}")
    return known[name](device)


def _imported(module: str, package: str) -> ModuleType:
    try:
        return import_module(module)
    except ImportError as error:
        raise ParameterError(
            f"blocks on a device need the package {package}, which cannot be imported ({error}); install it, for "
            f"torch with {install_command('gpu')}"
        ) from error


def _unusable(device: str, library: str, error: Exception) -> ParameterError:
    reason = str(error).strip().splitlines()[0] if str(error).strip() else type(error).__name__
    return ParameterError(
        f"{library} cannot hold float64 numbers on the device {device!r}: {reason}. Name a device that it can use, "
        f"such as 'cpu', or leave executor= out"
    )


def _dtype(xp: Any, *, single: bool) -> Any:
    return xp.float32 if single else xp.float64


def _numpy_dtype(*, single: bool) -> Any:
    return np.float32 if single else np.float64
