"""A drill: restores a backup into a folder for the purpose, and proves that its state is right.

Rule: the state is computed twice, by a replay of the whole log and from the backup's checkpoint, as
a controller does at its start. The two must have one state hash. The ledger and the checkpoint of
the restored folder are verified as `logberg audit verify` verifies them.
"""

import os
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from audit.places.replicas import one_replica
from audit.questions.state import state_at
from audit.questions.verification import verify_replica
from ledger.segments import SEGMENT_BYTES
from logberg.backups.folders import restore_folders
from logberg.backups.reading import BackupFile, read_backup_header
from logberg.backups.restoring import CutPoint, Restored, RestoreOrder
from quorum.api import Voter

_NODE = 1
OnStep = Callable[[str, int, int], None]


class Drilled(msgspec.Struct, frozen=True):
    """What a drill found, and how long it took."""

    restored: Restored
    problems: tuple[str, ...]
    """Empty: the backup can be restored."""
    state_hash: bytes
    """By a replay of the whole log; empty if the backup doesn't begin at offset 0."""
    checkpoints_proved: int
    restore_s: float
    verify_s: float
    load_s: float
    """From the checkpoint, as a controller loads its state."""

    @property
    def ok(self) -> bool:
        """There is no problem."""
        return not self.problems


def drill(
    file: BackupFile,
    folder: Path,
    directory_id: bytes,
    moment: CutPoint,
    on_step: OnStep,
    now: Callable[[], float] = time.monotonic,
) -> Drilled:
    """Restore a backup into `folder`/controller-1 and verify it. Raises BackupError, OSError."""
    cluster_id = read_backup_header(file).cluster_id
    voters = (Voter(_NODE, directory_id, "127.0.0.1", 1),)
    began = now()
    restored = restore_folders(
        file,
        {_NODE: folder / f"controller-{_NODE}"},
        RestoreOrder(voters, "User:drill", "a drill", int(time.time() * 1000), os.urandom(16)),
        cluster_id=cluster_id,
        segment_bytes=SEGMENT_BYTES,
        moment=moment,
        on_progress=lambda done, total: on_step("restoring", done, total),
    )
    at_restored = now()
    replica = one_replica(str(folder / f"controller-{_NODE}"))
    said = verify_replica(
        replica, on_progress=lambda done, total: on_step("verifying and replaying", done, total)
    )
    at_verified = now()
    problems = [str(each) for each in said.problems]
    state = state_at(
        replica,
        restored.end.log_end,
        on_progress=lambda done, total: on_step("loading", done, total),
    )
    at_loaded = now()
    loaded_hash = state.state_hash.encode()
    if said.state_hash and said.state_hash != loaded_hash:
        problems.append(
            "the state that is loaded from the checkpoint differs from that of the replay: "
            f"{loaded_hash.hex()[:16]}, {said.state_hash.hex()[:16]}"
        )
    if state.image.quorum.generation != restored.generation:
        problems.append("the restored log doesn't begin the generation")
    return Drilled(
        restored,
        tuple(problems),
        said.state_hash,
        said.proved,
        at_restored - began,
        at_verified - at_restored,
        at_loaded - at_verified,
    )
