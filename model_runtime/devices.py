"""Devices: which ones a route wants, in what order, which variant each takes, and why one cannot be had."""

import ctypes
import logging
import os
from collections.abc import Collection
from pathlib import Path
from typing import Annotated, Any, Literal, NamedTuple

from msgspec import Meta, Struct

from model_runtime.errors import ConfigError, DeviceError
from model_runtime.tflite import load_delegate

__all__ = [
    "CPU",
    "DelegateConfig",
    "DelegateError",
    "DeviceReport",
    "RouteConfig",
    "choose_variant",
    "open_delegate",
    "pin_cores",
    "probe",
]

CPU = "cpu"
_ENTRY_POINTS = ("tflite_plugin_create_delegate", "tflite_plugin_destroy_delegate")
_logger = logging.getLogger(__name__)


class DelegateConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """An external TFLite delegate."""

    library: str  # path of the shared library, or a name that the dynamic linker finds
    options: dict[str, str] = {}  # handed to the delegate as they are; the delegate knows the names


class RouteConfig(Struct, frozen=True, forbid_unknown_fields=True):
    """Where graphs run: devices in order of preference, and how."""

    devices: tuple[str, ...] = (CPU,)  # names of `delegates`, or "cpu"; the CPU is always the last resort
    delegates: dict[str, DelegateConfig] = {}  # device name -> its delegate
    variants: tuple[str, ...] = ("float32",)  # model variants in order of preference
    variants_by_device: dict[str, tuple[str, ...]] = {}  # the same for one device, instead of `variants`
    threads: Annotated[int, Meta(ge=1, le=64)] = 1  # threads of one call of one graph
    cores: tuple[int, ...] = ()  # CPU cores that the whole process is bound to; empty: left alone
    on_failure: Literal["fallback", "refuse"] = "fallback"  # when the first device cannot be had

    def __post_init__(self) -> None:
        if not self.devices or len(set(self.devices)) != len(self.devices):
            raise ValueError(f"devices must name at least one device and none twice, got {list(self.devices)}")
        if CPU in self.delegates:
            raise ValueError('delegates must not contain "cpu": the CPU needs no delegate')
        for device in self.devices:
            if device != CPU and device not in self.delegates:
                raise ValueError(f"devices: {device!r} must be 'cpu' or one of delegates {sorted(self.delegates)}")
        for device, variants in self.variants_by_device.items():
            if device not in self.devices and device != CPU:
                raise ValueError(f"variants_by_device: {device!r} must be one of devices {list(self.devices)}")
            if not variants:
                raise ValueError(f"variants_by_device: {device!r} must name at least one variant")
        if not self.variants:
            raise ValueError("variants must name at least one variant")
        if not 1 <= self.threads <= 64:
            raise ValueError(f"threads must be 1 to 64, got {self.threads}")
        if any(core < 0 for core in self.cores) or len(set(self.cores)) != len(self.cores):
            raise ValueError(f"cores must be different numbers from 0, got {list(self.cores)}")
        if self.on_failure not in ("fallback", "refuse"):
            raise ValueError(f"on_failure must be 'fallback' or 'refuse', got {self.on_failure!r}")


class DelegateError(DeviceError):
    """A delegate cannot be had; `reason` is the one word that results carry.

    reason: delegate_missing, delegate_not_loadable, delegate_no_entry_points, delegate_bad_option,
    delegate_prepare_failed, delegate_took_nothing or delegate_died.
    """

    def __init__(self, device: str, reason: str, detail: str) -> None:
        super().__init__(f"device {device!r}: {reason}: {detail}")
        self.device = device
        self.reason = reason
        self.detail = detail


class DeviceReport(NamedTuple):
    """What a probe found: `reason` is "" when the device can be used."""

    device: str
    reason: str
    detail: str


def open_delegate(device: str, config: DelegateConfig) -> Any:
    """Gives a new delegate object of the route's device.

    The library is looked at before the runtime gets it: the runtime's own attempt at a missing one also prints an
    ignored AttributeError, and does not tell a missing library from one without entry points.

    Raises:
        DelegateError: delegate_missing, delegate_not_loadable, delegate_no_entry_points or delegate_bad_option.
    """
    path = Path(config.library)
    if path.is_absolute() or len(path.parts) > 1:
        if not path.exists():
            raise DelegateError(device, "delegate_missing", f"no file {config.library}")
        missing = "delegate_not_loadable"
    else:
        missing = "delegate_missing"
    try:
        library = ctypes.CDLL(config.library)
    except OSError as error:
        raise DelegateError(device, missing, str(error)) from error
    absent = [name for name in _ENTRY_POINTS if not hasattr(library, name)]
    if absent:
        raise DelegateError(device, "delegate_no_entry_points", f"{config.library} does not export {absent}")
    try:
        return load_delegate(config.library, dict(config.options))
    except (ValueError, RuntimeError) as error:
        # Any failure to create comes as ValueError and the delegate's own words; options are all that it is given.
        words = " ".join(str(error).split())
        raise DelegateError(device, "delegate_bad_option", f"options {config.options}: {words}") from error


def choose_variant(available: Collection[str], route: RouteConfig, device: str) -> str:
    """Gives the first of the route's variants for the device that the model has.

    Raises:
        ConfigError: none of them is there; both lists are named.
    """
    wanted = route.variants_by_device.get(device, route.variants)
    for variant in wanted:
        if variant in available:
            return variant
    raise ConfigError(f"variants for device {device!r}: none of {list(wanted)} is in the model's {sorted(available)}")


# What the process was given when it started: after a first pin the present affinity says less.
_AVAILABLE_CORES = frozenset(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else frozenset()


def pin_cores(cores: Collection[int]) -> None:
    """Binds every thread of this process, and those it will start, to the cores; nothing happens when empty.

    This is per process, not per graph: the last call wins.

    Raises:
        ConfigError: a core is not available to this process, or the platform knows no affinity.
    """
    if not cores:
        return
    if not hasattr(os, "sched_setaffinity"):
        raise ConfigError(f"cores must be empty on this platform (it has no core affinity), got {sorted(cores)}")
    unknown = sorted(set(cores) - _AVAILABLE_CORES)
    if unknown:
        raise ConfigError(f"cores must be among the available {sorted(_AVAILABLE_CORES)}, got {unknown}")
    for thread in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(thread), cores)
        except ProcessLookupError:
            _logger.debug("thread %s ended before it could be bound to cores", thread)


def probe(route: RouteConfig | None = None) -> list[DeviceReport]:
    """Gives a report on the CPU and every delegate of the route: loaded on trial, without a model."""
    reports = [DeviceReport(CPU, "", f"{len(_AVAILABLE_CORES) or os.cpu_count()} cores")]
    for device, config in (route or RouteConfig()).delegates.items():
        try:
            open_delegate(device, config)
        except DelegateError as error:
            reports.append(DeviceReport(device, error.reason, error.detail))
        else:
            reports.append(DeviceReport(device, "", config.library))
    return reports
