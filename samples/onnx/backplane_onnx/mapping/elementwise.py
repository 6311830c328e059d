# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, comparisons and activations."""
import math

from .. import dtypes
from ..node import Node
from ..registry import maps
from ..views import View

UNARY = {"Abs": "abs", "Neg": "neg", "Sqrt": "sqrt", "Exp": "exp", "Log": "log", "Sin": "sin", "Cos": "cos", "Tanh": "tanh", "Erf": "erf",
         "Sigmoid": "sigmoid", "Not": "bitnot", "BitwiseNot": "bitnot", "Floor": "floor", "Round": "rint"}


@maps(*UNARY)
def unary(n: Node):
    return n.b.op(UNARY[n.proto.op_type], n.view(0))


BINARY = {"Add": "add", "Sub": "sub", "Mul": "mul", "Div": "div", "And": "and", "Or": "or", "Xor": "xor", "BitwiseAnd": "and", "BitwiseOr": "or",
          "BitwiseXor": "xor"}


def operands(n: Node):
    """Returns both operands. A constant with one element becomes an immediate."""
    a, b = n.value(0), n.value(1)
    if n.attr("broadcast", 0) and "axis" in n.attributes:  # before opset 7, `axis` aligns the second operand
        second = n.view(1)
        return n.view(0), n.b.reshape(second, second.shape + (1,) * (len(a.shape) - n.attr("axis") - second.rank))
    if b.host is not None and b.host.size == 1 and a.view is not None and len(b.shape) <= len(a.shape) and n.dtype(1) != "bool":
        return n.view(0), n.number(1)
    return n.view(0), n.view(1)


@maps(*BINARY)
def binary(n: Node):
    a, b = operands(n)
    return n.b.op(BINARY[n.proto.op_type], a, b)


COMPARE = {"Equal": "EQ", "Less": "LT", "LessOrEqual": "LE", "Greater": "GT", "GreaterOrEqual": "GE"}


@maps(*COMPARE)
def compare(n: Node):
    return n.b.compare(*operands(n), COMPARE[n.proto.op_type])


@maps("Max", "Min", "Sum", "Mean")
def variadic(n: Node):
    op = {"Max": "max", "Min": "min"}.get(n.proto.op_type, "add")
    views = n.views()
    out = views[0]
    for each in views[1:]:
        out = n.b.op(op, out, each)
    return n.b.op("div", out, len(views)) if n.proto.op_type == "Mean" else n.b.copy(out) if len(views) == 1 else out


@maps("Where")
def where(n: Node):
    return n.b.op("select", n.view(0), n.view(1), n.view(2))


@maps("Mod")
def mod(n: Node):
    a, b = n.view(0), n.view(1)
    if a.dtype in dtypes.FLOATS:
        rest = n.b.op("sub", a, n.b.op("mul", n.b.unary(n.b.op("div", a, b), "TRUNC"), b))
        kept = n.b.op("and", n.b.compare(n.b.op("abs", b), math.inf, "EQ"), n.b.compare(n.b.op("abs", a), math.inf, "LT"))
        rest = n.b.op("select", kept, a, rest)
    else:
        rest = n.b.op("rem", a, b)
    if n.attr("fmod", 0) or a.dtype not in dtypes.SIGNED | dtypes.FLOATS:
        return rest  # with fmod, the result has the sign of the dividend; otherwise that of the divisor, as in Python
    other_sign = n.b.op("xor", n.b.compare(rest, 0, "LT"), n.b.compare(b, 0, "LT"))
    wrong = n.b.op("and", other_sign, n.b.compare(rest, 0, "NE"))
    return n.b.op("select", wrong, n.b.op("add", rest, b), rest)


@maps("Pow")
def power(n: Node):
    a, dtype = n.view(0), n.dtype(0)
    exponent = n.number(1)
    if not isinstance(exponent, View) and exponent in (1, 2, 3) and n.shape(1) in ((), (1,)):
        square = n.b.op("mul", a, a) if exponent > 1 else n.b.copy(a)
        return n.b.op("mul", square, a) if exponent == 3 else square
    if not isinstance(exponent, View) and exponent == 0.5 and dtype in dtypes.FLOATS and n.shape(1) in ((), (1,)):
        return n.b.op("sqrt", a)
    work = dtype if dtype in dtypes.FLOATS else "f64"
    out = n.b.op("pow", n.b.cast(a, work), n.b.cast(n.view(1), work))
    return n.b.cast(n.b.op("rint", out), dtype) if dtype not in dtypes.FLOATS else out


@maps("BitShift")
def shift(n: Node):
    a, b = n.view(0), n.view(1)
    out = n.b.op("shl" if n.attr("direction") == "LEFT" else "shr", a, b)
    width = dtypes.BYTES[a.dtype] * 8  # a shift removes all bits if it is negative, or at least the width
    whole = n.b.compare(b, width, "GE")
    if b.dtype in dtypes.SIGNED:
        whole = n.b.op("or", whole, n.b.compare(b, 0, "LT"))
    if n.attr("direction") == "LEFT" or a.dtype not in dtypes.SIGNED:
        return n.b.op("select", whole, 0, out)
    return n.b.op("select", whole, n.b.op("shr", a, width - 1), out)


@maps("Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Ceil", "Cosh", "Mish", "Sinh", "Softplus", "Tan")
def function(n: Node):
    return n.b.unary(n.view(0), n.proto.op_type.upper())


@maps("Reciprocal")
def reciprocal(n: Node):
    return n.b.op("div", 1, n.view(0))


@maps("Sign")
def sign(n: Node):
    x = n.view(0)
    if x.dtype in dtypes.FLOATS:
        return n.b.unary(x, "SIGN")
    positive = n.b.cast(n.b.compare(x, 0, "GT"), x.dtype)
    if x.dtype not in dtypes.SIGNED:
        return positive
    return n.b.op("sub", positive, n.b.cast(n.b.compare(x, 0, "LT"), x.dtype))


@maps("Relu")
def relu(n: Node):
    return n.b.op("max", n.view(0), 0)


@maps("LeakyRelu", "PRelu")
def leaky(n: Node):
    x = n.view(0)
    slope = n.view(1) if n.proto.op_type == "PRelu" else n.attr("alpha", 0.01)
    if isinstance(slope, View) and n.opset < 7 and slope.size > 1:
        slope = n.b.reshape(slope, (slope.size,) + (1,) * (x.rank - 2))  # before opset 7, one slope per channel
    return n.b.op("select", n.b.compare(x, 0, "LT"), n.b.op("mul", x, slope), x)


@maps("Elu", "Selu", "Celu")
def elu(n: Node):
    x, op = n.view(0), n.proto.op_type
    alpha = n.attr("alpha", 1.67326319217681884765625 if op == "Selu" else 1.0)
    gamma = n.attr("gamma", 1.05070102214813232421875) if op == "Selu" else 1.0
    inner = n.b.op("div", x, alpha) if op == "Celu" else x
    low = n.b.op("mul", n.b.unary(inner, "EXPM1"), alpha * gamma)
    return n.b.op("select", n.b.compare(x, 0, "GT"), n.b.op("mul", x, gamma), low)


@maps("HardSigmoid")
def hard_sigmoid(n: Node):
    line = n.b.op("add", n.b.op("mul", n.view(0), n.attr("alpha", 0.2)), n.attr("beta", 0.5))
    return n.b.op("min", n.b.op("max", line, 0), 1)


@maps("Gelu")
def gelu(n: Node):
    return n.b.op("gelu", n.view(0), approximation=1 if n.attr("approximate", "none") == "tanh" else 0)


@maps("Clip")
def clip(n: Node):
    x = n.view(0)
    low = n.attr("min") if "min" in n.attributes else n.number(1) if n.has(1) else None
    high = n.attr("max") if "max" in n.attributes else n.number(2) if n.has(2) else None
    out = x if low is None else n.b.op("max", x, low)
    out = out if high is None else n.b.op("min", out, high)
    return n.b.copy(x) if out is x else out


@maps("IsNaN")
def is_nan(n: Node):
    x = n.view(0)
    return n.b.compare(x, x, "NE")


@maps("IsInf")
def is_inf(n: Node):
    x = n.view(0)
    positive, negative = n.attr("detect_positive", 1), n.attr("detect_negative", 1)
    if positive and negative:
        return n.b.compare(n.b.op("abs", x), math.inf, "EQ")
    if not positive and not negative:
        return n.b.full(0, "bool", x.shape)
    return n.b.compare(x, math.inf if positive else -math.inf, "EQ")
