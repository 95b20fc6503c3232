"""Ways to tamper with bytes: flipped, overwritten, taken out, also with a CRC that fits."""

import random

from ledger.frame import finish_frame
from tests.verifier.small_world import Small
from tests.verifier.tampering import (
    NOTHING,
    Kinds,
    Tampered,
)

KINDS = Kinds()


def changed(frame: bytes, at: int, instead: bytes) -> bytes:
    return frame[:at] + instead + frame[at + len(instead) :]


def _flipped(world: Small, dice: random.Random, names: list[str]) -> Tampered:
    files, name = world.copy(), dice.choice(names)
    sizes = [len(frame) for frame in files[name]]
    index = dice.choices(range(len(sizes)), sizes)[0]
    frame, at = files[name][index], dice.randrange(sizes[index])
    files[name][index] = changed(frame, at, bytes([frame[at] ^ dice.randrange(1, 256)]))
    return Tampered(files, name, index)


@KINDS(NOTHING)
def byte_flipped_in_a_segment(world: Small, dice: random.Random) -> Tampered:
    return _flipped(world, dice, world.segments)


@KINDS(NOTHING)
def byte_flipped_in_a_checkpoint(world: Small, dice: random.Random) -> Tampered:
    return _flipped(world, dice, world.checkpoints)


@KINDS(NOTHING)
def bytes_overwritten(world: Small, dice: random.Random) -> Tampered:
    files, name = world.copy(), dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]))
    frame = files[name][index]
    at = dice.randrange(len(frame))
    old = frame[at : at + dice.randrange(1, 64)]
    new = dice.choice([bytes(len(old)), dice.randbytes(len(old))])
    new = new if new != old else bytes(byte ^ 1 for byte in old)
    files[name][index] = changed(frame, at, new)
    return Tampered(files, name, index)


@KINDS(NOTHING)
def bytes_taken_out(world: Small, dice: random.Random) -> Tampered:
    """Within a frame; what follows moves up."""
    files, name = world.copy(), dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]))
    frame = files[name][index]
    at = dice.randrange(1, len(frame))
    files[name][index] = frame[:at] + frame[at + dice.randrange(1, 64) :]
    return Tampered(files, name, index)


@KINDS(NOTHING)
def byte_flipped_and_crc_made_right(world: Small, dice: random.Random) -> Tampered:
    """It is found there, or by the next hash: a batch's, a header's, a footer's."""
    files = world.copy()
    name = dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]) - (name == world.segments[-1]))
    body = files[name][index][:-4]
    # The length is left: it says where the CRC stands.
    at = dice.choice([at for at in range(len(body)) if not 8 <= at < 12])
    files[name][index] = finish_frame(changed(body, at, bytes([body[at] ^ dice.randrange(1, 256)])))
    also = (name, index + 1)
    if name in world.checkpoints:
        also = (name, len(files[name]) - 1)
    elif index == len(files[name]) - 1:
        also = (world.segments[world.segments.index(name) + 1], 0)
    return Tampered(files, name, index, also=also)


@KINDS(NOTHING)
def newer_format_with_right_crc(world: Small, dice: random.Random) -> Tampered:
    files, name = world.copy(), dice.choice([*world.segments, *world.checkpoints])
    index = dice.randrange(len(files[name]))
    body, at = files[name][index][:-4], dice.randrange(4, 8)
    files[name][index] = finish_frame(changed(body, at, bytes([body[at] ^ dice.randrange(1, 256)])))
    return Tampered(files, name, index)
