"""Causes of alerts that take days: a pass over the files that is due, and a disk that fills.

Rule: nothing waits for days. A controller whose clock is days behind makes the pass, and a build
whose forecast needs seconds sees the disk fill. Limits and windows of the alerts are as shipped.
"""

from pathlib import Path

from tests.deploy.alert_bench import FiredAlert, alert_bench
from tests.deploy.altered_build import altered_build
from tests.deploy.causes_machine import (
    DISK_MIB,
    preload,
    preload_library,
    restart_by,
    small_disk,
    stop,
)
from tests.process.running_cluster import RunningCluster

DAYS = 4
LEAST_S = 20
PASS_WITHIN_S = 90.0
"""A controller's first pass begins a minute after its start."""


def of_days(folder: Path) -> list[FiredAlert]:
    """A pass that was made days ago, and a disk that is full in some days."""
    cluster = RunningCluster(folder / "cluster", controllers=1, brokers=1)
    child = cluster.controller(1)
    right = list(child._arguments)
    behind = {"LD_PRELOAD": str(preload_library(folder)), "OTHER_CLOCK_S": str(-DAYS * 86_400)}
    preload(child, behind)

    def pass_ends() -> None:
        cluster.until(
            lambda: (cluster.status(1) or {}).get("scrubbedMs", 0) > 0,
            "a pass over the files ended",
            PASS_WITHIN_S,
        )
        stop(child)
        child._arguments = right
        child.start()
        cluster.until(cluster.settled, "it is back")

    forecast = "logberg/processes/disk_figures.py"
    quick = altered_build(
        folder / "build",
        (forecast, "SAMPLE_EVERY_S: Final = 300.0", "SAMPLE_EVERY_S: Final = 2.0"),
        (forecast, "LEAST_S: Final = 3_600.0", f"LEAST_S: Final = {LEAST_S}.0"),
    )
    with small_disk(cluster.data(1)), alert_bench(folder, cluster) as bench:
        bench.fire(
            f"let a controller make its pass while its clock is {DAYS} days behind, and start it "
            "again with the right clock",
            pass_ends,
            "LogbergScrubIsLate",
        )
        bench.fire(
            f"make changes on a disk of {DISK_MIB} MiB, by a build whose forecast needs "
            f"{LEAST_S} s and not an hour",
            lambda: restart_by(cluster, child, quick),
            "LogbergDiskFillsSoon",
            again=lambda: cluster.create(f"grown-{len(cluster.acknowledged)}", partitions=40),
        )
    return bench.fired
