"""The projected log depends on the log alone: not on cuts, restarts, or where it began."""

from hypothesis import given, settings
from hypothesis import strategies as st

from kafka_listener.projection.batch_projection import ProjectedBatch
from kafka_listener.projection.log_facts import FIRST_LEVEL
from metadata.features import METADATA_VERSION
from metadata.image import MetadataImage
from metadata.replay_steps import replay_in_steps
from tests.histories import History
from tests.projected_logs import ProjectedWorld, run, sealed

seeds = st.integers(0, 10_000)


def whole(seed: int, batches: int) -> tuple[ProjectedWorld, list[ProjectedBatch]]:
    world = ProjectedWorld()
    world.accept(sealed(History(seed).batches(batches)))
    world.follow()
    return world, world.read(0)


@settings(max_examples=25)
@given(seeds, st.lists(st.integers(1, 7), min_size=1, max_size=12))
def test_a_log_that_comes_in_any_pieces_is_projected_alike(seed: int, pieces: list[int]) -> None:
    other, expected = whole(seed, 40)
    world = ProjectedWorld()
    rest = sealed(History(seed).batches(40))
    ends = []
    while rest:
        for piece in pieces:
            world.accept(rest[:piece])
            rest = rest[piece:]
            world.follow()
            ends.append(world.log.end)
    assert world.read(0) == expected
    assert ends == sorted(ends)
    assert world.log.digests.kept().items() >= other.log.digests.kept().items()


@settings(max_examples=25)
@given(seeds, st.integers(1, 39))
def test_a_log_that_begins_at_a_checkpoint_is_projected_alike(seed: int, cut: int) -> None:
    other, expected = whole(seed, 40)
    batches = sealed(History(seed).batches(40))
    image = run(replay_in_steps(MetadataImage(), batches[:cut]))
    if image.transaction is not None:
        # No checkpoint is written here.
        return
    level = image.features.levels.get(METADATA_VERSION) or FIRST_LEVEL
    world = ProjectedWorld(start=image.offset, level=level)
    world.accept(batches)
    world.follow()
    assert world.read(image.offset) == [b for b in expected if b.base_offset >= image.offset]
    assert world.log.end == other.log.end
    common = world.log.digests.kept().keys() & other.log.digests.kept().keys()
    assert all(world.log.digests.at(at) == other.log.digests.at(at) for at in common)


@settings(max_examples=25)
@given(seeds, st.integers(0, 200), st.integers(1, 5_000))
def test_a_fetch_begins_with_the_batch_that_holds_its_offset(
    seed: int, offset: int, max_bytes: int
) -> None:
    world, expected = whole(seed, 20)
    offset = min(offset, max(world.log.end - 1, 0))
    found = world.read(offset, max_bytes)
    assert found == [b for b in expected if b.end_offset > offset][: len(found)]
    assert found or not world.log.end
    assert sum(len(b.data) for b in found[:-1]) <= max_bytes
    # Projected again from the ledger, it is the same.
    world.log._kept.clear()
    assert world.read(offset, max_bytes) == found
