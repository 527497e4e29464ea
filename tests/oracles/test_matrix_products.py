"""Sums of products of several arrays that are one matrix product: the same numbers as ``numpy.einsum``."""

import numpy as np
import pytest

from caviar.numerics.sums.matrix_products import as_matrix_product

SIZES = {"a": 3, "b": 4, "c": 2_000, "d": 2}
RNG = np.random.default_rng(0)


def arrays(spec, sizes):
    return [RNG.normal(size=[sizes[letter] for letter in own]) for own in spec.partition("->")[0].split(",")]


@pytest.mark.parametrize("few", [False, True])
@pytest.mark.parametrize(
    "spec",
    [
        "ab,bc,c->ac",
        "ac,bc,c->ab",
        "ac,bc->ba",
        "c,ac,bc,c->ab",
        "dac,cb->bad",
        "acd,dcb,dc->ba",
        "ab,cb,c->ca",
    ],
)
def test_the_sum_is_that_of_einsum(spec, few):
    operands = arrays(spec, {**SIZES, "c": 5} if few else SIZES)
    product = as_matrix_product(spec)
    assert product is not None
    np.testing.assert_allclose(product(operands), np.einsum(spec, *operands), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("spec", ["abc,bc->ac", "ab,bc,ac->ac", "aab,bc->ac", "ab,ab->a", "ab,cd->ac"])
def test_what_is_no_matrix_product(spec):
    assert as_matrix_product(spec) is None


def test_arrays_may_be_stretched_along_axes():
    spec = "ac,bc,c->ab"
    left, right, scale = arrays(spec, SIZES)
    for operands in ([left[:, :1], right, scale], [left, right[:, :1], scale], [left[:1], right, scale[:1]]):
        np.testing.assert_allclose(as_matrix_product(spec)(operands), np.einsum(spec, *operands), atol=1e-10)
