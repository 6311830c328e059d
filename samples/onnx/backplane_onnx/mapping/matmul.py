# SPDX-License-Identifier: Apache-2.0
"""Products of matrices."""
import string
from math import prod

from .. import dtypes
from ..node import Node
from ..registry import maps
from ..views import View


def product(n: Node, a: View, b: View, dtype=None) -> View:
    """Returns the product that NumPy's matmul defines, with support for vectors and broadcasting."""
    if min(a.rank, b.rank) == 0:
        n.fail("an operand is a scalar")
    left, right = a.rank == 1, b.rank == 1
    out = n.b.matmul(a.unsqueeze(0) if left else a, b.unsqueeze(1) if right else b, dtype)
    return out.squeeze(([out.rank - 2] if left else []) + ([out.rank - 1] if right else []))


@maps("MatMul")
def matmul(n: Node):
    a, b = n.view(0), n.view(1)
    if a.dtype not in dtypes.FLOATS:
        n.fail(f"Backplane has no product of {a.dtype} matrices with a result of the same dtype")
    return product(n, a, b)


@maps("Gemm")
def gemm(n: Node):
    a, b = n.view(0), n.view(1)
    a = a.transpose() if n.attr("transA", 0) else a
    alpha, beta = n.attr("alpha", 1.0), n.attr("beta", 1.0)
    c = n.optional(2)
    n.attr("broadcast")  # read, but not used: it exists before opset 7, and c is always broadcast
    if a.dtype not in dtypes.FLOATS:
        n.fail(f"Backplane has no product of {a.dtype} matrices with a result of the same dtype")
    rows = b if n.attr("transB", 0) else b.transpose()  # [N, K], which is the layout that `linear` requires
    rows = n.b.dense(rows) if n.value(1).host is not None else rows  # makes a constant contiguous, once
    if alpha == 1 and beta == 1 and (c is None or c.shape == (rows.shape[0],)):
        return n.b.op("linear", a, rows, c, shape=(a.shape[0], rows.shape[0]), activation=0, precision=0)
    out = n.b.matmul(a, rows.transpose())
    out = out if alpha == 1 else n.b.op("mul", out, alpha)
    if c is None or beta == 0:
        return out
    return n.b.op("add", out, c if beta == 1 else n.b.op("mul", c, beta))


def signed(n: Node, x: View, zero: "View | None") -> "tuple[View, View | int]":
    """Returns 8-bit integers as i8, and their zero point as i32. A u8 becomes an i8 by the subtraction of 128."""
    b = n.b
    if x.dtype == "i8":
        return x, 0 if zero is None else b.cast(zero, "i32")
    moved = b.op("xor", x, 128).reinterpret("i8")
    return moved, -128 if zero is None else b.op("sub", b.cast(zero, "i32"), 128)


def integers(n: Node, a: View, zero_a: "View | None", b: View, zero_b: "View | None") -> View:
    """Returns the product of 8-bit integers minus their zero points, as i32. The product of the integers
    themselves is exact. The sums of rows and columns then correct it for the zero points."""
    rows, columns = a.rank == 1, b.rank == 1
    left, zero_left = signed(n, a.unsqueeze(0) if rows else a, zero_a)
    right, zero_right = signed(n, b.unsqueeze(1) if columns else b, zero_b)
    out = n.b.matmul(left, right, "i32")
    inner = left.shape[-1]
    if isinstance(zero_right, View) or zero_right:
        out = n.b.op("sub", out, n.b.op("mul", n.b.reduce("reduce_sum", left, [left.rank - 1], dtype="i32"), zero_right))
    if isinstance(zero_left, View) or zero_left:
        out = n.b.op("sub", out, n.b.op("mul", n.b.reduce("reduce_sum", right, [right.rank - 2], dtype="i32"), zero_left))
        if isinstance(zero_right, View) or zero_right:
            out = n.b.op("add", out, constant_term(n, zero_left, zero_right, inner))
    return out.squeeze(([out.rank - 2] if rows else []) + ([out.rank - 1] if columns else []))


def constant_term(n: Node, zero_a: "View | int", zero_b: "View | int", inner: int) -> "View | int":
    """Returns zero_a * zero_b * inner, where `inner` is the number of terms of each sum."""
    if isinstance(zero_a, int) and isinstance(zero_b, int):
        return zero_a * zero_b * inner
    one, other = (zero_a, zero_b) if isinstance(zero_a, View) else (zero_b, zero_a)
    return n.b.op("mul", n.b.op("mul", one, other), inner)


def of_rows(parameter: "View | None") -> "View | None":
    """Returns a parameter of the first matrix so that it can be broadcast. A scale or zero point with one
    element per row becomes a column. Any other parameter remains unchanged."""
    return parameter.unsqueeze(1) if parameter is not None and parameter.rank == 1 and parameter.size > 1 else parameter


@maps("MatMulInteger")
def matmul_integer(n: Node):
    return integers(n, n.view(0), of_rows(n.optional(2)), n.view(1), n.optional(3))


@maps("Einsum")
def einsum(n: Node):
    """Replaces the first two operands by their product, until one operand is left. Then sums over the letters
    that the output does not contain, and permutes the other letters to the order of the output."""
    equation = n.attr("equation").replace(" ", "")
    left, arrow, right = equation.partition("->")
    terms = left.split(",")
    views = n.views()
    if len(terms) != len(views):
        n.fail(f"the equation {equation!r} has {len(terms)} operands")
    free = iter(letter for letter in string.ascii_letters if letter not in equation)
    rank = max((view.rank - len(term.replace("...", "")) for term, view in zip(terms, views) if "..." in term), default=0)
    dots = "".join(next(free) for _ in range(rank))
    terms = [term.replace("...", dots[rank - (view.rank - len(term.replace("...", ""))):]) for term, view in zip(terms, views)]
    if not arrow:
        joined = "".join(terms)
        right = dots + "".join(sorted(letter for letter in set(joined) if joined.count(letter) == 1 and letter not in dots))
    right = right.replace("...", dots)
    views, terms = map(list, zip(*(diagonal(term, view) for term, view in zip(terms, views))))
    extents: dict = {}
    for term, view in zip(terms, views):
        for letter, extent in zip(term, view.shape):
            if extents.setdefault(letter, extent) != extent:
                if 1 not in (extents[letter], extent):
                    n.fail(f"the extents of {letter!r} differ")
                extents[letter] = max(extents[letter], extent)
    while len(views) > 1:
        rest = set(right).union(*terms[2:])
        term, view = contract(n, terms[0], views[0], terms[1], views[1], rest, extents)
        terms, views = [term] + terms[2:], [view] + views[2:]
    gone = [place for place, letter in enumerate(terms[0]) if letter not in right]
    out = n.b.reduce("reduce_sum", views[0], gone, keep=False) if gone else views[0]
    kept = [letter for letter in terms[0] if letter in right]
    return out.permute([kept.index(letter) for letter in right])


def diagonal(term: str, view: View) -> "tuple[View, str]":
    """Replaces the dimensions of a repeated letter by one dimension along the diagonal."""
    letters = "".join(dict.fromkeys(term))
    if letters == term:
        return view, term
    places = [term.index(letter) for letter in letters]
    strides = [sum(stride for each, stride in zip(term, view.strides) if each == letter) for letter in letters]
    return View(view.storage, view.dtype, [view.shape[place] for place in places], strides, view.offset), letters


def contract(n: Node, first: str, a: View, second: str, b: View, rest, extents):
    """Returns the letters of the product of two operands, and the product. `rest` contains the letters of the
    output and of the other operands. The product is summed over the letters that both operands have and `rest`
    does not contain."""
    batch = [letter for letter in first if letter in second and letter in rest]
    inner = [letter for letter in first if letter in second and letter not in rest]
    rows = [letter for letter in first if letter not in second]
    columns = [letter for letter in second if letter not in first]

    def arranged(term, view, groups):
        view = view.permute([term.index(letter) for group in groups for letter in group])
        shape = [extents[letter] for group in groups for letter in group]
        view = view.broadcast_to(shape)
        return n.b.reshape(view, [extents[letter] for letter in groups[0]] + [prod(extents[letter] for letter in group) for group in groups[1:]])

    left, right = arranged(first, a, (batch, rows, inner)), arranged(second, b, (batch, inner, columns))
    out = n.b.matmul(left, right)
    letters = batch + rows + columns
    return "".join(letters), n.b.reshape(out, [extents[letter] for letter in letters])


@maps("Det")
def determinant(n: Node):
    """Computes determinants of matrices up to 4 x 4 by expansion into minors. Larger matrices are not
    supported, because they would need pivots, which depend on data."""
    x = n.view(0)
    if x.shape[-1] != x.shape[-2] or not 1 <= x.shape[-1] <= 4:
        n.fail(f"determinants of {x.shape[-2:]} matrices; the mapping has sizes up to 4 x 4")
    return minor(n, x)


def minor(n: Node, x: View) -> View:
    size = x.shape[-1]
    if size == 1:
        return x.select(-1, 0).select(-1, 0)
    out = None
    for column in range(size):
        rest = x.slice(-2, 1, size - 1)
        parts = [rest.slice(-1, other, 1) for other in range(size) if other != column]
        term = n.b.op("mul", x.select(-2, 0).select(-1, column), minor(n, n.b.concat(parts, -1)))
        out = term if out is None else n.b.op("sub" if column % 2 else "add", out, term)
    assert out is not None
    return out
