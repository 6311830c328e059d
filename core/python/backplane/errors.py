# SPDX-License-Identifier: Apache-2.0
"""Exceptions: one class for each status of the host API."""
from . import constants


class Error(Exception):
    """A failed call. The text states the call, the cause and the remedy."""

    status = constants.BP_INTERNAL

    def __init__(self, message: str, vendor_code: int = 0, op: int = 0) -> None:
        super().__init__(message)
        self.vendor_code = vendor_code  # error number of the vendor's library, or 0
        self.op = op  # id of the operator, or 0


class InvalidArgument(Error, ValueError):
    """The caller violated a rule. The call changed nothing."""

    status = constants.BP_INVALID_ARGUMENT


class Unsupported(Error, NotImplementedError):
    """The device or the library does not support the request."""

    status = constants.BP_UNSUPPORTED


class OutOfMemory(Error, MemoryError):
    """The call changed and enqueued nothing. The caller may retry."""

    status = constants.BP_OUT_OF_MEMORY


class NotReady(Error):
    """Elapsed time was requested before both events had completed."""

    status = constants.BP_NOT_READY


class Timeout(Error):
    """The work did not complete within the timeout, and continues."""

    status = constants.BP_TIMEOUT


class DeviceLost(Error):
    """The device is permanently unusable."""

    status = constants.BP_DEVICE_LOST


class Unavailable(Error):
    """A library, plugin, driver or device is missing or busy."""

    status = constants.BP_UNAVAILABLE


class AbiMismatch(Error):
    """Two sides have no common version of the ABI."""

    status = constants.BP_ABI_MISMATCH


class Internal(Error):
    """The library or the plugin has a defect."""

    status = constants.BP_INTERNAL


class ExecutionFailed(Error):
    """Accepted work failed. The stream stays failed."""

    status = constants.BP_EXECUTION_FAILED


# An unknown status counts as INTERNAL, as in the headers.
_CLASSES = {each.status: each for each in Error.__subclasses__()}


def of_status(status: int) -> "type[Error]":
    """Returns the exception class of a status."""
    return _CLASSES.get(status, Internal)
