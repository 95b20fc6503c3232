"""process_*: what the kernel says of this process, in Prometheus' units."""

import os
import time

from logberg.operating.samples import Samples
from runtime import process_figures
from runtime.metrics import Registry


def shown() -> Samples:
    registry = Registry()
    process_figures.declare(registry)
    return Samples(registry.render().decode())


def figure(name: str) -> float:
    found = shown().value(name)
    assert found is not None
    return found


def test_the_process_started_in_the_past_and_after_the_machine() -> None:
    up_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert time.time() - up_s - 1 < figure("process_start_time_seconds") < time.time()


def test_an_open_file_is_counted_while_it_is_open() -> None:
    before = figure("process_open_fds")
    descriptor = os.open("/dev/null", os.O_RDONLY)
    try:
        assert figure("process_open_fds") == before + 1
    finally:
        os.close(descriptor)
    assert figure("process_open_fds") == before
    assert figure("process_max_fds") >= before


def test_memory_is_counted_in_bytes() -> None:
    before = figure("process_resident_memory_bytes")
    held = bytearray(os.urandom(1024) * 65_536)
    assert figure("process_resident_memory_bytes") > before + 0.9 * len(held)
    assert figure("process_virtual_memory_bytes") > figure("process_resident_memory_bytes")


def test_processor_time_grows_with_work() -> None:
    before = figure("process_cpu_seconds_total")
    until = time.process_time() + 0.05
    while time.process_time() < until:
        pass
    assert figure("process_cpu_seconds_total") >= before + 0.05
