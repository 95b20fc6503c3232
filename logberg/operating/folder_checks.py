"""What `doctor --folder` checks on this machine: room, syncs and the log of a folder.

Rule: the log is only read; its node may run. The sync is measured on a file of our own in the
folder, which is removed afterwards.
"""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median

from msgspec.structs import replace

from audit.places.replicas import open_all
from audit.questions.agreement import agree
from logberg.operating.check_words import CheckState, NodeCheck
from logberg.operating.checks import (
    FREE_ACT,
    FREE_LOOK,
    SYNC_ACT_S,
    SYNC_LOOK_S,
)

PROBES = 20
PROBE_BYTES = 4096
_NAME = ".doctor-probe"


def check_folder(folder: Path) -> Iterator[NodeCheck]:
    """Check a node's folder, or an empty one that shall become one. Raises OSError, LedgerError."""
    yield _room(folder)
    yield _syncs(folder)
    if any((folder / name).exists() for name in ("log", "journal", "cluster.json")):
        yield _chain(folder)


def _room(folder: Path) -> NodeCheck:
    figures = os.statvfs(folder)
    free, size = figures.f_bavail * figures.f_frsize, figures.f_blocks * figures.f_frsize
    share = free / size if size else 0.0
    state = CheckState.OK
    if share < FREE_LOOK:
        state = CheckState.ACT if share < FREE_ACT else CheckState.LOOK
    return NodeCheck(
        "disks",
        str(folder),
        state,
        f"{free / 2**30:.1f} of {size / 2**30:.1f} GiB are free ({share:.0%})",
        "" if state is CheckState.OK else "make room: docs/runbook.md, disk full",
    )


def _syncs(folder: Path) -> NodeCheck:
    # An own name for each process: a killed one leaves its file behind.
    path = folder / f"{_NAME}-{os.getpid()}"
    flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
    descriptor = os.open(path, flags, 0o600)
    took = []
    try:
        for _ in range(PROBES):
            os.write(descriptor, bytes(PROBE_BYTES))
            began = time.monotonic()
            os.fdatasync(descriptor)
            took.append(time.monotonic() - began)
    finally:
        os.close(descriptor)
        path.unlink()
    worst = max(took)
    state = CheckState.OK
    if worst > SYNC_LOOK_S:
        state = CheckState.ACT if worst > SYNC_ACT_S else CheckState.LOOK
    return NodeCheck(
        "syncs",
        str(folder),
        state,
        f"{PROBES} syncs of {PROBE_BYTES} bytes: median {median(took) * 1000:.2f} ms, "
        f"worst {worst * 1000:.2f} ms",
        ""
        if state is CheckState.OK
        else "use a faster disk: docs/runbook.md, slow disk or machine",
    )


def _chain(folder: Path) -> NodeCheck:
    # A node that runs may leave an unfinished batch at the end.
    found = agree([replace(replica, live=True) for replica in open_all([str(folder)])])
    if found.ok:
        ends = [log.report.log_end for log in found.logs]
        return NodeCheck(
            "chain",
            str(folder),
            CheckState.OK,
            f"{len(ends)} log{'s' if len(ends) > 1 else ''} verified up to offset {min(ends)}",
        )
    return NodeCheck(
        "chain",
        str(folder),
        CheckState.ACT,
        found.problem or "the log is damaged",
        "logberg log verify names the place; docs/runbook.md, ledger damaged",
    )
