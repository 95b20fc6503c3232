"""The first batch of an epoch.

A new leader first applies everything that was committed before. Then it writes BeginEpoch, before
anything else. BeginEpoch discards a transaction that an earlier epoch left open.

The first leader of an empty log also writes cluster generation 1, the voters and the first feature
levels, in the same batch. So a log without levels was begun by release 0.1.

The first leader that may name the cluster key does so in this batch, too.
"""

from collections.abc import Callable, Mapping, Sequence

from controller.managers.features import level_records
from controller.result import ControllerResult
from metadata.configs.effective import OwnConfigs
from metadata.image import MetadataImage
from metadata.records import (
    BeginEpochRecord,
    ClusterGenerationRecord,
    EpochVoter,
    KRaftVersionRecord,
    Record,
    VotersRecord,
)
from metadata.voter_records import K_RAFT_VERSION, voter_record
from quorum import api


def begin_epoch(
    image: MetadataImage,
    leader_id: int,
    voters: Sequence[api.Voter],
    levels: Mapping[str, int],
    own: OwnConfigs,
    names_key: Callable[[MetadataImage, Mapping[str, int]], tuple[Record, ...]],
) -> ControllerResult:
    """Return the records of the first batch of an epoch.

    `levels`: of a new log. `own`: the controllers' own configs. `names_key`: returns the record
    with which the log names the cluster key, at some levels.
    """
    members = sorted(voters, key=lambda voter: (voter.node_id, voter.directory_id))
    begin = BeginEpochRecord(
        leader_id, tuple(EpochVoter(v.node_id, v.directory_id) for v in members), ()
    )
    records: list[Record] = [begin]
    reason = "elected"
    if image.offset == 0:
        records += [
            ClusterGenerationRecord(1, ""),
            KRaftVersionRecord(K_RAFT_VERSION),
            VotersRecord(
                tuple(voter_record(v.node_id, v.directory_id, v.host, v.port) for v in members)
            ),
            *level_records(levels, image, own),
        ]
        reason = "the cluster's first leader"
    else:
        levels = dict(image.features.levels.items())
    records += names_key(image, levels)
    return ControllerResult(records, reason=reason)
