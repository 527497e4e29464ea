"""torch on the processor, and on a GPU where there is one, gives what NumPy gives."""

import numpy as np
import pytest
from invariants.registry import CASES, ON_DEVICES
from numpy.testing import assert_allclose

import caviar as cv
from device.devices import hard, reached, sums, uneven_weights
from device.test_equality import assert_same_sums

pytest.importorskip("torch")
pytest.importorskip("array_api_compat")

import torch

pytestmark = pytest.mark.slow

DEVICES = ["cpu", *(["cuda"] if torch.cuda.is_available() else [])]


@pytest.fixture(autouse=True, params=DEVICES)
def device(request):
    return request.param


@pytest.mark.parametrize("name", ON_DEVICES)
def test_a_pass_gives_the_same_sums(name, device):
    case = CASES[name]
    data, weights = case.draw(np.random.default_rng(1), 400), uneven_weights(400)
    plan, q, row_map = reached(case.state(), data, weights=weights, point=case.arguments.get("point", ()))
    expected = sums(plan, q, row_map.source, row_map.executor)
    assert_same_sums(sums(plan, q, row_map.source, cv.Device(device, block_rows=150)), expected)


@pytest.mark.parametrize("dtype", ["float64", "float32"])
@pytest.mark.parametrize("d", [3, 8])
def test_a_fit_ends_where_it_does_without(d, dtype, device):
    rng = np.random.default_rng(0)
    x = 3.0 * rng.standard_normal((4, d))[rng.integers(4, size=20_000)] + rng.standard_normal((20_000, d))
    model = cv.models.gaussian_mixture(d, 4)
    here, there = (
        model.fit({"x": x}, seed=0, executor=executor) for executor in (None, cv.Device(device, dtype=dtype))
    )
    assert there.converged
    assert_allclose(there.elbo, here.elbo, atol=1e-6 * len(x))


def test_streamed_blocks(device, monkeypatch):
    x, _, _ = hard("close clusters")
    model = cv.models.gaussian_mixture(3, 4)
    kept, streamed = (
        model.fit({"x": x}, seed=0, executor=cv.Device(device, block_rows=256, keep=keep))
        for keep in (0.6, 0.0)
    )
    assert_allclose(streamed.elbo, kept.elbo, rtol=1e-12)


def test_the_precision_that_a_program_allows_is_not_used_and_stays(device):
    torch.set_float32_matmul_precision("medium")
    try:
        with cv.Device(device, dtype="float32").session():
            assert torch.get_float32_matmul_precision() == "highest"
        assert torch.get_float32_matmul_precision() == "medium"
    finally:
        torch.set_float32_matmul_precision("highest")


def test_a_device_that_is_not_there():
    with pytest.raises(cv.ParameterError, match="torch cannot hold float64 numbers on the device 'meta:x'"):
        cv.Device("meta:x")
    if not torch.cuda.is_available():
        with pytest.raises(cv.ParameterError, match="torch cannot hold float64 numbers on the device 'cuda'"):
            cv.Device()
