"""Ways to tamper with checkpoints: of another moment, of another cluster, forged in full."""

import random
from hashlib import sha256
from pathlib import Path
from tempfile import TemporaryDirectory

import msgspec

from audit.places.folder import LocalTree
from audit.places.tree_disk import TreeDisk
from metadata.codec import decode_record, encode_record
from metadata.records import (
    ConfigRecord,
    EntryRecord,
    KeyRecord,
    OutcomeFloorRecord,
    RequestOutcomeRecord,
    SessionRecord,
    TokenBaseRecord,
)
from metadata.state_hash import state_hash_of
from metadata.steps import finished
from snapshots.checkpoint import (
    CheckpointHeader,
    Footer,
    encode_blocks,
    encode_footer,
    encode_header,
    parse_header,
)
from snapshots.store import load_steps
from tests.verifier.small_world import Small, write
from tests.verifier.tampering import (
    CLUSTER,
    DIGEST,
    NOTHING,
    REPLICAS,
    Kinds,
    Tampered,
)

KINDS = Kinds()
CONTROLLERS_ONLY = (
    EntryRecord,
    KeyRecord,
    OutcomeFloorRecord,
    RequestOutcomeRecord,
    SessionRecord,
    TokenBaseRecord,
)


def records_of(frames: list[bytes]) -> list[bytes]:
    header, _ = parse_header(frames[0])
    with TemporaryDirectory() as folder:
        write({f"checkpoints/{header.id.name}": frames}, Path(folder))
        loading = load_steps(TreeDisk(LocalTree(Path(folder))), header.cluster_id, header.id)
        return [encode_record(record) for record in finished(loading).records()]


def checkpoint(header: CheckpointHeader, records: list[bytes]) -> list[bytes]:
    """A checkpoint in format 1, which has nothing but records."""
    header = msgspec.structs.replace(header, format=1)
    frames = [encode_header(header), *(frame for _, frame in encode_blocks(records))]
    digest = sha256(b"".join(frames)).digest()
    return [*frames, encode_footer(Footer(len(frames) - 1, len(records), digest))]


def _state_hash(records: list[bytes]) -> bytes:
    decoded = [decode_record(record) for record in records]
    own = [one for one in decoded if isinstance(one, CONTROLLERS_ONLY)]
    others = [one for one in decoded if not isinstance(one, CONTROLLERS_ONLY)]
    return state_hash_of(others, own).encode()


def _two(
    world: Small, dice: random.Random
) -> tuple[str, CheckpointHeader, list[bytes], CheckpointHeader]:
    """A checkpoint's name and header; another one's records and header."""
    name, other = dice.sample(world.checkpoints, 2)
    header, _ = parse_header(world.files[name][0])
    other_header, _ = parse_header(world.files[other][0])
    return name, header, records_of(world.files[other]), other_header


@KINDS(NOTHING)
def checkpoint_of_another_moment_under_this_name(world: Small, dice: random.Random) -> Tampered:
    files = world.copy()
    name, other = dice.sample(world.checkpoints, 2)
    files[name] = files[other]
    return Tampered(files, name, 0)


@KINDS(NOTHING)
def checkpoint_of_another_moment_said_to_be_of_this(world: Small, dice: random.Random) -> Tampered:
    """Its chain hash is not the ledger's at this offset."""
    name, header, records, other = _two(world, dice)
    lying = msgspec.structs.replace(other, offset=header.offset, epoch=header.epoch)
    return Tampered(world.copy() | {name: checkpoint(lying, records)}, name, 0)


@KINDS(NOTHING)
def checkpoint_of_another_cluster(world: Small, dice: random.Random) -> Tampered:
    name, header, records, _ = _two(world, dice)
    header = msgspec.structs.replace(header, cluster_id=CLUSTER)
    records = records_of(world.files[name])
    return Tampered(world.copy() | {name: checkpoint(header, records)}, name, 0)


@KINDS(NOTHING)
def checkpoint_with_other_records_and_right_digest(world: Small, dice: random.Random) -> Tampered:
    name, header, _, _ = _two(world, dice)
    records = _forged_records(records_of(world.files[name]), dice)
    return Tampered(world.copy() | {name: checkpoint(header, records)}, name, 0)


def _forged_records(records: list[bytes], dice: random.Random) -> list[bytes]:
    """One record left out or replaced."""
    at = dice.randrange(len(records))
    value = str(dice.randrange(1 << 30))
    other = encode_record(ConfigRecord(4, "", "min.insync.replicas", value))
    return [*records[:at], *dice.choice([[], [other]]), *records[at + 1 :]]


def _forged_checkpoint(world: Small, dice: random.Random) -> Tampered:
    """All that a checkpoint says of itself and of the chain is right; its state is another."""
    name, header, others, _ = _two(world, dice)
    records = dice.choice([others, _forged_records(records_of(world.files[name]), dice)])
    header = msgspec.structs.replace(header, state_hash=_state_hash(records))
    return Tampered(world.copy() | {name: checkpoint(header, records)}, name, 0)


@KINDS(DIGEST)
def checkpoint_forged_in_full_and_a_digest_known(world: Small, dice: random.Random) -> Tampered:
    return _forged_checkpoint(world, dice)


@KINDS(REPLICAS)
def checkpoint_forged_in_full_and_replicas_there(world: Small, dice: random.Random) -> Tampered:
    return _forged_checkpoint(world, dice)
