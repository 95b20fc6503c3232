"""Ways to tamper with batches, each with a right CRC: edited, dropped, doubled, from elsewhere."""

import random

import msgspec

from ledger.batch import Batch, seal
from metadata.codec import decode_records, encode_records
from metadata.records import (
    ConfigRecord,
    NoOpRecord,
)
from tests.verifier.small_world import Small, forged, laid_out, small
from tests.verifier.tampering import (
    CLUSTER,
    HEAD,
    NOTHING,
    Kinds,
    Tampered,
    behind,
    some_number,
)

KINDS = Kinds()


def edited(batch: Batch, dice: random.Random) -> Batch:
    """A record or who, when and why changed; as well formed as before."""
    header, records = batch.header, batch.records
    way = dice.choice(("principal", "reason", "request_id", "record", "record", "record"))
    if way == "record":
        decoded = decode_records(records)
        number = dice.randrange(len(decoded))
        other = ConfigRecord(2, "orders", "retention.ms", str(dice.randrange(1 << 30)))
        decoded[number] = dice.choice(
            [other, NoOpRecord() if decoded[number] != NoOpRecord() else other]
        )
        records = encode_records(decoded)
    else:
        values = {
            "principal": "User:nobody",
            "reason": "as agreed",
            "request_id": dice.randbytes(16),
        }
        provenance = msgspec.structs.replace(header.provenance, **{way: values[way]})
        header = msgspec.structs.replace(header, provenance=provenance)
    return seal(header, records)


@KINDS(NOTHING)
def batch_edited_with_right_crc(world: Small, dice: random.Random) -> Tampered:
    number = some_number(world, dice)
    one, files = world.batches[number], world.copy()
    files[one.file][one.index] = edited(one.batch, dice).encoded
    return behind(world, files, number)


@KINDS(NOTHING)
def time_or_epoch_set_back(world: Small, dice: random.Random) -> Tampered:
    """Found at the batch itself when it is now before the one before it, else behind it."""
    number = dice.randrange(1, len(world.batches) - 1)
    one, files = world.batches[number], world.copy()
    before = world.batches[number - 1].batch.header
    field = dice.choice(("epoch", "timestamp_ms"))
    value = getattr(before, field) - dice.randrange(1, 2)
    header = msgspec.structs.replace(one.batch.header, **{field: value})
    files[one.file][one.index] = seal(header, one.batch.records).encoded
    return Tampered(files, one.file, one.index)


@KINDS(NOTHING)
def base_offset_changed(world: Small, dice: random.Random) -> Tampered:
    """The chain is right up to here; the offset is not."""
    one, files = dice.choice(world.batches[1:]), world.copy()
    offset = dice.choice([one.base - 1, one.base + 1, one.base + dice.randrange(2, 1 << 40)])
    header = msgspec.structs.replace(one.batch.header, base_offset=offset)
    files[one.file][one.index] = seal(header, one.batch.records).encoded
    return Tampered(files, one.file, one.index)


@KINDS(HEAD)
def last_batch_edited_with_right_crc(world: Small, dice: random.Random) -> Tampered:
    one, files = world.batches[-1], world.copy()
    files[one.file][one.index] = edited(one.batch, dice).encoded
    return Tampered(files, heads=(world.batches[-2].end, one.end))


@KINDS(NOTHING)
def batch_dropped(world: Small, dice: random.Random) -> Tampered:
    number = some_number(world, dice)
    one, files = world.batches[number], world.copy()
    del files[one.file][one.index]
    only = len(files[one.file]) == 1
    next_file = world.batches[number + 1].file
    if next_file != one.file and not only:
        return Tampered(files, next_file, 0)
    return Tampered(files, one.file, one.index)


@KINDS(NOTHING)
def batch_doubled(world: Small, dice: random.Random) -> Tampered:
    one, files = dice.choice(world.batches), world.copy()
    files[one.file].insert(one.index, one.batch.encoded)
    return Tampered(files, one.file, one.index + 1)


@KINDS(NOTHING)
def two_batches_swapped(world: Small, dice: random.Random) -> Tampered:
    first, second = sorted(dice.sample(range(len(world.batches)), 2))
    one, other, files = world.batches[first], world.batches[second], world.copy()
    files[one.file][one.index] = other.batch.encoded
    files[other.file][other.index] = one.batch.encoded
    return Tampered(files, one.file, one.index)


@KINDS(NOTHING)
def batch_put_in_from_elsewhere_in_the_log(world: Small, dice: random.Random) -> Tampered:
    one, files = dice.choice(world.batches), world.copy()
    other = dice.choice([batch for batch in world.batches if batch.base != one.base])
    files[one.file].insert(one.index, other.batch.encoded)
    return Tampered(files, one.file, one.index)


def forked(world: Small, dice: random.Random, first: int) -> list[Batch]:
    """Another log of this cluster, which parted from it at batch `first`."""
    return forged(world, first, edited(world.batches[first].batch, dice))


@KINDS(NOTHING)
def batches_spliced_from_another_log_of_the_cluster(world: Small, dice: random.Random) -> Tampered:
    """The first spliced batch does not follow, unless the logs part there: then the one behind."""
    number = some_number(world, dice)
    fork = dice.randrange(number + 1)
    batches = forked(world, dice, fork)
    stop = dice.randrange(number, len(world.batches) - 1)
    files = world.copy()
    for spliced in range(number, stop + 1):
        one = world.batches[spliced]
        files[one.file][one.index] = batches[spliced].encoded
    if fork == number and batches[stop].hash == world.batches[stop].batch.hash:
        raise AssertionError("a fork that isn't one")
    if fork < number:
        one = world.batches[number]
        return Tampered(files, one.file, one.index)
    # It follows as far as the segment goes; the next header is that of the true log.
    for spliced in range(number, stop + 1):
        if world.batches[spliced + 1].file != world.batches[spliced].file:
            return behind(world, files, spliced)
    return behind(world, files, stop)


@KINDS(NOTHING)
def segment_taken_from_another_log_of_the_cluster(world: Small, dice: random.Random) -> Tampered:
    """All segments have the same offsets; its header shows it, or the next one's does."""
    files, names = world.copy(), world.segments
    at = dice.randrange(len(names) - 1)
    first = next(number for number, one in enumerate(world.batches) if one.file == names[at])
    fork = dice.randrange(first + 1)
    files[names[at]] = laid_out(world, forked(world, dice, fork))[names[at]]
    return Tampered(files, names[at if fork < first else at + 1], 0)


@KINDS(NOTHING)
def segment_of_another_cluster(world: Small, dice: random.Random) -> Tampered:
    """Its name is taken over; its header is not of this cluster."""
    other = small(dice.randrange(4), CLUSTER)
    common = [name for name in world.segments[1:] if name in other.files]
    name = dice.choice(common or world.segments[1:])
    files = world.copy()
    files[name] = other.files[name] if common else other.files[other.segments[1]]
    return Tampered(files, name, 0)


@KINDS(NOTHING)
def segment_there_twice_not_alike(world: Small, dice: random.Random) -> Tampered:
    """In the archive as well; one of the two is right, and hides nothing of the other."""
    files, name = world.copy(), dice.choice(world.segments)
    archived = name.replace("log/", "archive/")
    files[archived] = list(files[name])
    one = [one for one in world.batches if one.file == name][-1]
    files[dice.choice([name, archived])][one.index] = edited(one.batch, dice).encoded
    return Tampered(files, archived, 0)
