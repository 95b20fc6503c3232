"""The facts about the quorum: epochs, voters, generation."""

import pytest

from metadata.image import EMPTY, EpochStart, MetadataDelta, ReplayError
from metadata.records import (
    BeginEpochRecord,
    ClusterGenerationRecord,
    EpochVoter,
    KRaftVersionRecord,
    NoOpRecord,
    Record,
    Voter,
    VoterKRaftVersions,
    VotersRecord,
)
from tests.unit.image.replaying import replayed

BEGIN = BeginEpochRecord(2, (EpochVoter(2, bytes(16)),), ())


def test_an_epoch_starts_at_its_record_and_has_its_batch_s_number() -> None:
    """The history of epochs is in the image."""
    image = replayed(BEGIN, NoOpRecord(), epoch=3)
    image = replayed(NoOpRecord(), BeginEpochRecord(1, (), ()), image=image, epoch=7)
    assert dict(image.quorum.epochs.items()) == {3: EpochStart(0, 2), 7: EpochStart(3, 1)}
    assert image.quorum.leader == BeginEpochRecord(1, (), ())
    assert (image.epoch, image.offset) == (7, 4)


def test_an_epoch_that_nobody_began_has_no_start() -> None:
    """A start is taken from a BeginEpoch record, and from one only."""
    image = replayed(NoOpRecord(), image=replayed(BEGIN, epoch=3), epoch=4)
    assert list(image.quorum.epochs) == [3]
    delta = MetadataDelta(EMPTY)
    for epoch in (3, 4):
        delta.replay(BEGIN if epoch == 3 else NoOpRecord(), epoch)
        delta.finish_batch(epoch, epoch, 0)
    assert list(delta.apply().quorum.epochs) == [3]


def test_the_newest_fact_counts() -> None:
    """Voters, generation and protocol version."""
    assert EMPTY.quorum.voters == ()
    assert (EMPTY.quorum.generation, EMPTY.quorum.k_raft_version) == (0, 0)
    assert EMPTY.quorum.leader is None
    voter = Voter(1, bytes(16), (), VoterKRaftVersions(0, 1))
    image = replayed(
        VotersRecord(()),
        VotersRecord((voter,)),
        ClusterGenerationRecord(1, ""),
        ClusterGenerationRecord(2, "recovered"),
        KRaftVersionRecord(1),
    )
    assert image.quorum.voters == (voter,)
    assert (image.quorum.generation, image.quorum.k_raft_version) == (2, 1)


def test_time_and_place_are_those_of_the_last_batch() -> None:
    """An image is named by where it ends."""
    delta = MetadataDelta(EMPTY)
    delta.replay(NoOpRecord(), 0)
    delta.finish_batch(1, 4, 1000)
    delta.replay(NoOpRecord(), 1)
    delta.finish_batch(2, 4, 2000)
    image = delta.apply()
    assert (image.offset, image.epoch, image.timestamp_ms) == (2, 4, 2000)
    assert delta.image is EMPTY
    assert delta.apply() is image


@pytest.mark.parametrize(("end", "epoch"), [(4, 9), (6, 2)])
def test_batches_go_forward_only(end: int, epoch: int) -> None:
    """Offsets and epochs never fall."""
    image = replayed(*[NoOpRecord()] * 5, epoch=3)
    delta = MetadataDelta(image)
    delta.replay(NoOpRecord(), 5)
    with pytest.raises(ReplayError, match="ends at 5 in epoch 3"):
        delta.finish_batch(end, epoch, 0)


class StrangeRecord(Record, frozen=True, tag=1):
    """A record that replay knows nothing of."""


def test_an_unknown_record_stops_replay() -> None:
    """Never skipped: it may forbid what comes after it."""
    with pytest.raises(ReplayError, match="no rule replays a StrangeRecord") as caught:
        MetadataDelta(EMPTY).replay(StrangeRecord(), 8)
    assert caught.value.offset == 8
