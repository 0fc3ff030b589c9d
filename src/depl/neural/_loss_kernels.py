"""The joint loss of DEPL+c and its gradients in one compiled pass, for training on a CPU.

PyTorch makes some thirty passes over documents x labels for it and its gradients.
"""

from __future__ import annotations

import numba
import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

_f32, _i32 = np.float32, np.int32
# All of fastmath but reassociation: what is added to round a number must not be optimised away.
_exactly = numba.njit(
    nogil=True, cache=True, error_model="numpy", fastmath={"contract", "nnan", "ninf", "nsz"}
)
_MOST = _f32(80.0)  # logits beyond it are as sure; their exponentials are still numbers
_ROUND = _f32(1.5 * 2**23)  # adding it leaves the nearest integer in the lowest bits
_ROUND_BITS = _i32(0x4B400000)
_FRACTION = _i32(0x007FFFFF)
_LN_2 = _f32(0.6931471805599453)


@_exactly
def _exponentials(x: Floats, out: Floats, room: Floats) -> None:
    """E ** x: an integer power of two times a polynomial of the rest."""
    bits = room.view(np.int32)
    for j in range(len(x)):
        y = x[j]
        y = y if y < _MOST else _MOST
        y = y if y > -_MOST else -_MOST
        y = y * _f32(1.4426950408889634)
        whole = y + _ROUND
        r = y - (whole - _ROUND)
        p = _f32(1.5403530e-4)
        p = p * r + _f32(1.3333558e-3)
        p = p * r + _f32(9.6181291e-3)
        p = p * r + _f32(5.5504109e-2)
        p = p * r + _f32(2.4022651e-1)
        p = p * r + _f32(6.9314718e-1)
        p = p * r + _f32(1.0)
        room[j] = whole
        out[j] = p
    for j in range(len(x)):
        bits[j] = (bits[j] - _ROUND_BITS + _i32(127)) << _i32(23)
    for j in range(len(x)):
        out[j] *= room[j]


@_exactly
def _logarithms(x: Floats, room: Floats) -> None:
    """Ln x of positive numbers, in place; to 1e-6."""
    bits, mantissas = x.view(np.int32), room.view(np.int32)
    for j in range(len(x)):
        # The mantissa is brought between 2/3 and 4/3, so that ln of numbers near 1 is exact.
        shifted = bits[j] - _i32(0x3F2AAAAB)
        exponent = shifted & ~_FRACTION
        mantissas[j] = bits[j] - exponent
        bits[j] = exponent >> _i32(23)
    for j in range(len(x)):
        m = room[j] - _f32(1.0)
        p = _f32(-0.15685202)
        p = p * m + _f32(0.17210779)
        p = p * m + _f32(-0.16352366)
        p = p * m + _f32(0.19781475)
        p = p * m + _f32(-0.25011945)
        p = p * m + _f32(0.33338162)
        p = p * m + _f32(-0.49999860)
        room[j] = m + m * m * p
    for j in range(len(x)):
        x[j] = _f32(bits[j]) * _LN_2 + room[j]


@numba.njit(nogil=True, cache=True, fastmath=True)
def _sum(row: Floats) -> np.float32:
    total = _f32(0.0)
    for j in range(len(row)):
        total += row[j]
    return total


@_exactly
def joint_loss(dual: Floats, dense: Floats, alive: np.float32, share: np.float32) -> float:
    """The sum of the joint loss over pairs that are all wrong; logits become its gradients.

    With u = s(-dual) and v = s(-dense) the loss of a wrong label is
    ``-(1 - alive) ln((u + v) / 2) - alive (ln u + ln v) / 2``. A right label is a wrong one with
    the opposite logits.

    Parameters
    ----------
    dual, dense : arrays of shape (n_documents, n_labels)
        Logits, the opposite ones where a document carries the label; afterwards the derivatives.
    alive : float32
        The share of each branch's own loss.
    share : float32
        What loss and gradients are multiplied by.
    """
    n = dual.shape[1]
    u, v = np.empty(n, np.float32), np.empty(n, np.float32)
    both, room = np.empty(n, np.float32), np.empty(n, np.float32)
    joint, own = share * (_f32(1.0) - alive), share * alive / _f32(2.0)
    loss = 0.0
    for i in range(len(dual)):
        f, g = dual[i], dense[i]
        _exponentials(f, f, room)
        _exponentials(g, g, room)
        for j in range(n):
            u[j] = _f32(1.0) / (_f32(1.0) + f[j])
            v[j] = _f32(1.0) / (_f32(1.0) + g[j])
        for j in range(n):
            both[j] = u[j] + v[j]
        for j in range(n):
            inverse = joint / both[j]
            f[j] = f[j] * u[j] * (u[j] * inverse + own)
            g[j] = g[j] * v[j] * (v[j] * inverse + own)
        _logarithms(both, room)
        _logarithms(u, room)
        _logarithms(v, room)
        loss -= float(joint * (_sum(both) - _f32(n) * _LN_2) + own * (_sum(u) + _sum(v)))
    return loss
