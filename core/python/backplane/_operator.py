# SPDX-License-Identifier: Apache-2.0
"""Types of the rows of the operator table."""
from typing import Any, NamedTuple, Optional


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()  # the default of an attribute or a scalar that the caller must state


class Attribute(NamedTuple):
    """A field of an attribute struct."""

    name: str
    type: str
    entries: int  # number of entries; if it is above 1, the field is an array
    least: float
    greatest: float
    required: bool  # whether the caller must state the value
    meaning: str


class Signature(NamedTuple):
    """Dtypes and dimensions of a composite's operands, in the notation of docs/spec/operators.md."""

    inputs: "tuple[str, ...]"
    outputs: "tuple[str, ...]"


class Operator(NamedTuple):
    """A row of the operator table."""

    id: int
    name: str
    inputs: "tuple[str, ...]"
    inputs_min: int
    outputs: "tuple[int, int]"
    scalars: "tuple[str, ...]"
    scalar_dtype: Optional[str]  # "out": the first output's dtype
    shape_rule: str
    dtype_rule: str
    dtypes: "tuple[str, ...]"
    struct: Any  # the ctypes class of the attributes
    attributes: "tuple[Attribute, ...]"
    signature: Optional[Signature]
