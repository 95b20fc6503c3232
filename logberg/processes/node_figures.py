"""The figures that a controller's and an agent's process have in common.

Rule: as in `process_metrics`: each figure is read when it is scraped.
"""

import time

from logberg.processes.certificates_in_use import CertificatesInUse
from logberg.version import VERSION
from runtime import process_figures
from runtime.metrics import Registry


def declare(registry: Registry, certificates: CertificatesInUse) -> None:
    """Declare the figures of a node's process."""
    process_figures.declare(registry)
    certificates.declare(registry)
    registry.read_gauge(
        "logberg_build_info",
        "1 under the release that runs",
        lambda: {(VERSION,): 1.0},
        ("version",),
    )
    registry.read_gauge(
        "logberg_wall_clock_seconds",
        "The node's wall clock, since 1970, to be compared with those of others",
        time.time,
    )
