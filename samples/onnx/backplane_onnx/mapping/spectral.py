# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms. The trace computes a matrix for each transform, and the device multiplies by it."""
import numpy as np

from ..builder import Builder
from ..folding import evaluate
from ..node import Node
from ..registry import maps
from ..views import View

MAX_LENGTH = 4096


def transformed(n: Node, x: View, axis: int, length: int, inverse: bool, onesided: bool) -> View:
    """Returns the Fourier transform of x along an axis. The last dimension of x contains the real part and, for
    complex numbers, the imaginary part."""
    b = n.b
    if not 1 <= length <= MAX_LENGTH:
        n.fail(f"the transform has {length} points, and the mapping has 1 to {MAX_LENGTH}")
    complete = inverse and onesided
    count = length // 2 + 1 if onesided else length  # of output points, or of input points of a one-sided inverse
    points = count if complete else length
    x = b.pad(x, [0] * x.rank, [points - x.shape[axis] if d == axis else 0 for d in range(x.rank)], 0)
    parts = [x.select(-1, place) for place in range(x.shape[-1])]
    if complete:
        return inverse_real(b, parts, axis, length)
    rows, columns = np.arange(count)[:, None], np.arange(length)[None, :]
    angle = (2 if inverse else -2) * np.pi * ((rows * columns) % length) / length
    factor = 1 / length if inverse else 1.0
    cosine, sine = np.cos(angle) * factor, np.sin(angle) * factor
    real, imaginary = times(b, cosine, parts[0], axis), times(b, sine, parts[0], axis)
    if len(parts) == 2:
        real = b.op("sub", real, times(b, sine, parts[1], axis))
        imaginary = b.op("add", imaginary, times(b, cosine, parts[1], axis))
    return b.concat([real.unsqueeze(real.rank), imaginary.unsqueeze(real.rank)], -1)


def inverse_real(b: Builder, parts, axis: int, length: int) -> View:
    rows, columns = np.arange(length)[:, None], np.arange(length // 2 + 1)[None, :]
    angle = 2 * np.pi * ((rows * columns) % length) / length
    factor = np.where((columns == 0) | (columns * 2 == length), 1.0, 2.0) / length
    out = times(b, np.cos(angle) * factor, parts[0], axis)
    if len(parts) == 2:
        out = b.op("sub", out, times(b, np.sin(angle) * factor, parts[1], axis))
    return out.unsqueeze(out.rank)


def times(b: Builder, weights: np.ndarray, x: View, axis: int) -> View:
    """Multiplies x along an axis by a matrix [output, input]."""
    x = x.unsqueeze(0) if x.rank == 1 else x
    axis = axis if x.shape[axis] == weights.shape[1] else axis + 1
    moved = x.transpose(axis, -1) if axis != x.rank - 1 else x
    out = b.matmul(b.dense(moved), b.constant(weights.T, x.dtype))
    return out.transpose(axis, -1) if axis != x.rank - 1 else out


@maps("DFT")
def dft(n: Node):
    x = n.view(0)
    default = 1 if n.opset < 20 else -2
    axis = int(n.host(2).reshape(-1)[0]) if n.opset >= 20 and n.has(2) else n.attr("axis", default)
    axis %= x.rank
    inverse, onesided = bool(n.attr("inverse", 0)), bool(n.attr("onesided", 0))
    if n.has(1):
        length = int(n.host(1).reshape(-1)[0])
    else:
        length = 2 * (x.shape[axis] - 1) if inverse and onesided else x.shape[axis]
    return transformed(n, x, axis, length, inverse, onesided)


@maps("STFT")
def stft(n: Node):
    b, x = n.b, n.view(0)
    step = int(n.host(1).reshape(-1)[0])
    window = n.optional(2)
    length = int(n.host(3).reshape(-1)[0]) if n.has(3) else window.shape[0] if window is not None else x.shape[1]
    x = x if x.rank == 3 else x.unsqueeze(2)
    frames = 1 + (x.shape[1] - length) // step
    strides = (x.strides[0], x.strides[1] * step, x.strides[1], x.strides[2])
    x = View(x.storage, x.dtype, (x.shape[0], frames, length, x.shape[2]), strides, x.offset)
    x = b.copy(x) if window is None else b.op("mul", x, b.reshape(window, (window.size, 1)))
    return transformed(n, x, 2, length, False, bool(n.attr("onesided", 1)))


@maps("MelWeightMatrix")
def mel_weights(n: Node):
    """Computes the constant matrix on the host, because the host knows all parameters."""
    feeds = {name: n.host(place) for place, name in enumerate(n.proto.input)}
    if max(int(feeds[name].reshape(-1)[0]) for name in list(n.proto.input)[:2]) > MAX_LENGTH:
        n.fail(f"the matrix has more than {MAX_LENGTH} rows or columns")
    return np.asarray(evaluate(n.proto, feeds, n.opset)[0])
