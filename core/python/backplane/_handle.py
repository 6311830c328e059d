# SPDX-License-Identifier: Apache-2.0
"""Owners of handles."""
import weakref
from typing import Optional

from . import errors
from ._library import library


class Handle:
    """Owns one reference to a handle of the host API.

    `close` or the end of a `with` block releases the reference, and so does the garbage collector. Handles may be
    released in any order, because the library keeps the parents of each object alive. At the interpreter's exit nothing
    is released, because the library permits a process to end while objects are alive. Do not call `close` while another
    thread uses the object."""

    __slots__ = ("_value", "_finalizer", "__weakref__")
    _release = ""  # the C function that releases a reference

    def __init__(self, value: Optional[int]) -> None:
        self._value = value
        self._finalizer = weakref.finalize(self, getattr(library(), self._release), value)
        self._finalizer.atexit = False

    @property
    def handle(self) -> Optional[int]:
        """The value of the handle. Raises InvalidArgument if the handle was released."""
        if self._value is None:
            self.require()
        return self._value

    def require(self) -> None:
        """Raises InvalidArgument if the handle was released."""
        if self._value is None:
            raise errors.InvalidArgument(f"{type(self).__name__}: the handle was released by close() or by the end of a with block; open or "
                                         "create another object")

    @property
    def closed(self) -> bool:
        return self._value is None

    def close(self) -> None:
        """Releases the reference. A second call does nothing."""
        self._value = None
        self._finalizer()

    def __enter__(self):
        return self

    def __exit__(self, *_) -> None:
        self.close()
