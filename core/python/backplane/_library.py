# SPDX-License-Identifier: Apache-2.0
"""Finds, loads and checks libbackplane."""
import ctypes
import glob
import os
import subprocess
import threading

from . import constants, errors
from ._structs import FUNCTIONS, PACKAGE_VERSION, SONAME, bp_error

VARIABLE = "BACKPLANE_LIBRARY"
_REMEDY = (f"set {VARIABLE} to the file of the library, or call backplane.load(path) first, or set PKG_CONFIG_PATH to the folder of the "
           "SDK's backplane.pc")

_lock = threading.Lock()
_library = None
_local = threading.local()


def _new_lock() -> None:
    global _lock
    _lock = threading.Lock()


os.register_at_fork(after_in_child=_new_lock)  # another thread of the parent may hold the lock


def _pkg_config(variable):
    """Returns a variable of an installed SDK, or None if pkg-config does not find the SDK."""
    try:
        run = subprocess.run(["pkg-config", f"--variable={variable}", "backplane"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        return None
    return run.stdout.strip() or None


def _inside_package():
    return sorted(glob.glob(os.path.join(os.path.dirname(os.path.abspath(__file__)), "lib", "libbackplane.so*")))


def _candidate():
    """Returns the file to load and the reason for this choice."""
    if os.environ.get(VARIABLE):
        return os.environ[VARIABLE], VARIABLE
    inside = _inside_package()
    if inside:
        return inside[0], "the copy in this package"
    folder = _pkg_config("libdir")
    if folder and os.path.exists(os.path.join(folder, SONAME)):
        return os.path.join(folder, SONAME), "pkg-config backplane"
    return SONAME, "the dynamic linker's search"


def _version_text(version):
    return f"{version >> 16}.{version & 0xffff}"


def _has_soname(library):
    """Returns whether the loaded library has the soname that this package expects."""
    try:
        return ctypes.CDLL(SONAME, mode=os.RTLD_NOLOAD)._handle == library._handle
    except OSError:
        return False


def _check_version(library, path):
    """Raises AbiMismatch if the library's ABI is not compatible with the structs of this package.

    A minor version only appends fields and functions, so a later library of the same major version accepts the shorter
    structs of this package. While the major version is 0, a break of the ABI changes the soname."""
    abi = library.bph_abi_version()
    own, oldest = constants.BP_ABI_VERSION, constants.BP_ABI_VERSION_OLDEST
    if abi >> 16 == own >> 16 and abi >= oldest and (abi <= own or _has_soname(library)):
        return
    raise errors.AbiMismatch(f"{path}: the library has ABI {_version_text(abi)}; this package of version {PACKAGE_VERSION} was built for ABI "
                             f"{_version_text(own)} and needs {SONAME}; install the Python package and the SDK of the same version")


def _open(path, origin):
    try:
        library = ctypes.CDLL(path)
    except OSError as failure:
        raise errors.Unavailable(f"libbackplane: cannot load {path}, from {origin}: {failure}; {_REMEDY}") from None
    if not hasattr(library, "bph_abi_version"):
        raise errors.Unavailable(f"{path}, from {origin}, is not libbackplane, because it lacks bph_abi_version; {_REMEDY}")
    library.bph_abi_version.restype = ctypes.c_uint32
    _check_version(library, path)
    for name, (restype, argtypes) in FUNCTIONS.items():
        function = getattr(library, name, None)
        if function is None:  # the library is older than this function
            setattr(library, name, _missing(name, path))
            continue
        function.restype, function.argtypes = restype, argtypes
    return library


def _missing(name, path):
    def function(*_):
        raise errors.Unsupported(f"{name}: {path} lacks this function; install libbackplane {PACKAGE_VERSION} or later")
    return function


def load(path: "str | os.PathLike[str] | None" = None) -> str:
    """Loads libbackplane and returns its version.

    Without a path, the first of these locations applies: BACKPLANE_LIBRARY, the copy in this package, pkg-config, and
    the dynamic linker's search. The first use of the package calls this function. A process loads one library. Raises
    Unavailable, AbiMismatch, and InvalidArgument if another library is already loaded."""
    global _library
    with _lock:
        if _library is None:
            chosen, origin = (os.fspath(path), "backplane.load") if path is not None else _candidate()
            _library = _open(chosen, origin)
        elif path is not None and os.path.realpath(os.fspath(path)) != os.path.realpath(_library._name):
            raise errors.InvalidArgument(f"load: {_library._name} is already loaded; call backplane.load(path) before other calls")
        return _library.bph_version().decode()


def library():
    """Returns the loaded library, and loads it at the first call."""
    if _library is None:
        load()
    return _library


def library_path() -> str:
    """Returns the path or the name with which the dynamic linker loaded the library."""
    return library()._name


def error_record():
    """Returns the error record of this thread."""
    try:
        record = _local.record
    except AttributeError:
        record = _local.record = bp_error(struct_size=ctypes.sizeof(bp_error))
    return record


def check(status: int, record) -> None:
    """Raises the exception of a status that is not OK."""
    if status:
        raise failure(status, record)


def failure(status, record):
    """Returns the exception of a failed call. TIMEOUT and NOT_READY do not fill the record."""
    filled = record.status == status and record.message
    message = record.message.decode("utf-8", "replace") if filled else library().bph_status_name(status).decode()
    error = errors.of_status(status)(message, record.vendor_code if filled else 0, record.op if filled else 0)
    record.status = 0
    return error


def invoke(name: str, *arguments) -> None:
    """Calls a function whose last parameter is the error record. Raises the exception of its status."""
    record = error_record()
    check(getattr(library(), name)(*arguments, record), record)
