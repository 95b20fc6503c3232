"""The disk's figures: a forecast from a day's samples, and slow syncs in the log."""

import math
import os
from pathlib import Path

import pytest
import structlog
from structlog.testing import capture_logs

from logberg.operating.samples import Samples
from logberg.processes.disk_figures import SAMPLE_EVERY_S, DiskFigures, DiskForecast
from runtime.metrics import Registry
from runtime.simulated.clock import SimulatedClock
from runtime.simulated.process import SimulatedProcess
from runtime.simulated.world import World

HOUR = 3600.0
GIB = 2**30


def test_a_forecast_needs_an_hour() -> None:
    forecast = DiskForecast()
    assert math.isnan(forecast.days_until_full())
    forecast.sample(0.0, 100 * GIB)
    forecast.sample(HOUR - 1, 99 * GIB)
    assert math.isnan(forecast.days_until_full())
    forecast.sample(HOUR, 99 * GIB)
    assert forecast.days_until_full() == pytest.approx(99 / 24)


def test_a_disk_that_does_not_fill_is_never_full() -> None:
    forecast = DiskForecast()
    forecast.sample(0.0, 50 * GIB)
    forecast.sample(2 * HOUR, 50 * GIB)
    assert forecast.days_until_full() == math.inf
    forecast.sample(3 * HOUR, 60 * GIB)
    assert forecast.days_until_full() == math.inf


def test_only_the_last_day_counts() -> None:
    forecast = DiskForecast()
    forecast.sample(0.0, 1000 * GIB)
    for hour in range(1, 49):
        forecast.sample(hour * HOUR, (100 - hour) * GIB)
    # One GiB an hour for the last day; the great loss before it is forgotten.
    assert forecast.days_until_full() == pytest.approx(52 / 24)


def figures(folder: Path, slow_sync_s: float = 0.2) -> tuple[DiskFigures, Registry, World]:
    world, registry = World(1), Registry()
    clock = SimulatedClock(SimulatedProcess(world, 1))
    found = DiskFigures(folder, clock, registry, slow_sync_s, structlog.get_logger())
    return found, registry, world


def test_space_is_that_of_the_folders_file_system(tmp_path: Path) -> None:
    found, registry, world = figures(tmp_path)
    found.begin()
    world.run_for(3 * SAMPLE_EVERY_S)
    shown = Samples(registry.render().decode())
    system = os.statvfs(tmp_path)
    assert shown.value("logberg_disk_size_bytes") == system.f_blocks * system.f_frsize
    assert 0 < (shown.value("logberg_disk_free_bytes") or 0) < system.f_blocks * system.f_frsize
    world.run_for(2 * HOUR)
    shown = Samples(registry.render().decode())
    days = shown.value("logberg_disk_full_in_days")
    assert days is not None
    assert not math.isnan(days)


def test_a_folder_that_is_not_there_yet_has_no_space(tmp_path: Path) -> None:
    _, registry, _ = figures(tmp_path / "later")
    assert Samples(registry.render().decode()).value("logberg_disk_size_bytes") == 0


def test_a_slow_sync_is_logged_and_every_sync_is_counted(tmp_path: Path) -> None:
    found, registry, _ = figures(tmp_path)
    with capture_logs() as logs:
        found.synced("journal/1.wal", 0.003)
        found.synced("journal/1.wal", 0.25)
    assert [(line["event"], line["file"], line["seconds"]) for line in logs] == [
        ("sync_slow", "journal/1.wal", 0.25)
    ]
    shown = Samples(registry.render().decode())
    assert shown.count("logberg_disk_sync_seconds") == 2
    assert shown.quantile("logberg_disk_sync_seconds", 0.5) == 0.004
    assert shown.quantile("logberg_disk_sync_seconds", 0.99) == 0.25


def test_without_a_limit_no_sync_is_logged(tmp_path: Path) -> None:
    found, _, _ = figures(tmp_path, slow_sync_s=0.0)
    with capture_logs() as logs:
        found.synced("journal/1.wal", 9.0)
    assert logs == []
