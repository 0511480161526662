"""Routes, delegates that cannot be had, variants per device and core affinity."""

import ctypes.util
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from model_runtime import devices
from model_runtime.devices import (
    DelegateConfig,
    DelegateError,
    DeviceReport,
    RouteConfig,
    choose_variant,
    open_delegate,
    pin_cores,
    probe,
)
from model_runtime.errors import ConfigError, DeviceError

NPU = {"npu": DelegateConfig("libnpu.so")}


def test_the_default_route_is_one_thread_of_the_cpu() -> None:
    route = RouteConfig()
    assert (route.devices, route.variants, route.threads, route.on_failure) == (("cpu",), ("float32",), 1, "fallback")


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        ({"devices": ()}, "devices must name at least one device and none twice, got []"),
        ({"devices": ("cpu", "cpu")}, "devices must name at least one device and none twice, got ['cpu', 'cpu']"),
        ({"devices": ("npu",)}, "devices: 'npu' must be 'cpu' or one of delegates []"),
        ({"delegates": {"cpu": DelegateConfig("x.so")}}, 'delegates must not contain "cpu": the CPU needs no delegate'),
        ({"variants": ()}, "variants must name at least one variant"),
        ({"variants_by_device": {"gpu": ("int8",)}}, "variants_by_device: 'gpu' must be one of devices ['cpu']"),
        ({"variants_by_device": {"cpu": ()}}, "variants_by_device: 'cpu' must name at least one variant"),
        ({"threads": 0}, "threads must be 1 to 64, got 0"),
        ({"threads": 65}, "threads must be 1 to 64, got 65"),
        ({"cores": (0, 0)}, "cores must be different numbers from 0, got [0, 0]"),
        ({"cores": (-1,)}, "cores must be different numbers from 0, got [-1]"),
        ({"on_failure": "ignore"}, "on_failure must be 'fallback' or 'refuse', got 'ignore'"),
    ],
)
def test_a_wrong_route_is_refused_with_field_value_and_bound(fields: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError) as caught:
        RouteConfig(**fields)
    assert str(caught.value) == message


def test_a_route_is_read_from_plain_values() -> None:
    plain = {"devices": ["npu", "cpu"], "delegates": {"npu": {"library": "libnpu.so"}}, "variants": ["int8"]}
    assert msgspec.convert(plain, RouteConfig) == RouteConfig(("npu", "cpu"), NPU, ("int8",))


def test_an_unknown_field_of_a_route_is_refused() -> None:
    with pytest.raises(msgspec.ValidationError, match="unknown field `thread`"):
        msgspec.convert({"thread": 2}, RouteConfig)


def test_the_first_variant_of_the_route_that_the_model_has_is_chosen() -> None:
    assert choose_variant(["float32", "int8"], RouteConfig(variants=("float16", "int8", "float32")), "cpu") == "int8"


def test_a_device_can_have_variants_of_its_own() -> None:
    route = RouteConfig(("npu", "cpu"), NPU, variants_by_device={"npu": ("int8",)})
    assert [choose_variant(["float32", "int8"], route, device) for device in ("npu", "cpu")] == ["int8", "float32"]


def test_a_model_without_the_routes_variants_is_refused_with_both_lists() -> None:
    with pytest.raises(ConfigError) as caught:
        choose_variant({"int8": 0, "dynamic": 0}, RouteConfig(), "cpu")
    assert str(caught.value) == ("variants for device 'cpu': none of ['float32'] is in the model's ['dynamic', 'int8']")


def failure(library: str) -> DelegateError:
    with pytest.raises(DeviceError) as caught:
        open_delegate("npu", DelegateConfig(library))
    assert isinstance(caught.value, DelegateError)
    return caught.value


def test_a_path_that_is_not_there_is_a_missing_delegate(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    error = failure(str(tmp_path / "libnpu.so"))
    assert str(error) == f"device 'npu': delegate_missing: no file {tmp_path}/libnpu.so"
    assert capfd.readouterr() == ("", "")


def test_a_name_that_the_linker_does_not_find_is_a_missing_delegate() -> None:
    assert failure("libno_such_npu.so").reason == "delegate_missing"


def test_a_file_that_is_no_library_is_not_loadable(tmp_path: Path) -> None:
    library = tmp_path / "libnpu.so"
    library.write_text("not a library")
    assert failure(str(library)).reason == "delegate_not_loadable"


def test_a_library_without_entry_points_is_told_from_a_missing_one() -> None:
    name = ctypes.util.find_library("m")
    assert name is not None
    error = failure(name)
    assert error.reason == "delegate_no_entry_points"
    assert "does not export ['tflite_plugin_create_delegate', 'tflite_plugin_destroy_delegate']" in str(error)


def test_a_probe_reports_the_cpu_and_every_delegate() -> None:
    reports = probe(RouteConfig(("npu", "cpu"), {"npu": DelegateConfig("/none/libnpu.so")}))
    assert reports == [
        DeviceReport("cpu", "", f"{len(os.sched_getaffinity(0))} cores"),
        DeviceReport("npu", "delegate_missing", "no file /none/libnpu.so"),
    ]


@pytest.fixture
def cores() -> Iterator[list[int]]:
    """The cores of this process, bound to all of them again afterwards."""
    available = sorted(os.sched_getaffinity(0))
    yield available
    pin_cores(available)


def test_cores_bind_all_threads_of_the_process(cores: list[int]) -> None:
    begun, done = threading.Event(), threading.Event()
    thread = threading.Thread(target=lambda: (begun.set(), done.wait(30)))
    thread.start()
    begun.wait(30)
    try:
        pin_cores(cores[-1:])
        assert thread.native_id is not None
        assert os.sched_getaffinity(0) == os.sched_getaffinity(thread.native_id) == {cores[-1]}
    finally:
        done.set()
        thread.join()


def test_a_later_pin_may_take_cores_that_an_earlier_one_left_out(cores: list[int]) -> None:
    pin_cores(cores[:1])
    pin_cores(cores)
    assert os.sched_getaffinity(0) == set(cores)


def test_no_cores_change_nothing(cores: list[int]) -> None:
    pin_cores(())
    assert os.sched_getaffinity(0) == set(cores)


def test_a_core_that_is_not_available_is_refused(cores: list[int]) -> None:
    with pytest.raises(ConfigError, match=rf"cores must be among the available \[.*\], got \[{cores[-1] + 1000}\]"):
        pin_cores((cores[0], cores[-1] + 1000))


def test_cores_are_refused_where_the_platform_has_no_affinity(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(devices.os, "sched_setaffinity")
    with pytest.raises(ConfigError, match=r"cores must be empty on this platform .*, got \[0\]"):
        pin_cores((0,))
