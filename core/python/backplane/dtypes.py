# SPDX-License-Identifier: Apache-2.0
"""Element types. A dtype is a string, such as "f32"."""
from . import errors
from .constants import DTYPES

ID = {name: identity for name, (identity, _, _) in DTYPES.items()}
BYTES = {name: size for name, (_, size, _) in DTYPES.items()}
KIND = {name: kind for name, (_, _, kind) in DTYPES.items()}  # BOOL, UINT, INT or FLOAT
NAME = {identity: name for name, identity in ID.items()}

# Format characters of the module `struct` and of buffers. No character exists for bf16.
FORMAT = {"bool": "?", "u8": "B", "i8": "b", "i32": "i", "u32": "I", "i64": "q", "f16": "e", "f32": "f", "f64": "d"}
_OF_KIND = {"?": "BOOL", "B": "UINT", "H": "UINT", "I": "UINT", "L": "UINT", "Q": "UINT", "b": "INT", "h": "INT", "i": "INT", "l": "INT",
            "q": "INT", "e": "FLOAT", "f": "FLOAT", "d": "FLOAT"}
_OF_FORMAT = {(kind, size): name for name, (_, size, kind) in DTYPES.items() if name in FORMAT}


def checked(name: str, call: str) -> str:
    """Returns the dtype. Raises InvalidArgument if there is no such dtype."""
    if name not in ID:
        raise errors.InvalidArgument(f"{call}: the dtype {name!r} is unknown; use one of {', '.join(ID)}")
    return name


def of_format(format: str, size: int) -> "str | None":
    """Returns the dtype of a buffer's elements, or None if there is none."""
    return _OF_FORMAT.get((_OF_KIND.get(format.lstrip("@=<"), ""), size))
