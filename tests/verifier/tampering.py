"""Ways to tamper with a ledger: what must be known to find each, and where it is found.

Rule: no way is found "somewhere". Its place is the frame that was tampered with, or the frame
behind it where only the chain can tell, or the stretch between two heads that are known. What the
folder alone can't show says so in `needs`, and must not be found without: else this would prove
less than it says.
"""

import random
from collections.abc import Callable
from hashlib import sha256
from typing import Final, NamedTuple

import msgspec

from ledger.batch import Batch, seal
from ledger.frame import finish_frame
from metadata.codec import decode_record, decode_records, encode_record, encode_records
from metadata.records import (
    ConfigRecord,
    NoOpRecord,
    OutcomeFloorRecord,
    RequestOutcomeRecord,
)
from metadata.state_hash import state_hash_of
from snapshots.checkpoint import (
    CheckpointHeader,
    Footer,
    encode_blocks,
    encode_footer,
    encode_header,
    parse_header,
)
from tests.verifier.small_world import Files, Small, forged, laid_out, small

NOTHING: Final = "nothing"
HEAD: Final = "a head"
REPLICAS: Final = "two other replicas"
DIGEST: Final = "a digest"
WHOLE: Final = "that history is whole"
CLUSTER: Final = "4L6g3nShT-eMCtK--X86sw"


class Tampered(NamedTuple):
    """What became of a folder."""

    files: Files
    file: str = ""
    """Where it is found: in this file, in frame `index` (behind the last: where the file ends)."""
    index: int = 0
    heads: tuple[int, ...] = ()
    """Offsets of heads that are known, if that is needed: all are right but the last."""
    also: tuple[str, int] | None = None
    """Another place where it may be found, if what was changed is still well formed."""

    def spans(self) -> list[tuple[str, int, int]]:
        """The places: a file, the first byte, and the one behind it."""
        return [self._span(*place) for place in ((self.file, self.index), self.also) if place]

    def _span(self, file: str, index: int) -> tuple[str, int, int]:
        frames = self.files[file]
        start = sum(map(len, frames[:index]))
        return file, start, start + len(frames[index] if index < len(frames) else b"\0")


Way = Callable[[Small, random.Random], Tampered]


class Kind(NamedTuple):
    """A way to tamper."""

    needs: str
    way: Way
    product: bool
    """Whether the product's verification is asked, too."""

    @property
    def name(self) -> str:
        return self.way.__name__.replace("_", " ")


KINDS: list[Kind] = []


def _kind(needs: str, *, product: bool = True) -> Callable[[Way], Way]:
    def add(way: Way) -> Way:
        KINDS.append(Kind(needs, way, product))
        return way

    return add


def _number(world: Small, dice: random.Random) -> int:
    """The number of a batch, but not of the last."""
    return dice.randrange(len(world.batches) - 1)


def _behind(world: Small, files: Files, number: int) -> Tampered:
    """What is said of batch `number` is wrong: the frame behind it says so, perhaps a header."""
    one, behind = world.batches[number], world.batches[number + 1]
    return Tampered(files, behind.file, behind.index if one.file == behind.file else 0)


def _heads(world: Small, dice: random.Random, number: int) -> tuple[int, ...]:
    """A head before batch `number`, and one behind it."""
    before = dice.choice([0, *(one.end for one in world.batches[:number])])
    return before, dice.choice([one.end for one in world.batches[number:]])


# ---- bytes --------------------------------------------------------------------------------------


def _changed(frame: bytes, at: int, instead: bytes) -> bytes:
    return frame[:at] + instead + frame[at + len(instead) :]


def _flipped(world: Small, dice: random.Random, names: list[str]) -> Tampered:
    files, name = world.copy(), dice.choice(names)
    sizes = [len(frame) for frame in files[name]]
    index = dice.choices(range(len(sizes)), sizes)[0]
    frame, at = files[name][index], dice.randrange(sizes[index])
    files[name][index] = _changed(frame, at, bytes([frame[at] ^ dice.randrange(1, 256)]))
    return Tampered(files, name, index)


@_kind(NOTHING)
def byte_flipped_in_a_segment(world: Small, dice: random.Random) -> Tampered:
    return _flipped(world, dice, world.segments)


@_kind(NOTHING)
def byte_flipped_in_a_checkpoint(world: Small, dice: random.Random) -> Tampered:
    return _flipped(world, dice, world.checkpoints)


@_kind(NOTHING)
def bytes_overwritten(world: Small, dice: random.Random) -> Tampered:
    files, name = world.copy(), dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]))
    frame = files[name][index]
    at = dice.randrange(len(frame))
    old = frame[at : at + dice.randrange(1, 64)]
    new = dice.choice([bytes(len(old)), dice.randbytes(len(old))])
    new = new if new != old else bytes(byte ^ 1 for byte in old)
    files[name][index] = _changed(frame, at, new)
    return Tampered(files, name, index)


@_kind(NOTHING)
def bytes_taken_out(world: Small, dice: random.Random) -> Tampered:
    """Within a frame; what follows moves up."""
    files, name = world.copy(), dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]))
    frame = files[name][index]
    at = dice.randrange(1, len(frame))
    files[name][index] = frame[:at] + frame[at + dice.randrange(1, 64) :]
    return Tampered(files, name, index)


@_kind(NOTHING)
def byte_flipped_and_crc_made_right(world: Small, dice: random.Random) -> Tampered:
    """It is found there, or by what stands behind it: a batch, a header, a footer's digest."""
    files = world.copy()
    name = dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]) - (name == world.segments[-1]))
    body = files[name][index][:-4]
    # The length is left: it says where the CRC stands.
    at = dice.choice([at for at in range(len(body)) if not 8 <= at < 12])
    files[name][index] = finish_frame(
        _changed(body, at, bytes([body[at] ^ dice.randrange(1, 256)]))
    )
    also = (name, index + 1)
    if name in world.checkpoints:
        also = (name, len(files[name]) - 1)
    elif index == len(files[name]) - 1:
        also = (world.segments[world.segments.index(name) + 1], 0)
    return Tampered(files, name, index, also=also)


@_kind(NOTHING)
def newer_format_with_right_crc(world: Small, dice: random.Random) -> Tampered:
    files, name = world.copy(), dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]))
    body, at = files[name][index][:-4], dice.randrange(4, 8)
    files[name][index] = finish_frame(
        _changed(body, at, bytes([body[at] ^ dice.randrange(1, 256)]))
    )
    return Tampered(files, name, index)


# ---- batches, with right CRC --------------------------------------------------------------------


def _edited(batch: Batch, dice: random.Random) -> Batch:
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


@_kind(NOTHING)
def batch_edited_with_right_crc(world: Small, dice: random.Random) -> Tampered:
    number = _number(world, dice)
    one, files = world.batches[number], world.copy()
    files[one.file][one.index] = _edited(one.batch, dice).encoded
    return _behind(world, files, number)


@_kind(NOTHING)
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


@_kind(NOTHING)
def base_offset_changed(world: Small, dice: random.Random) -> Tampered:
    """The chain is right up to here; the offset is not."""
    one, files = dice.choice(world.batches[1:]), world.copy()
    offset = dice.choice([one.base - 1, one.base + 1, one.base + dice.randrange(2, 1 << 40)])
    header = msgspec.structs.replace(one.batch.header, base_offset=offset)
    files[one.file][one.index] = seal(header, one.batch.records).encoded
    return Tampered(files, one.file, one.index)


@_kind(HEAD)
def last_batch_edited_with_right_crc(world: Small, dice: random.Random) -> Tampered:
    one, files = world.batches[-1], world.copy()
    files[one.file][one.index] = _edited(one.batch, dice).encoded
    return Tampered(files, heads=(world.batches[-2].end, one.end))


@_kind(NOTHING)
def batch_dropped(world: Small, dice: random.Random) -> Tampered:
    number = _number(world, dice)
    one, files = world.batches[number], world.copy()
    del files[one.file][one.index]
    only = len(files[one.file]) == 1
    next_file = world.batches[number + 1].file
    if next_file != one.file and not only:
        return Tampered(files, next_file, 0)
    return Tampered(files, one.file, one.index)


@_kind(NOTHING)
def batch_doubled(world: Small, dice: random.Random) -> Tampered:
    one, files = dice.choice(world.batches), world.copy()
    files[one.file].insert(one.index, one.batch.encoded)
    return Tampered(files, one.file, one.index + 1)


@_kind(NOTHING)
def two_batches_swapped(world: Small, dice: random.Random) -> Tampered:
    first, second = sorted(dice.sample(range(len(world.batches)), 2))
    one, other, files = world.batches[first], world.batches[second], world.copy()
    files[one.file][one.index] = other.batch.encoded
    files[other.file][other.index] = one.batch.encoded
    return Tampered(files, one.file, one.index)


@_kind(NOTHING)
def batch_put_in_from_elsewhere_in_the_log(world: Small, dice: random.Random) -> Tampered:
    one, files = dice.choice(world.batches), world.copy()
    other = dice.choice([batch for batch in world.batches if batch.base != one.base])
    files[one.file].insert(one.index, other.batch.encoded)
    return Tampered(files, one.file, one.index)


def _fork(world: Small, dice: random.Random, first: int) -> list[Batch]:
    """Another log of this cluster, which parted from it at batch `first`."""
    return forged(world, first, _edited(world.batches[first].batch, dice))


@_kind(NOTHING)
def batches_spliced_from_another_log_of_the_cluster(world: Small, dice: random.Random) -> Tampered:
    """The first spliced batch does not follow, unless the logs part there: then the one behind."""
    number = _number(world, dice)
    fork = dice.randrange(number + 1)
    batches = _fork(world, dice, fork)
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
            return _behind(world, files, spliced)
    return _behind(world, files, stop)


@_kind(NOTHING)
def segment_taken_from_another_log_of_the_cluster(world: Small, dice: random.Random) -> Tampered:
    """All segments have the same offsets; the header tells, or that of the next one."""
    files, names = world.copy(), world.segments
    at = dice.randrange(len(names) - 1)
    first = next(number for number, one in enumerate(world.batches) if one.file == names[at])
    fork = dice.randrange(first + 1)
    files[names[at]] = laid_out(world, _fork(world, dice, fork))[names[at]]
    return Tampered(files, names[at if fork < first else at + 1], 0)


@_kind(NOTHING)
def segment_of_another_cluster(world: Small, dice: random.Random) -> Tampered:
    """Its name is taken over; its header is not of this cluster."""
    other = small(dice.randrange(4), CLUSTER)
    common = [name for name in world.segments[1:] if name in other.files]
    name = dice.choice(common or world.segments[1:])
    files = world.copy()
    files[name] = other.files[name] if common else other.files[other.segments[1]]
    return Tampered(files, name, 0)


@_kind(NOTHING)
def segment_there_twice_not_alike(world: Small, dice: random.Random) -> Tampered:
    """In the archive as well; one of the two is right, and hides nothing of the other."""
    files, name = world.copy(), dice.choice(world.segments)
    archived = name.replace("log/", "archive/")
    files[archived] = list(files[name])
    one = [one for one in world.batches if one.file == name][-1]
    files[dice.choice([name, archived])][one.index] = _edited(one.batch, dice).encoded
    return Tampered(files, archived, 0)


# ---- ends, segments, whole chains ---------------------------------------------------------------


@_kind(NOTHING)
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


@_kind(HEAD)
def tail_cut_between_batches(world: Small, dice: random.Random) -> Tampered:
    number = _number(world, dice)
    return Tampered(_without(world, number), heads=_heads(world, dice, number + 1))


@_kind(NOTHING)
def tail_cut_before_a_checkpoint(world: Small, dice: random.Random) -> Tampered:
    """The checkpoints stay, so the ledger ends before one: that is found at the checkpoint."""
    last = int(world.checkpoints[-1][12:32])
    number = dice.choice([at for at, one in enumerate(world.batches) if one.end < last])
    files, cut = world.copy(), _without(world, number)
    files = {name: cut.get(name, files[name]) for name in [*cut, *world.checkpoints]}
    end = world.batches[number].end
    name = next(name for name in world.checkpoints if int(name[12:32]) > end)
    return Tampered(files, name, 0)


@_kind(NOTHING)
def segment_removed_from_the_middle(world: Small, dice: random.Random) -> Tampered:
    files, names = world.copy(), world.segments
    at = dice.randrange(1, len(names) - 1)
    del files[names[at]]
    return Tampered(files, names[at + 1], 0)


@_kind(WHOLE, product=False)
def first_segments_removed(world: Small, dice: random.Random) -> Tampered:
    files, names = world.copy(), world.segments
    count = dice.randrange(1, len(names))
    for name in names[:count]:
        del files[name]
    return Tampered(files, names[count], 0)


@_kind(WHOLE, product=False)
def segment_removed_and_a_marker_put_there(world: Small, dice: random.Random) -> Tampered:
    files, names = world.copy(), world.segments
    at = dice.randrange(1, len(names) - 1)
    del files[names[at]]
    files[f"{names[at][:24]}-{names[at + 1][4:24]}.gap"] = []
    return Tampered(files, names[at + 1], 0)


def _rewritten(world: Small, dice: random.Random) -> tuple[int, Files]:
    """From some batch on all is written anew, checkpoints too; every hash and digest is right."""
    number = dice.randrange(len(world.batches))
    batches = _fork(world, dice, number)
    files = laid_out(world, batches)
    heads = {batch.header.end_offset: batch.hash for batch in batches}
    for name in world.checkpoints:
        header, _ = parse_header(world.files[name][0])
        header = msgspec.structs.replace(header, chain_hash=heads[header.offset])
        files[name] = _checkpoint(header, _records(world.files[name]))
    return number, files


@_kind(HEAD)
def chain_written_anew_and_a_head_known(world: Small, dice: random.Random) -> Tampered:
    number, files = _rewritten(world, dice)
    return Tampered(files, heads=_heads(world, dice, number))


@_kind(REPLICAS)
def chain_written_anew_and_replicas_there(world: Small, dice: random.Random) -> Tampered:
    number, files = _rewritten(world, dice)
    one = world.batches[number]
    return Tampered(files, one.file, one.index)


# ---- checkpoints --------------------------------------------------------------------------------


def _records(frames: list[bytes]) -> list[bytes]:
    blocks = [msgspec.msgpack.decode(frame[16:-4]) for frame in frames[1:-1]]
    return [msgspec.msgpack.encode(record) for block in blocks for record in block]


def _checkpoint(header: CheckpointHeader, records: list[bytes]) -> list[bytes]:
    frames = [encode_header(header), *(frame for _, frame in encode_blocks(records))]
    digest = sha256(b"".join(frames)).digest()
    return [*frames, encode_footer(Footer(len(frames) - 1, len(records), digest))]


def _state_hash(records: list[bytes]) -> bytes:
    decoded = [decode_record(record) for record in records]
    own = [one for one in decoded if isinstance(one, RequestOutcomeRecord | OutcomeFloorRecord)]
    return state_hash_of([one for one in decoded if one not in own], own).encode()


def _two(
    world: Small, dice: random.Random
) -> tuple[str, CheckpointHeader, list[bytes], CheckpointHeader]:
    """A checkpoint's name and header; another one's records and header."""
    name, other = dice.sample(world.checkpoints, 2)
    header, _ = parse_header(world.files[name][0])
    other_header, _ = parse_header(world.files[other][0])
    return name, header, _records(world.files[other]), other_header


@_kind(NOTHING)
def checkpoint_of_another_moment_under_this_name(world: Small, dice: random.Random) -> Tampered:
    files = world.copy()
    name, other = dice.sample(world.checkpoints, 2)
    files[name] = files[other]
    return Tampered(files, name, 0)


@_kind(NOTHING)
def checkpoint_of_another_moment_said_to_be_of_this(world: Small, dice: random.Random) -> Tampered:
    """Its chain hash is not the ledger's at this offset."""
    name, header, records, other = _two(world, dice)
    lying = msgspec.structs.replace(other, offset=header.offset, epoch=header.epoch)
    return Tampered(world.copy() | {name: _checkpoint(lying, records)}, name, 0)


@_kind(NOTHING)
def checkpoint_of_another_cluster(world: Small, dice: random.Random) -> Tampered:
    name, header, records, _ = _two(world, dice)
    header = msgspec.structs.replace(header, cluster_id=CLUSTER)
    records = _records(world.files[name])
    return Tampered(world.copy() | {name: _checkpoint(header, records)}, name, 0)


@_kind(NOTHING)
def checkpoint_with_other_records_and_right_digest(world: Small, dice: random.Random) -> Tampered:
    name, header, _, _ = _two(world, dice)
    records = _forged_records(_records(world.files[name]), dice)
    return Tampered(world.copy() | {name: _checkpoint(header, records)}, name, 0)


def _forged_records(records: list[bytes], dice: random.Random) -> list[bytes]:
    """One record left out or replaced."""
    at = dice.randrange(len(records))
    value = str(dice.randrange(1 << 30))
    other = encode_record(ConfigRecord(4, "", "min.insync.replicas", value))
    return [*records[:at], *dice.choice([[], [other]]), *records[at + 1 :]]


def _forged_checkpoint(world: Small, dice: random.Random) -> Tampered:
    """All that a checkpoint says of itself and of the chain is right; its state is another."""
    name, header, others, _ = _two(world, dice)
    records = dice.choice([others, _forged_records(_records(world.files[name]), dice)])
    header = msgspec.structs.replace(header, state_hash=_state_hash(records))
    return Tampered(world.copy() | {name: _checkpoint(header, records)}, name, 0)


@_kind(DIGEST)
def checkpoint_forged_in_full_and_a_digest_known(world: Small, dice: random.Random) -> Tampered:
    return _forged_checkpoint(world, dice)


@_kind(REPLICAS)
def checkpoint_forged_in_full_and_replicas_there(world: Small, dice: random.Random) -> Tampered:
    return _forged_checkpoint(world, dice)
