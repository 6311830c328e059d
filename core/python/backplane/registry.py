# SPDX-License-Identifier: Apache-2.0
"""Finds and loads plugins."""
import ctypes
import os
import threading
from typing import Callable, NamedTuple, Optional

from . import constants, errors
from ._handle import Handle
from ._library import invoke, library
from ._structs import bp_device_info, bph_candidate, bph_plugin_info, bph_registry_desc
from .device import Device, DeviceInfo, open_device

_Log = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int32, ctypes.c_char_p)
# Callbacks are never freed, because the library may call them after the Python object of the registry is gone.
_callbacks: list = []


class Candidate(NamedTuple):
    """A location at which the library looked for a plugin or found one."""

    name: str
    version: str  # empty until the plugin is loaded
    status: str  # the name of the status, "OK" if no defect was found so far
    message: str  # the defect and the remedy
    rule: str
    side: str
    origin: str
    manifest: str
    library: str
    loaded: bool
    shadowed: bool
    device_count: int


class PluginInfo(NamedTuple):
    """Properties of a loaded plugin."""

    name: str
    version: str
    library: str
    abi_version: "tuple[int, int]"
    abi_version_min: "tuple[int, int]"


def _encoded(text):
    """Encodes a path or a name as Python's functions for files do. The bytes of a path need not be UTF-8."""
    return None if text is None else os.fsencode(text)


class Plugin(Handle):
    """A loaded plugin."""

    __slots__ = ("registry",)
    _release = "bph_plugin_release"

    def __init__(self, value: Optional[int], registry: "Registry") -> None:
        super().__init__(value)
        self.registry = registry

    @property
    def info(self) -> PluginInfo:
        info = bph_plugin_info(struct_size=ctypes.sizeof(bph_plugin_info))
        invoke("bph_plugin_get_info", self.handle, info)
        return PluginInfo(info.name.decode(), info.version.decode(), os.fsdecode(info.library), divmod(info.abi_version, 65536),
                          divmod(info.abi_version_min, 65536))

    def device_count(self) -> int:
        """Returns the number of devices. May start the driver. Raises Unavailable if there is no device."""
        count = ctypes.c_uint32()
        invoke("bph_plugin_device_count", self.handle, count)
        return count.value

    def device_info(self, index: int) -> DeviceInfo:
        """Returns the properties of a device without opening it."""
        info = bp_device_info(struct_size=ctypes.sizeof(bp_device_info))
        invoke("bph_plugin_device_info", self.handle, index, info)
        return DeviceInfo.of(info)

    def open(self, index: int = 0, **options) -> Device:
        """Opens a device. The options are the parameters of backplane.open."""
        return open_device(lambda desc, out: invoke("bph_plugin_device_open", self.handle, index, desc, out), self.registry, **options)


class Registry(Handle):
    """Searches for plugins.

    A parameter that is None has the value of its environment variable (docs/dev/settings.md), or else the default.
    search_path  directories and manifests, separated by ":", which are searched first
    layers       names of layers, separated by ","
    log          receives the severity (BP_LOG_*) and the text of each warning and error, from any thread"""

    __slots__ = ()
    _release = "bph_registry_release"

    def __init__(self, search_path: Optional[str] = None, *, default_paths: bool = True, layers: Optional[str] = None,
                 config_file: Optional[str] = None, faults: Optional[str] = None, trace: Optional[str] = None,
                 log: "Optional[Callable[[int, str], None]]" = None) -> None:
        desc = bph_registry_desc(struct_size=ctypes.sizeof(bph_registry_desc), search_path=_encoded(search_path), layers=_encoded(layers),
                                 config_file=_encoded(config_file), faults=_encoded(faults), trace=_encoded(trace))
        desc.flags = 0 if default_paths else constants.BPH_REGISTRY_NO_DEFAULT_PATHS
        if log is not None:
            callback = _Log(lambda _, level, message: log(level, message.decode("utf-8", "replace")))
            _callbacks.append(callback)
            desc.log = ctypes.cast(callback, ctypes.c_void_p)
        out = ctypes.c_void_p()
        invoke("bph_registry_create", desc, out)
        super().__init__(out.value)

    def candidates(self) -> "list[Candidate]":
        """Returns every candidate in search order. A broken candidate states its defect and the remedy."""
        count = ctypes.c_uint32()
        invoke("bph_registry_candidate_count", self.handle, count)
        found = []
        for index in range(count.value):
            each = bph_candidate(struct_size=ctypes.sizeof(bph_candidate))
            invoke("bph_registry_candidate", self.handle, index, each)
            message, rule, side, origin = (getattr(each, name).decode("utf-8", "replace") for name in ("message", "rule", "side", "origin"))
            found.append(Candidate(each.name.decode(), each.version.decode(), library().bph_status_name(each.status).decode(), message, rule, side, origin,
                                   os.fsdecode(each.manifest), os.fsdecode(each.library), bool(each.loaded), bool(each.shadowed), each.device_count))
        return found

    def examine(self) -> None:
        """Loads every candidate. If a candidate fails to load, its `message` states the reason."""
        invoke("bph_registry_examine", self.handle)

    def load(self, name_or_path: "str | os.PathLike[str]") -> Plugin:
        """Loads a plugin by name, or by the path of a library or manifest. A path contains "/"."""
        out = ctypes.c_void_p()
        invoke("bph_plugin_load", self.handle, _encoded(name_or_path), out)
        return Plugin(out.value, self)

    def devices(self) -> "list[str]":
        """Returns the names "plugin:index" of the usable devices. Starts the drivers of all plugins."""
        self.examine()
        names = []
        for each in self.candidates():
            if each.status == "OK" and not each.shadowed:
                with self.load(each.name) as plugin:
                    try:
                        names += [f"{each.name}:{index}" for index in range(plugin.device_count())]
                    except errors.Unavailable:  # the plugin has no device
                        pass
        return names

    def open(self, name: "str | os.PathLike[str] | None" = None, **options) -> Device:
        """Opens a device. The parameters are those of backplane.open."""
        if name is not None and "/" in os.fspath(name):
            with self.load(name) as plugin:
                return plugin.open(**options)
        return open_device(lambda desc, out: invoke("bph_device_open", self.handle, _encoded(name), desc, out), self, **options)


_default: Optional[Registry] = None
_lock = threading.Lock()


def _forget() -> None:
    """Forgets the default registry in a forked child, which must not use the objects of its parent."""
    global _default, _lock
    _default, _lock = None, threading.Lock()


os.register_at_fork(after_in_child=_forget)


def default_registry() -> Registry:
    """Returns the registry that backplane.open uses. The first call creates it from the environment variables."""
    global _default
    with _lock:
        if _default is None:
            _default = Registry()
        return _default


def devices() -> "list[str]":
    """Returns the names of the usable devices of the default registry."""
    return default_registry().devices()


def candidates() -> "list[Candidate]":
    """Returns the candidates of the default registry."""
    return default_registry().candidates()


def open(name: "str | os.PathLike[str] | None" = None, *, fallback: str = "error", fallback_device: Optional[str] = None,
         native_composites: Optional[bool] = None, plan_cache_entries: int = 0, options: Optional[str] = None) -> Device:
    """Opens a device by the name "plugin:index" or "plugin", or by the path of a plugin's library or manifest.

    Without a name, opens the device that BACKPLANE_DEVICE names. Without this variable, opens the first available device
    of the list in the configuration file. Without such a list, opens device 0 of the first plugin in alphabetical order
    that has devices.

    fallback           "error", "warn" or "allow": the behaviour if the device lacks a primitive
    native_composites  True: on; False: off; None: the value of BACKPLANE_NATIVE
    options            "key=value;key=value" for the plugin

    Raises Unavailable, whose message lists the candidates, AbiMismatch and InvalidArgument."""
    return default_registry().open(name, fallback=fallback, fallback_device=fallback_device, native_composites=native_composites,
                                   plan_cache_entries=plan_cache_entries, options=options)
