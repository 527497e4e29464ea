"""Loops over the rows of a cell as vectors of 16 numbers, or over features as vectors of 8: sums of products.

The compiler of a loop asks first whether its arrays overlap, and takes half of the widest registers. Here it is told
what a vector is; it makes the widest registers of the machine of it, or several narrower ones. They need numba.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from importlib import import_module
from typing import Any

from ....families.chains.compiled_exponentials import FRACTION, LN2_HIGH, LN2_LOW, LOG2_E, LOWEST, TURN

ir: Any = import_module("llvmlite.ir")
numba: Any = import_module("numba")
extending: Any = import_module("numba.extending")
cgutils: Any = import_module("numba.core.cgutils")
arrays: Any = import_module("numba.np.arrayobj")

TOGETHER = 4
"""Members whose sums are in registers together."""

_ROWS, _EIGHT = 16, 8
_DOUBLE, _WHOLE = ir.DoubleType(), ir.IntType(64)
_SERIES = tuple(1.0 / math.factorial(n) for n in range(13, -1, -1))
"""Coefficients of the exponential's series, the highest first."""


def _vector(builder: Any, array: Any, offset: Any, size: int) -> Any:
    """Return a pointer to so many numbers of an array from one of them on."""
    return builder.bitcast(builder.gep(array, [offset]), ir.VectorType(_DOUBLE, size).as_pointer())


def _loaded(builder: Any, array: Any, offset: Any, size: int) -> Any:
    found = builder.load(_vector(builder, array, offset, size))
    found.align = 8
    return found


def _stored(builder: Any, value: Any, array: Any, offset: Any, size: int) -> None:
    builder.store(value, _vector(builder, array, offset, size)).align = 8


def _repeated(builder: Any, number: Any, size: int) -> Any:
    """Return a vector of one number."""
    whole = ir.VectorType(_DOUBLE, size)
    first = builder.insert_element(ir.Constant(whole, ir.Undefined), number, ir.Constant(ir.IntType(32), 0))
    return _chosen(builder, first, first, [0] * size)


def _chosen(builder: Any, one: Any, other: Any, places: Sequence[int]) -> Any:
    """Return a vector of numbers of two others, side by side."""
    return builder.shuffle_vector(one, other, ir.Constant(ir.VectorType(ir.IntType(32), len(places)), places))


def _plus_product(builder: Any, one: Any, other: Any, total: Any) -> Any:
    name = f"llvm.fmuladd.v{total.type.count}f64"
    kind = ir.FunctionType(total.type, [total.type] * 3)
    function = cgutils.get_or_insert_function(builder.module, kind, name)
    return builder.call(function, [one, other, total])


def _all(number: float, like: Any) -> Any:
    """Return a vector of one known number."""
    return ir.Constant(like.type, [number] * like.type.count)


def _larger(builder: Any, one: Any, other: Any) -> Any:
    """Return the larger numbers of two vectors, the second ones where they are no numbers."""
    return builder.select(builder.fcmp_ordered(">", one, other), one, other)


def _largest(builder: Any, natural: Any, n: Any) -> Any:
    """Return the largest number of each row among ``n`` members of an array (n, 16)."""
    largest = cgutils.alloca_once_value(builder, _loaded(builder, natural, ir.Constant(n.type, 0), _ROWS))
    with cgutils.for_range(builder, n) as loop:
        place = builder.mul(loop.index, ir.Constant(n.type, _ROWS))
        own = _loaded(builder, natural, place, _ROWS)
        builder.store(_larger(builder, own, builder.load(largest)), largest)
    return builder.load(largest)


def _exponentials(builder: Any, values: Any) -> Any:
    """Return the exponentials of numbers of no more than 0, as `exponentials` of the families makes them one by one."""
    values = _larger(builder, _all(LOWEST, values), values)
    turned = _plus_product(builder, values, _all(LOG2_E, values), _all(TURN, values))
    k = builder.fsub(turned, _all(TURN, values))
    rest = _plus_product(builder, k, _all(-LN2_HIGH, values), values)
    rest = _plus_product(builder, k, _all(-LN2_LOW, values), rest)
    found = _all(_SERIES[0], values)
    for coefficient in _SERIES[1:]:
        found = _plus_product(builder, found, rest, _all(coefficient, values))
    whole = ir.VectorType(_WHOLE, values.type.count)
    bits, power = (builder.bitcast(own, whole) for own in (found, turned))
    power = builder.shl(power, ir.Constant(whole, [FRACTION] * whole.count))
    return builder.bitcast(builder.add(bits, power), values.type)


def _data(context: Any, builder: Any, kinds: Sequence[Any], values: Sequence[Any]) -> list[Any]:
    """Return pointers in the place of arrays, and whole numbers as they are."""
    return [
        arrays.make_array(kind)(context, builder, value).data
        if isinstance(kind, numba.types.Array)
        else value
        for kind, value in zip(kinds, values, strict=True)
    ]


@extending.intrinsic
def multiply(typing: Any, into: Any, c: Any, one: Any, a: Any, other: Any, b: Any) -> Any:
    """Write 16 numbers of an array from ``c`` on: the products of those of two others from ``a`` and ``b`` on."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        into, c, one, a, other, b = _data(context, builder, signature.args, values)
        first, second = (_loaded(builder, *own, _ROWS) for own in ((one, a), (other, b)))
        _stored(builder, builder.fmul(first, second), into, c, _ROWS)
        return context.get_dummy_value()

    return numba.types.void(into, c, one, a, other, b), write


@extending.intrinsic
def exponentials(typing: Any, natural: Any, n: Any, top: Any, total: Any) -> Any:
    """Overwrite natural parameters of ``n`` members, (n, 16), by exponentials of those from the largest, ``top``.

    Their sums are written to ``total``.
    """

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        natural, n, top, total = _data(context, builder, signature.args, values)
        most, zero = _largest(builder, natural, n), ir.Constant(n.type, 0)
        _stored(builder, most, top, zero, _ROWS)
        whole = cgutils.alloca_once_value(builder, _all(0.0, most))
        with cgutils.for_range(builder, n) as loop:
            place = builder.mul(loop.index, ir.Constant(n.type, _ROWS))
            own = _exponentials(builder, builder.fsub(_loaded(builder, natural, place, _ROWS), most))
            _stored(builder, own, natural, place, _ROWS)
            builder.store(builder.fadd(builder.load(whole), own), whole)
        _stored(builder, builder.load(whole), total, zero, _ROWS)
        return context.get_dummy_value()

    return numba.types.void(natural, n, top, total), write


@extending.intrinsic
def tops(typing: Any, natural: Any, n: Any, top: Any) -> Any:
    """Write the largest number of each row among ``n`` members, (16,), of natural parameters (n, 16)."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        natural, n, top = _data(context, builder, signature.args, values)
        _stored(builder, _largest(builder, natural, n), top, ir.Constant(n.type, 0), _ROWS)
        return context.get_dummy_value()

    return numba.types.void(natural, n, top), write


@extending.intrinsic
def closest(typing: Any, natural: Any, n: Any, top: Any, scores: Any) -> Any:
    """Write by how much each of ``n`` members exceeds ``top`` at the row where it does so most, (n,)."""

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        natural, n, top, scores = _data(context, builder, signature.args, values)
        most = _loaded(builder, top, ir.Constant(n.type, 0), _ROWS)
        with cgutils.for_range(builder, n) as loop:
            place = builder.mul(loop.index, ir.Constant(n.type, _ROWS))
            own = builder.fsub(_loaded(builder, natural, place, _ROWS), most)
            while own.type.count > 1:
                half = own.type.count // 2
                lower, upper = ([*range(start, start + half)] for start in (0, half))
                own = _larger(builder, _chosen(builder, own, own, lower), _chosen(builder, own, own, upper))
            _stored(builder, own, scores, loop.index, 1)
        return context.get_dummy_value()

    return numba.types.void(natural, n, top, scores), write


@extending.intrinsic
def turn(typing: Any, into: Any, c: Any, n_into: Any, given: Any, a: Any, n_given: Any) -> Any:
    """Write the 8 x 8 numbers of an array from ``a`` on, rows ``n_given`` apart, as columns from ``c`` on.

    Numbers by themselves would be stored so that a vector of them cannot be loaded before all are in the cache.
    """

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        into, c, n_into, given, a, n_given = _data(context, builder, signature.args, values)

        def place(first: Any, length: Any, number: int) -> Any:
            return builder.add(first, builder.mul(length, ir.Constant(length.type, number)))

        rows = [_loaded(builder, given, place(a, n_given, i), _EIGHT) for i in range(_EIGHT)]
        for step in (1, 2, 4):
            # the blocks off the diagonal change places
            upper = [k - step + _EIGHT if k & step else k for k in range(_EIGHT)]
            lower = [k + _EIGHT if k & step else k + step for k in range(_EIGHT)]
            for i in (i for i in range(_EIGHT) if not i & step):
                pair = rows[i], rows[i + step]
                rows[i], rows[i + step] = _chosen(builder, *pair, upper), _chosen(builder, *pair, lower)
        for i, row in enumerate(rows):
            _stored(builder, row, into, place(c, n_into, i), _EIGHT)
        return context.get_dummy_value()

    return numba.types.void(into, c, n_into, given, a, n_given), write


@extending.intrinsic
def forward(
    typing: Any, features: Any, n: Any, matrix: Any, a: Any, b: Any, c: Any, d: Any, natural: Any, at: Any
) -> Any:
    """Write the products of four rows of a matrix with the features of a cell, (n, 16), one below the other.

    Parameters
    ----------
    n
        Features.
    a, b, c, d
        Where the rows of the matrix begin.
    natural, at
        Where the products are written, from which number on.
    """

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        features, n, matrix, *rows, natural, at = _data(context, builder, signature.args, values)
        kind = ir.VectorType(_DOUBLE, _ROWS)
        totals = [cgutils.alloca_once_value(builder, ir.Constant(kind, [0.0] * _ROWS)) for _ in rows]
        with cgutils.for_range(builder, n) as loop:
            place = builder.mul(loop.index, ir.Constant(loop.index.type, _ROWS))
            own = _loaded(builder, features, place, _ROWS)
            for row, total in zip(rows, totals, strict=True):
                number = builder.load(builder.gep(matrix, [builder.add(row, loop.index)]))
                whole = _repeated(builder, number, _ROWS)
                builder.store(_plus_product(builder, whole, own, builder.load(total)), total)
        for place, total in enumerate(totals):
            offset = builder.add(at, ir.Constant(at.type, place * _ROWS))
            _stored(builder, builder.load(total), natural, offset, _ROWS)
        return context.get_dummy_value()

    return numba.types.void(features, n, matrix, a, b, c, d, natural, at), write


@extending.intrinsic
def backward(
    typing: Any, by_row: Any, n: Any, weights: Any, at: Any, sums: Any, a: Any, b: Any, c: Any, d: Any
) -> Any:
    """Add the features of a cell's rows, (16, n), to four rows of the sums, each with weights of its own, (4, 16).

    Parameters
    ----------
    n
        Features, a multiple of 8.
    weights, at
        The weights, from which number on.
    a, b, c, d
        Where the rows of the sums begin.
    """

    def write(context: Any, builder: Any, signature: Any, values: Any) -> Any:
        by_row, n, weights, at, sums, *rows = _data(context, builder, signature.args, values)
        step = ir.Constant(n.type, _EIGHT)
        with cgutils.for_range(builder, builder.sdiv(n, step)) as loop:
            feature = builder.mul(loop.index, step)
            places = [builder.add(row, feature) for row in rows]
            totals = [_loaded(builder, sums, place, _EIGHT) for place in places]
            for v in range(_ROWS):
                offset = builder.add(builder.mul(n, ir.Constant(n.type, v)), feature)
                own = _loaded(builder, by_row, offset, _EIGHT)
                for m in range(len(rows)):
                    where = builder.add(at, ir.Constant(at.type, m * _ROWS + v))
                    whole = _repeated(builder, builder.load(builder.gep(weights, [where])), _EIGHT)
                    totals[m] = _plus_product(builder, whole, own, totals[m])
            for place, total in zip(places, totals, strict=True):
                _stored(builder, total, sums, place, _EIGHT)
        return context.get_dummy_value()

    return numba.types.void(by_row, n, weights, at, sums, a, b, c, d), write
