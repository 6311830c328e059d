# SPDX-License-Identifier: Apache-2.0
"""Calls every operator of the table with a tiny case, and compares the results with NumPy or with the formula."""
import math
import unittest

import backplane as bp
from backplane import constants as c
from backplane import ops
from support import DeviceTest, needs_numpy, numpy as np


def philox(key, low, high, count):
    """Philox4x32-10 as in the paper of Salmon and others."""
    words = []
    mask = 0xffffffff
    for block in range((count + 3) // 4):
        counter = low + (high << 64) + block
        x = [counter >> 32 * i & mask for i in range(4)]
        k0, k1 = key & mask, key >> 32
        for _ in range(10):
            p0, p1 = 0xD2511F53 * x[0], 0xCD9E8D57 * x[2]
            x = [p1 >> 32 ^ x[1] ^ k0, p1 & mask, p0 >> 32 ^ x[3] ^ k1, p0 & mask]
            k0, k1 = (k0 + 0x9E3779B9) & mask, (k1 + 0xBB67AE85) & mask
        words += x
    return words[:count]


def softmax(x, axis=-1):
    e = np.exp(x - x.max(axis, keepdims=True))
    return e / e.sum(axis, keepdims=True)


def normalised(x, axes):
    return (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + 1e-5)


def full_convolution(x, w):
    """y[n, o, i] = sum over c and k of x[n, c, i - k] w[c, o, k]."""
    y = np.zeros((x.shape[0], w.shape[1], x.shape[2] + w.shape[2] - 1), x.dtype)
    for k in range(w.shape[2]):
        y[:, :, k:k + x.shape[2]] += np.einsum("ncl,co->nol", x, w[:, :, k])
    return y


def cases():
    """Returns {operator: function}. The function receives a device and returns (result, expected) pairs."""
    found = {}

    def case(*names):
        def add(function):
            for name in names:
                found[name] = (lambda device, name=name: function(device, name))
            return function
        return add

    f = np.array([[0.5, -1.25, 2.0], [3.0, -0.75, 0.25]], "f4")
    g = np.array([[1.5, 2.5, -0.5], [0.25, 4.0, 1.0]], "f4")
    i = np.array([[7, -3, 2], [-8, 5, 1]], "i4")
    j = np.array([[2, 2, 5], [3, -2, 7]], "i4")

    @case("fill")
    def _(d, name):
        yield ops.fill(value=2.5, out=d.empty((2, 2))), np.full((2, 2), 2.5)

    @case("copy", "neg", "abs", "floor", "rint", "exp", "sin", "cos", "tanh")
    def _(d, name):
        numpy_name = {"copy": "array", "neg": "negative"}.get(name, name)
        yield getattr(ops, name)(d.tensor(f)), getattr(np, numpy_name)(f)

    @case("sqrt", "log")
    def _(d, name):
        yield getattr(ops, name)(d.tensor(abs(f))), getattr(np, name)(abs(f))

    @case("rsqrt")
    def _(d, name):
        yield ops.rsqrt(d.tensor(abs(f))), 1 / np.sqrt(abs(f))

    @case("erf")
    def _(d, name):
        yield ops.erf(d.tensor(f)), np.vectorize(math.erf)(f)

    @case("cast")
    def _(d, name):
        yield ops.cast(d.tensor(f), dtype="i32"), f.astype("i4")
        yield ops.cast(d.tensor(f), dtype="f16"), f.astype("f2")

    @case("iota")
    def _(d, name):
        yield ops.iota(axis=1, start=3, step=2, out=d.empty((2, 3), "i32")), np.tile([3, 5, 7], (2, 1))

    @case("gather")
    def _(d, name):
        index = np.array([[2, 0], [1, 1]], "i4")
        yield ops.gather(d.tensor(f), d.tensor(index), axis=1), np.take_along_axis(f, index, 1)

    @case("scatter")
    def _(d, name):
        out, index = d.tensor(f), np.array([[2, 0], [1, 1]], "i4")
        expected = f.copy()
        np.add.at(expected, (np.array([[0, 0], [1, 1]]), index), g[:, :2])
        yield ops.scatter(d.tensor(index), d.tensor(g[:, :2]), axis=1, mode=c.BP_SCATTER_ADD, out=out), expected

    @case("bitnot")
    def _(d, name):
        yield ops.bitnot(d.tensor(i)), ~i

    @case("add", "sub", "mul", "div", "max", "min")
    def _(d, name):
        numpy_name = {"sub": "subtract", "mul": "multiply", "div": "divide", "max": "maximum", "min": "minimum"}.get(name, name)
        yield getattr(ops, name)(d.tensor(f), d.tensor(g)), getattr(np, numpy_name)(f, g)

    @case("rem")
    def _(d, name):
        yield ops.rem(d.tensor(i), d.tensor(j)), np.fmod(i, j)

    @case("and", "or", "xor")
    def _(d, name):
        yield bp.run(name, d.tensor(i), d.tensor(j)), getattr(np, f"bitwise_{name}")(i, j)

    @case("shl", "shr")
    def _(d, name):
        shift = np.array([[1, 2, 3], [0, 4, 5]], "i4")
        numpy_name = {"shl": "left_shift", "shr": "right_shift"}[name]
        yield getattr(ops, name)(d.tensor(i), d.tensor(shift)), getattr(np, numpy_name)(i, shift)

    @case("compare")
    def _(d, name):
        for predicate, compared in ((c.BP_COMPARE_LT, f < g), (c.BP_COMPARE_NE, f != g), (c.BP_COMPARE_GE, f >= g)):
            yield ops.compare(d.tensor(f), d.tensor(g), predicate=predicate), compared

    @case("select")
    def _(d, name):
        yield ops.select(d.tensor(f > 0), d.tensor(f), d.tensor(g)), np.where(f > 0, f, g)
        yield ops.select(d.tensor(f > 0), d.tensor(f), 0), np.where(f > 0, f, 0)

    @case("reduce_sum", "reduce_prod", "reduce_max", "reduce_min")
    def _(d, name):
        reduced = getattr(np, name.split("_")[1])
        yield getattr(ops, name)(d.tensor(f), axes=[1]), reduced(f, axis=1, keepdims=True)
        yield getattr(ops, name)(d.tensor(f), axes=0b11), reduced(f, keepdims=True)

    @case("argmax", "argmin")
    def _(d, name):
        yield getattr(ops, name)(d.tensor(f), axis=1), getattr(np, name)(f, axis=1, keepdims=True)
        yield getattr(ops, name)(d.tensor(f), axis=0, dtype="i64"), getattr(np, name)(f, axis=0, keepdims=True)

    @case("cumsum")
    def _(d, name):
        yield ops.cumsum(d.tensor(f), axis=1), np.cumsum(f, 1)
        yield ops.cumsum(d.tensor(f), axis=0, reverse=True), np.cumsum(f[::-1], 0)[::-1]

    @case("matmul")
    def _(d, name):
        yield ops.matmul(d.tensor(f), d.tensor(g).transpose()), f @ g.T
        yield ops.matmul(d.tensor(i.astype("i1")), d.tensor(j.astype("i1")).transpose()), i @ j.T

    @case("sort")
    def _(d, name):
        values, indices = ops.sort(d.tensor(f), axis=1, out=(d.empty((2, 3)), d.empty((2, 3), "i64")))
        yield values, np.sort(f, 1)
        yield indices, np.argsort(f, 1, kind="stable")
        yield ops.sort(d.tensor(f), axis=1, descending=1), -np.sort(-f, 1)

    @case("philox")
    def _(d, name):
        yield ops.philox(key=0x123456789, counter_low=7, counter_high=2, out=d.empty((6,), "u32")), philox(0x123456789, 7, 2, 6)

    @case("gelu")
    def _(d, name):
        yield ops.gelu(d.tensor(f)), f * 0.5 * (1 + np.vectorize(math.erf)(f / math.sqrt(2)))
        yield ops.gelu(d.tensor(f), approximation=c.BP_GELU_TANH), 0.5 * f * (1 + np.tanh(math.sqrt(2 / math.pi) * (f + 0.044715 * f**3)))

    @case("silu", "sigmoid")
    def _(d, name):
        sigmoid = 1 / (1 + np.exp(-f))
        yield getattr(ops, name)(d.tensor(f)), sigmoid * f if name == "silu" else sigmoid

    @case("activation_bwd")
    def _(d, name):
        y = 1 / (1 + np.exp(-f))
        yield ops.activation_bwd(d.tensor(g), d.tensor(y), activation=c.BP_ACTIVATION_SIGMOID), g * y * (1 - y)
        yield ops.activation_bwd(d.tensor(g), d.tensor(f), activation=c.BP_ACTIVATION_SILU), g * y * (1 + f * (1 - y))

    @case("unary")
    def _(d, name):
        for function, expected in (("EXPM1", np.expm1), ("LOG1P", lambda x: np.log1p(abs(x))), ("TRUNC", np.trunc), ("ATAN", np.arctan)):
            x = abs(f) if function == "LOG1P" else f
            yield ops.unary(d.tensor(x), function=getattr(c, "BP_UNARY_" + function)), expected(x)

    @case("pow")
    def _(d, name):
        yield ops.pow(d.tensor(abs(f)), d.tensor(g)), abs(f) ** g

    @case("softmax", "log_softmax")
    def _(d, name):
        expected = softmax(f)
        yield getattr(ops, name)(d.tensor(f), axis=1), np.log(expected) if name.startswith("log") else expected

    @case("layer_norm")
    def _(d, name):
        gamma, beta = np.array([1, 2, 3], "f4"), np.array([0.5, 0, -1], "f4")
        yield ops.layer_norm(d.tensor(f), d.tensor(gamma), d.tensor(beta), axes=[1], epsilon=1e-5), normalised(f, 1) * gamma + beta
        y, mean, rstd = ops.layer_norm(d.tensor(f), axes=[1], epsilon=1e-5, out=(d.empty((2, 3)), None, d.empty((2, 1))))
        assert mean is None
        yield rstd, 1 / np.sqrt(f.var(1, keepdims=True) + 1e-5)

    @case("rms_norm")
    def _(d, name):
        yield ops.rms_norm(d.tensor(f), axes=[1], epsilon=1e-5), f / np.sqrt((f * f).mean(1, keepdims=True) + 1e-5)

    @case("group_norm")
    def _(d, name):
        x = np.arange(16, dtype="f4").reshape(2, 4, 2) ** 1.5
        yield ops.group_norm(d.tensor(x), groups=2, epsilon=1e-5), normalised(x.reshape(2, 2, 4), 2).reshape(2, 4, 2)

    @case("batch_norm")
    def _(d, name):
        x = np.arange(12, dtype="f4").reshape(2, 3, 2) ** 1.5
        yield ops.batch_norm(d.tensor(x), training=1, epsilon=1e-5, momentum=0.1), normalised(x, (0, 2))
        zero = d.tensor(np.zeros(3, "f4"))
        _, _, variance = ops.batch_norm(d.tensor(x), None, None, zero, zero, training=1, epsilon=1e-5, momentum=1, unbiased=1,
                                        out=(d.empty((2, 3, 2)), None, d.empty((3,))))
        yield variance, x.var((0, 2), ddof=1)

    @case("linear")
    def _(d, name):
        bias = np.array([1, -1], "f4")
        yield ops.linear(d.tensor(f), d.tensor(g), d.tensor(bias)), f @ g.T + bias
        yield ops.linear(d.tensor(f), d.tensor(g), activation=c.BP_ACTIVATION_RELU), np.maximum(f @ g.T, 0)

    # The first four words of philox for key 0 and counter 0 are test vectors of Random123.
    words = np.array([0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8], "u8")
    first = (words >> 8) * 2.0**-24
    start = {"key": 0, "counter_low": 0, "counter_high": 0}

    @case("uniform")
    def _(d, name):
        yield ops.uniform(**start, out=d.empty((4,))), first

    @case("normal")
    def _(d, name):
        radius, angle = np.sqrt(-2 * np.log(1 - first[::2])), 2 * np.pi * first[1::2]
        expected = np.stack([radius * np.cos(angle), radius * np.sin(angle)], 1)
        yield ops.normal(**start, out=d.empty((2, 2))), expected

    @case("dropout")
    def _(d, name):
        x, kept = np.array([1, 2, 3, 4], "f4"), first >= 0.7
        yield ops.dropout(d.tensor(x), p=0.7, **start), np.where(kept, x / 0.3, 0)
        _, mask = ops.dropout(d.tensor(x), p=0.7, **start, out=(d.empty((4,)), d.empty((4,), "bool")))
        yield mask, kept

    @case("rotate")
    def _(d, name):
        x, cosine, sine = np.arange(8, dtype="f4").reshape(2, 4), np.full((2, 2), 0.8, "f4"), np.full((2, 2), 0.6, "f4")
        low, high, even, odd = x[:, :2], x[:, 2:], x[:, ::2], x[:, 1::2]
        y = ops.rotate(d.tensor(x), d.tensor(cosine), d.tensor(sine), interleaved=0)
        yield y, np.concatenate([low * cosine - high * sine, high * cosine + low * sine], 1)
        y = ops.rotate(d.tensor(x), d.tensor(cosine), d.tensor(sine), interleaved=1)
        yield y, np.stack([even * cosine - odd * sine, odd * cosine + even * sine], 2).reshape(2, 4)
        yield ops.rotate(y, d.tensor(cosine), d.tensor(-sine), interleaved=1), x  # the backward pass, and the inverse

    @case("gemm")
    def _(d, name):
        a, b = d.tensor(f), d.tensor(np.ascontiguousarray(g.T))
        yield ops.gemm(a, b, alpha=0.5, beta=0), 0.5 * f @ g.T
        yield ops.gemm(a, b, d.tensor([[1., 2.], [3., 4.]]), alpha=1, beta=-2), f @ g.T - [[2, 4], [6, 8]]

    x1 = np.arange(12, dtype="f4").reshape(1, 2, 6) / 4
    w1 = np.arange(12, dtype="f4").reshape(3, 2, 2) / 8 - 0.5
    window = {"spatial_rank": 1, "stride": [1], "dilation": [1]}

    @case("conv")
    def _(d, name):
        y = ops.conv(d.tensor(x1), d.tensor(w1), groups=1, **window, out=d.empty((1, 3, 5)))
        yield y, sum(np.einsum("ncl,oc->nol", x1[:, :, k:k + 5], w1[:, :, k]) for k in range(2))

    @case("conv_transpose")
    def _(d, name):
        w = np.ascontiguousarray(w1.transpose(1, 0, 2))
        yield ops.conv_transpose(d.tensor(x1), d.tensor(w), groups=1, **window, out=d.empty((1, 3, 7))), full_convolution(x1, w)

    @case("conv_bwd_input")
    def _(d, name):
        dy = np.arange(15, dtype="f4").reshape(1, 3, 5) / 8
        yield ops.conv_bwd_input(d.tensor(dy), d.tensor(w1), groups=1, **window, out=d.empty((1, 2, 6))), full_convolution(dy, w1)

    @case("conv_bwd_weight")
    def _(d, name):
        dy = np.arange(15, dtype="f4").reshape(1, 3, 5) / 8
        dw = np.stack([np.einsum("ncl,nol->oc", x1[:, :, k:k + 5], dy) for k in range(2)], 2)
        yield ops.conv_bwd_weight(d.tensor(x1), d.tensor(dy), groups=1, **window, out=d.empty((3, 2, 2))), dw

    @case("max_pool")
    def _(d, name):
        y, index = ops.max_pool(d.tensor(x1), kernel=[2], spatial_rank=1, stride=[2], dilation=[1], out=(d.empty((1, 2, 3)), d.empty((1, 2, 3), "i32")))
        yield y, x1.reshape(1, 2, 3, 2).max(3)
        yield index, np.tile([1, 3, 5], (1, 2, 1))

    @case("avg_pool")
    def _(d, name):
        y = ops.avg_pool(d.tensor(x1), kernel=[2], spatial_rank=1, stride=[2], dilation=[1], out=d.empty((1, 2, 3)))
        yield y, x1.reshape(1, 2, 3, 2).mean(3)

    @case("attention")
    def _(d, name):
        q, k, v = (np.cos(np.arange(n * 4, dtype="f4") * s).reshape(1, 1, n, 4) for n, s in ((2, 1), (3, 2), (3, 3)))
        scores = np.einsum("bhld,bhsd->bhls", q, k) * 0.5
        yield ops.attention(d.tensor(q), d.tensor(k), d.tensor(v), scale=0.5), softmax(scores) @ v
        seen = np.array([[True, False, False], [True, True, False]])
        causal = ops.attention(d.tensor(q), d.tensor(k), d.tensor(v), scale=0.5, causal=c.BP_CAUSAL_UPPER_LEFT)
        yield causal, softmax(np.where(seen, scores, -np.inf)) @ v
        limited, sinks = 0.75 * np.tanh(scores / 0.75), np.log(np.array([2], "f4"))
        weights = np.exp(limited) / (np.exp(limited).sum(-1, keepdims=True) + 2)
        yield ops.attention(d.tensor(q), d.tensor(k), d.tensor(v), sinks=d.tensor(sinks), scale=0.5, softcap=0.75), weights @ v

    @case("attention_bwd")
    def _(d, name):
        q, k, v, dy = (np.cos(np.arange(n * 4, dtype="f4") * s).reshape(1, 1, n, 4) for n, s in ((2, 1), (3, 2), (3, 3), (2, 4)))
        scores = np.einsum("bhld,bhsd->bhls", q, k) * 0.5
        p, total = softmax(scores), np.log(np.exp(scores).sum(-1))
        y, slope = p @ v, np.einsum("bhle,bhse->bhls", dy, v)
        gradient = p * (slope - (dy * y).sum(-1, keepdims=True)) * 0.5
        outputs = tuple(d.empty(x.shape) for x in (q, k, v))
        ops.attention_bwd(*(d.tensor(x) for x in (dy, q, k, v, y, total)), scale=0.5, out=outputs)
        yield outputs[0], gradient @ k
        yield outputs[1], gradient.swapaxes(2, 3) @ q
        yield outputs[2], p.swapaxes(2, 3) @ dy

    @case("rope")
    def _(d, name):
        x = np.arange(8, dtype="f4").reshape(2, 4)
        angle = np.array([[3], [5]]) * 100.0 ** (-np.arange(2) / 2)
        low, high = x[:, :2], x[:, 2:]
        expected = np.concatenate([low * np.cos(angle) - high * np.sin(angle), high * np.cos(angle) + low * np.sin(angle)], 1)
        yield ops.rope(d.tensor(x), d.tensor([3, 5]), base=100), expected

    @case("quantize")
    def _(d, name):
        q = ops.quantize(d.tensor(f), d.tensor([0.25]), bits=8, out=d.empty((2, 3), "i8"))
        yield q, np.rint(f / 0.25)

    @case("dequantize")
    def _(d, name):
        zero = d.tensor(np.array([1], "i1"))
        yield ops.dequantize(d.tensor(i.astype("i1")), d.tensor([0.25]), zero, bits=8, out=d.empty((2, 3))), (i - 1) * 0.25

    @case("quantized_matmul")
    def _(d, name):
        yield ops.quantized_matmul(d.tensor(f), d.tensor(i.astype("i1")), d.tensor([0.5]), weight_bits=8, out=d.empty((2, 2))), f @ (i * 0.5).T
        bias = d.tensor([1., -1.])  # determines the shape of the output
        yield ops.quantized_matmul(d.tensor(f), d.tensor(i.astype("i1")), d.tensor([0.5]), bias=bias, weight_bits=8), f @ (i * 0.5).T + [1, -1]

    @case("embedding")
    def _(d, name):
        yield ops.embedding(d.tensor(f), d.tensor([1, 0, 1])), f[[1, 0, 1]]

    @case("topk")
    def _(d, name):
        values, indices = ops.topk(d.tensor(f), axis=1, out=(d.empty((2, 2)), d.empty((2, 2), "i32")))
        yield values, -np.sort(-f, 1)[:, :2]
        yield indices, np.argsort(-f, 1, kind="stable")[:, :2]

    @case("cross_entropy")
    def _(d, name):
        target = np.array([2, 0], "i4")
        loss = ops.cross_entropy(d.tensor(f), d.tensor(target), reduction=c.BP_REDUCTION_NONE, ignore_index=-1, label_smoothing=0, out=d.empty((2,)))
        yield loss, -np.log(softmax(f))[[0, 1], target]

    @case("nll")
    def _(d, name):
        x, index = -abs(f), np.array([2, 0])
        yield ops.nll(d.tensor(x), d.tensor([2, 0]), reduction=c.BP_REDUCTION_MEAN, ignore_index=-1, out=d.empty(())), -x[[0, 1], index].mean()

    @case("nll_bwd")
    def _(d, name):
        dx = ops.nll_bwd(d.tensor([2., 3.]), d.tensor([2, 0]), reduction=c.BP_REDUCTION_NONE, ignore_index=-1, out=d.empty((2, 3)))
        yield dx, np.array([[0, 0, -2], [-3, 0, 0]])

    @case("softmax_bwd")
    def _(d, name):
        y = softmax(f)
        yield ops.softmax_bwd(d.tensor(g), d.tensor(y), axis=1), y * (g - (g * y).sum(1, keepdims=True))

    @case("norm_bwd")
    def _(d, name):
        rstd, hat = 1 / np.sqrt(f.var(1, keepdims=True) + 1e-5), normalised(f, 1)
        expected = rstd * (g - g.mean(1, keepdims=True) - hat * (g * hat).mean(1, keepdims=True))
        yield ops.norm_bwd(d.tensor(g), d.tensor(f), norm=c.BP_NORM_LAYER, axes=[1], epsilon=1e-5), expected

    @case("adamw")
    def _(d, name):
        m, v = g * 0.1, g * g * 0.01
        state = [d.tensor(each) for each in (f, m, v)]
        parameter, first, _ = ops.adamw(d.tensor(g), beta1=0.9, beta2=0.99, epsilon=1e-8, weight_decay=0.1, learning_rate=0.01, correction1=0.19,
                                        correction2=0.0199, out=state)
        m, v = 0.9 * m + 0.1 * g, 0.99 * v + 0.01 * g * g
        yield first, m
        yield parameter, f - 0.01 * 0.1 * f - 0.01 * (m / 0.19) / (np.sqrt(v / 0.0199) + 1e-8)

    return found


@needs_numpy
class OperatorTest(DeviceTest):
    def test_every_operator_has_a_case(self):
        self.assertEqual(sorted(cases()), sorted(bp.operators()))

    def test_results_agree_with_numpy(self):
        for name, run in cases().items():
            with self.subTest(operator=name):
                pairs = list(run(self.device))
                self.assertTrue(pairs)
                for result, expected in pairs:
                    tolerance = 1e-3 if result.dtype == "f16" else 2e-6
                    np.testing.assert_allclose(result.numpy(), expected, rtol=tolerance, atol=tolerance)
                    self.assertEqual(result.shape, np.shape(expected))

    def test_a_wrong_result_is_noticed(self):
        result = ops.add(self.device.tensor([1., 2.]), self.device.tensor([1., 2.]))
        with self.assertRaises(AssertionError):
            np.testing.assert_allclose(result.numpy(), [2, 4.0001], rtol=2e-6, atol=2e-6)

    def test_half_precision(self):
        for dtype, step in (("f16", 2**-10), ("bf16", 2**-7)):
            with self.subTest(dtype=dtype):
                a = self.device.tensor([1, 1 + step, -2.5, 65280], dtype)
                self.assertEqual(ops.add(a, a).tolist(), [2, 2 + 2 * step, -5, 130560 if dtype == "bf16" else math.inf])
                self.assertEqual(a.dtype, dtype)
                wide = ops.reduce_sum(a[:3], axes=[0], dtype="f32")
                self.assertEqual((wide.dtype, wide.item()), ("f32", 1 + 1 + step - 2.5))

    def test_bits_of_bf16_are_uint16(self):
        bits = np.array([0x3f80, 0xc040], "u2")
        self.assertEqual(self.device.tensor(bits, "bf16").tolist(), [1, -3])
        np.testing.assert_array_equal(ops.cast(self.device.tensor(bits, "bf16"), dtype="f32").numpy(), [1, -3])

    def test_broadcasting_and_numbers(self):
        a = np.arange(6, dtype="f4").reshape(2, 3)
        row = self.device.tensor(np.array([10, 20, 30], "f4"))
        np.testing.assert_array_equal(ops.add(self.device.tensor(a), row).numpy(), a + [10, 20, 30])
        np.testing.assert_array_equal(ops.mul(2, self.device.tensor(a)).numpy(), 2 * a)
        np.testing.assert_array_equal(ops.max(self.device.tensor(a), bp.scalar(2.5, "f32")).numpy(), np.maximum(a, 2.5))

    def test_strided_views(self):
        x = np.arange(24, dtype="f4").reshape(2, 3, 4)
        t = self.device.tensor(x)
        for index in ((1,), (slice(None), slice(None, None, -1)), (..., slice(1, None, 2)), (slice(None), None, 1), (1, -1, 2), (..., slice(2, 2))):
            with self.subTest(index=index):
                view = t[index]
                np.testing.assert_array_equal(view.numpy(), x[index])
                np.testing.assert_array_equal(np.array(view.tolist()).reshape(view.shape), x[index])
                np.testing.assert_array_equal(ops.neg(view).numpy(), -x[index])
        out = self.device.tensor(np.zeros((2, 3, 8), "f4"))
        ops.copy(t, out=out[..., ::2])
        np.testing.assert_array_equal(out.numpy()[..., ::2], x)
        np.testing.assert_array_equal(out.numpy()[..., 1::2], 0)
        np.testing.assert_array_equal(ops.add(t.permute(2, 0, 1), t.permute(2, 0, 1)).numpy(), 2 * x.transpose(2, 0, 1))


class CallTest(DeviceTest):
    """Tests that need no NumPy."""

    def test_the_first_test_of_a_vendor(self):
        d = bp.open("reference:0")
        self.assertEqual(ops.add(d.tensor([1., 2.]), d.tensor([3., 4.])).tolist(), [4., 6.])

    def test_scalars_may_be_tensors(self):
        value, step = self.device.tensor([3.]), self.device.tensor(0.5, "f32")
        out = self.device.empty((3,))
        ops.fill(value=value, out=out)
        ops.add(value, 1, out=value)
        self.assertEqual(out.tolist(), [3, 3, 3])
        ops.iota(start=value, step=step, axis=0, out=out)
        self.assertEqual(out.tolist(), [4, 4.5, 5])
        self.message(bp.InvalidArgument, ["iota", "step is 2", "only numbers"], ops.iota, start=value, step=2, axis=0, out=out)
        self.message(bp.InvalidArgument, ["start", "one element"], ops.iota, start=out, step=step, axis=0, out=out)
        self.message(bp.Unsupported, ["scalar 0 is i32"], ops.fill, value=self.device.tensor([3]), out=out)
        self.message(bp.InvalidArgument, ["overlaps scalar 0"], ops.fill, value=out[1], out=out)
        self.message(bp.InvalidArgument, ["scalar_tensors"], ops.fill, value=1, out=out, flags=c.BP_OP_FLAG_DEVICE_SCALARS)

    def test_run_and_supports(self):
        a = self.device.tensor([1., 2.])
        self.assertEqual(bp.run("mul", a, a).tolist(), [1, 4])
        self.assertEqual(bp.supports("mul", a, a)["path"], "native")
        self.assertIn(bp.supports("softmax", a, axis=0)["path"], ("native", "decomposed"))

    def test_pack(self):
        x, w = self.device.tensor([[1., 2., 3.]]), self.device.tensor([[1., 0., 2.], [0., 1., 1.]])
        parameters = {"activation": 0, "precision": 0, "out": self.device.empty((1, 2))}
        size = bp.pack_bytes("linear", 1, x, w, **parameters)
        if size is None:
            self.skipTest("the plugin prefers plain inputs")
        packed = bp.pack("linear", 1, x, w, **parameters)
        self.assertEqual(packed.buffer.bytes, size)
        w.copy_from([[9., 9., 9.], [9., 9., 9.]])  # the packed operand keeps the earlier values
        self.assertEqual(bp.run("linear", x, packed, **parameters).tolist(), [[7, 5]])
        self.assertFalse(packed.is_contiguous)
        for use in (packed.numpy, packed.tolist, packed.transpose, lambda: packed[0], packed.__dlpack__):
            self.message(bp.InvalidArgument, ["packed", "(2, 3)"], use)
        self.message(bp.Unsupported, ["pack"], ops.add, packed, packed, out=self.device.empty((2, 3)))
        self.message(bp.Unsupported, ["prefers the plain"], bp.pack, "add", 1, x, x, out=x)

    def test_execute_is_the_call_as_it_is(self):
        a, out = self.device.tensor([1., 2.]), self.device.empty((2,))
        bp.execute(self.device.stream, c.BP_OP_ADD, [a, a], [out])
        self.assertEqual(out.tolist(), [2, 4])

    def test_every_function_of_the_table_exists(self):
        missing = [name for name in bp.operators() if not hasattr(ops, name) and not hasattr(ops, name + "_")]
        self.assertEqual(missing, [])

    def test_plans_are_cached(self):
        a = self.device.tensor([1., 2., 3.])
        before = None
        for _ in range(10):
            ops.sub(a, a)
            before = before or self.device.stats()
        after = self.device.stats()
        self.assertEqual(after["plans_created"], before["plans_created"])
        self.assertEqual(after["executions"], before["executions"] + 9)
        self.assertEqual(after["staged_operands"], before["staged_operands"])
