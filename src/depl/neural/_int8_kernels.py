"""Compiled loops between the 8-bit matrix products of an encoder, each a single pass over a token.

PyTorch makes five passes over memory to turn the products of a layer into its activations in 8
bits. Here a token's numbers stay in the cache from the product to the next one's input. Loops are
written so that the compiler turns each into vector instructions: one thing at a time, and the
largest of several floats by the order of their bits.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Bits = NDArray[np.int32]  # of floats
Bytes = NDArray[np.int8]
Halves = NDArray[np.uint16]  # the bits of bfloat16 numbers: the upper half of a float

_f32, _i32 = np.float32, np.int32
# All of fastmath but reassociation: what is added to round a number must not be optimised away.
_exactly = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"contract", "nnan", "ninf", "nsz"}
)
_sums = numba.njit(nogil=True, cache=True, error_model="numpy", fastmath=True)

_ROUND = _f32(1.5 * 2**23)  # adding it leaves the nearest integer in the lowest bits
_ROUND_BITS = _i32(0x4B400000)
_MAGNITUDE = _i32(0x7FFFFFFF)  # all bits but the sign
_LEAST = _i32(0x2B8CBCCC)  # 1e-12: a token of zeros needs a scale, too


@_exactly
def _largest(row: Floats) -> np.float32:
    """The largest absolute value."""
    bits = row.view(np.int32)
    best = _LEAST
    for j in range(len(row)):
        magnitude = bits[j] & _MAGNITUDE
        best = magnitude if magnitude > best else best
    one = np.empty(1, np.int32)
    one[0] = best
    return one.view(np.float32)[0]  # type: ignore[no-any-return]


@_exactly
def _to_bytes(row: Floats, room: Floats, values: Bytes) -> np.float32:
    """A token's numbers as 8-bit integers; returns their scale."""
    bits = room.view(np.int32)
    scale = _largest(row) / _f32(127.0)
    inverse = _f32(1.0) / scale
    for j in range(len(row)):
        room[j] = row[j] * inverse + _ROUND
    for j in range(len(row)):
        values[j] = np.int8(bits[j])
    return scale


@_exactly
def _from_products(
    products: Bits, scale: np.float32, columns: Floats, bias: Floats, out: Floats
) -> None:
    for j in range(len(out)):
        out[j] = _f32(products[j]) * (scale * columns[j]) + bias[j]


@_exactly
def quantize(x: Floats, values: Bytes, scales: Floats) -> None:
    """Tokens as 8-bit integers, each with a scale."""
    room = np.empty(x.shape[1], np.float32)
    for i in range(len(x)):
        scales[i] = _to_bytes(x[i], room, values[i])


@_exactly
def dequantize(products: Bits, scales: Floats, columns: Floats, bias: Floats, out: Floats) -> None:
    """The output of a linear layer, from the integer products, in floats."""
    for i in range(len(products)):
        _from_products(products[i], scales[i], columns, bias, out[i])


@_exactly
def gelu(
    products: Bits,
    scales: Floats,
    columns: Floats,
    bias: Floats,
    values: Bytes,
    new_scales: Floats,
) -> None:
    """GELU of a linear layer's output, in 8 bits; erf is a quotient of polynomials, to 1e-6."""
    n = products.shape[1]
    room, out = np.empty(n, np.float32), np.empty(n, np.float32)
    for i in range(len(products)):
        _from_products(products[i], scales[i], columns, bias, out)
        for j in range(n):
            x = out[j] * _f32(0.7071067811865476)
            x = x if x > _f32(-4.0) else _f32(-4.0)
            x = x if x < _f32(4.0) else _f32(4.0)
            y = x * x
            p = _f32(-2.72614225801306e-10)
            p = p * y + _f32(2.77068142495902e-08)
            p = p * y + _f32(-2.10102402082508e-06)
            p = p * y + _f32(-5.69250639462346e-05)
            p = p * y + _f32(-7.34990630326855e-04)
            p = p * y + _f32(-2.95459980854025e-03)
            p = p * y + _f32(-1.60960333262415e-02)
            q = _f32(-1.45660718464996e-05)
            q = q * y + _f32(-2.13374055278905e-04)
            q = q * y + _f32(-1.68282697438203e-03)
            q = q * y + _f32(-7.37332916720468e-03)
            q = q * y + _f32(-1.42647390514189e-02)
            out[j] = _f32(0.5) * out[j] * (_f32(1.0) + x * p / q)
        new_scales[i] = _to_bytes(out, room, values[i])


@_sums
def _sum(row: Floats) -> np.float32:
    total = _f32(0.0)
    for j in range(len(row)):
        total += row[j]
    return total


@_sums
def _sum_of_squares(row: Floats, mean: np.float32) -> np.float32:
    total = _f32(0.0)
    for j in range(len(row)):
        difference = row[j] - mean
        total += difference * difference
    return total


@_exactly
def add_and_norm(
    products: Bits,
    scales: Floats,
    columns: Floats,
    bias: Floats,
    x: Floats,
    gain: Floats,
    shift: Floats,
    epsilon: np.float32,
    values: Bytes,
    new_scales: Floats,
) -> None:
    """Add a linear layer's output to x and normalise it, in place; and the same in 8 bits."""
    n = products.shape[1]
    room = np.empty(n, np.float32)
    for i in range(len(products)):
        _from_products(products[i], scales[i], columns, bias, room)
        row = x[i]
        for j in range(n):
            room[j] += row[j]
        mean = _sum(room) / _f32(n)
        inverse = _f32(1.0) / np.sqrt(_sum_of_squares(room, mean) / _f32(n) + epsilon)
        for j in range(n):
            row[j] = (room[j] - mean) * inverse * gain[j] + shift[j]
        new_scales[i] = _to_bytes(row, room, values[i])


@_exactly
def spread(
    products: Bits,
    scales: Floats,
    columns: Floats,
    bias: Floats,
    texts: NDArray[np.int64],
    positions: NDArray[np.int64],
    factor: np.float32,
    out: Halves,
) -> None:
    """Queries (times a factor), keys and values in bfloat16, as batches of matrices.

    ``out`` has the shape (3, texts, heads, tokens, size of a head); ``texts`` and ``positions`` say
    where a token goes.
    """
    n = products.shape[1]
    heads, size = out.shape[2], out.shape[4]
    room, halves = np.empty(n, np.float32), np.empty(n, np.uint16)
    bits = room.view(np.int32)
    for i in range(len(products)):
        _from_products(products[i], scales[i], columns, bias, room)
        for j in range(heads * size):
            room[j] *= factor
        for j in range(n):
            even = (bits[j] >> _i32(16)) & _i32(1)  # a half is rounded to the even neighbour
            halves[j] = np.uint16((bits[j] + _i32(0x7FFF) + even) >> _i32(16))
        first = 0
        for which in range(3):
            for h in range(heads):
                row = out[which, texts[i], h, positions[i]]
                for d in range(size):
                    row[d] = halves[first + d]
                first += size


@_exactly
def _highest(bits: Bits, n: int) -> np.float32:
    """The largest of n floats: negative ones are in the opposite order of their bits."""
    best = _i32(-0x7FFFFFFF)
    for j in range(n):
        b = bits[j]
        b = b ^ ((b >> _i32(31)) & _MAGNITUDE)
        best = b if b > best else best
    one = np.empty(1, np.int32)
    one[0] = best ^ ((best >> _i32(31)) & _MAGNITUDE)
    return one.view(np.float32)[0]  # type: ignore[no-any-return]


@_exactly
def _powers_of_two(row: Floats, room: Floats, n: int, largest: np.float32) -> None:
    """2 ** (row - largest), in place: an integer power times a polynomial of the rest."""
    bits = room.view(np.int32)
    for j in range(n):
        y = row[j] - largest
        whole = y + _ROUND
        x = y - (whole - _ROUND)
        p = _f32(1.3333558e-3)
        p = p * x + _f32(9.6181291e-3)
        p = p * x + _f32(5.5504109e-2)
        p = p * x + _f32(2.4022651e-1)
        p = p * x + _f32(6.9314718e-1)
        p = p * x + _f32(1.0)
        room[j] = whole
        row[j] = p
    for j in range(n):
        k = bits[j] - _ROUND_BITS
        k = k if k > _i32(-126) else _i32(-126)
        bits[j] = (k + _i32(127)) << _i32(23)
    for j in range(n):
        row[j] *= room[j]


@_exactly
def softmax(scores: Halves, lengths: NDArray[np.int64]) -> None:
    """Softmax to the base 2 of each token's scores, in place; padding gets a weight of 0.

    ``scores`` has the shape (texts, heads, tokens, tokens). Rows of padding are left as they are.
    """
    heads, longest = scores.shape[1], scores.shape[2]
    room, row = np.empty(longest, np.float32), np.empty(longest, np.float32)
    bits = row.view(np.int32)
    for t in range(len(scores)):
        n = lengths[t]
        for h in range(heads):
            for i in range(n):
                out = scores[t, h, i]
                for j in range(n):
                    bits[j] = _i32(out[j]) << _i32(16)
                _powers_of_two(row, room, n, _highest(bits, n))
                inverse = _f32(1.0) / _sum(row[:n])
                for j in range(n):
                    row[j] *= inverse
                for j in range(n):
                    out[j] = np.uint16((bits[j] + _i32(0x8000)) >> _i32(16))
                for j in range(n, longest):
                    out[j] = np.uint16(0)


@_exactly
def gather(
    mixed: Halves,
    texts: NDArray[np.int64],
    positions: NDArray[np.int64],
    values: Bytes,
    scales: Floats,
) -> None:
    """Tokens in 8 bits from batches (texts, heads, tokens, size of a head) in bfloat16."""
    heads, size = mixed.shape[1], mixed.shape[3]
    row, room = np.empty(heads * size, np.float32), np.empty(heads * size, np.float32)
    bits = row.view(np.int32)
    for i in range(len(texts)):
        for h in range(heads):
            mine = mixed[texts[i], h, positions[i]]
            for d in range(size):
                bits[h * size + d] = _i32(mine[d]) << _i32(16)
        scales[i] = _to_bytes(row, room, values[i])
