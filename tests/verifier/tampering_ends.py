"""Ways to tamper with ends, whole segments and whole chains: some need a head, or replicas."""

import random

import msgspec

from snapshots.checkpoint import parse_header
from tests.verifier.small_world import Files, Small, laid_out
from tests.verifier.tampering import (
    HEAD,
    NOTHING,
    REPLICAS,
    WHOLE,
    Kinds,
    Tampered,
    heads_around,
    some_number,
)
from tests.verifier.tampering_batches import forked
from tests.verifier.tampering_checkpoints import checkpoint, records_of

KINDS = Kinds()


@KINDS(NOTHING)
def tail_cut_within_a_batch(world: Small, dice: random.Random) -> Tampered:
    one, files = world.batches[-1], world.copy()
    frame = files[one.file][one.index]
    files[one.file][one.index] = frame[: dice.randrange(1, len(frame))]
    return Tampered(files, one.file, one.index)


def _without(world: Small, number: int) -> Files:
    """The ledger up to batch `number`, with the checkpoints that it may have."""
    files, end = world.copy(), world.batches[number].end
    for one in reversed(world.batches[number + 1 :]):
        del files[one.file][one.index]
        if len(files[one.file]) == 1:
            del files[one.file]
    for name in world.checkpoints:
        if int(name[12:32]) > end:
            del files[name]
    return files


@KINDS(HEAD)
def tail_cut_between_batches(world: Small, dice: random.Random) -> Tampered:
    number = some_number(world, dice)
    return Tampered(_without(world, number), heads=heads_around(world, dice, number + 1))


@KINDS(NOTHING)
def tail_cut_before_a_checkpoint(world: Small, dice: random.Random) -> Tampered:
    """The checkpoints stay, so the ledger ends before one: that is found at the checkpoint."""
    last = int(world.checkpoints[-1][12:32])
    number = dice.choice([at for at, one in enumerate(world.batches) if one.end < last])
    files, cut = world.copy(), _without(world, number)
    files = {name: cut.get(name, files[name]) for name in [*cut, *world.checkpoints]}
    end = world.batches[number].end
    name = next(name for name in world.checkpoints if int(name[12:32]) > end)
    return Tampered(files, name, 0)


@KINDS(NOTHING)
def segment_removed_from_the_middle(world: Small, dice: random.Random) -> Tampered:
    files, names = world.copy(), world.segments
    at = dice.randrange(1, len(names) - 1)
    del files[names[at]]
    return Tampered(files, names[at + 1], 0)


@KINDS(WHOLE, product=False)
def first_segments_removed(world: Small, dice: random.Random) -> Tampered:
    files, names = world.copy(), world.segments
    count = dice.randrange(1, len(names))
    for name in names[:count]:
        del files[name]
    return Tampered(files, names[count], 0)


@KINDS(WHOLE, product=False)
def segment_removed_and_a_marker_put_there(world: Small, dice: random.Random) -> Tampered:
    files, names = world.copy(), world.segments
    at = dice.randrange(1, len(names) - 1)
    del files[names[at]]
    files[f"{names[at][:24]}-{names[at + 1][4:24]}.gap"] = []
    return Tampered(files, names[at + 1], 0)


def _rewritten(world: Small, dice: random.Random) -> tuple[int, Files]:
    """From some batch on all is written anew, checkpoints too; every hash and digest is right."""
    number = dice.randrange(len(world.batches))
    batches = forked(world, dice, number)
    files = laid_out(world, batches)
    heads = {batch.header.end_offset: batch.hash for batch in batches}
    for name in world.checkpoints:
        header, _ = parse_header(world.files[name][0])
        header = msgspec.structs.replace(header, chain_hash=heads[header.offset])
        files[name] = checkpoint(header, records_of(world.files[name]))
    return number, files


@KINDS(HEAD)
def chain_written_anew_and_a_head_known(world: Small, dice: random.Random) -> Tampered:
    number, files = _rewritten(world, dice)
    return Tampered(files, heads=heads_around(world, dice, number))


@KINDS(REPLICAS)
def chain_written_anew_and_replicas_there(world: Small, dice: random.Random) -> Tampered:
    number, files = _rewritten(world, dice)
    one = world.batches[number]
    return Tampered(files, one.file, one.index)
