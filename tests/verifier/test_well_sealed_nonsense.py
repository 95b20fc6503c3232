"""Frames whose lengths, CRC and place are right, and whose content is not: each is refused."""

import struct
from hashlib import sha256
from pathlib import Path

import msgpack
import pytest

from ledger.frame import finish_frame
from tests.verifier.small_world import frames_of, small
from verifier.logberg_verify import Bad, Mark, crc32c, judge_batch, read_checkpoint, read_manifest

BEFORE = Mark(7, 3, 1_000, bytes(range(32)))
WHO = ["User:alice", "token", "", "", "", bytes(16), bytes(32), "CreateTopics", ""]
NO_OPS = [[2000], [2000]]


def sealed(magic: bytes, rest: bytes) -> bytes:
    return finish_frame(struct.pack(">4sHHI", magic, 1, 0, 16 + len(rest)) + rest)


def batch(who=WHO, records=NO_OPS, extensions=b"\x80", **changes) -> bytes:
    who, records = (
        part if isinstance(part, bytes) else msgpack.packb(part) for part in (who, records)
    )
    fixed = {"count": 2, "base": 7, "epoch": 3, "time": 1_000, "previous": BEFORE.hash}
    sizes = {"who": len(who), "extensions": len(extensions)}
    fields = fixed | sizes | changes
    return sealed(b"QRTB", struct.pack(">Iqqq32sII", *fields.values()) + who + records + extensions)


def test_what_is_right_is_let_through() -> None:
    behind = judge_batch(batch(), BEFORE)
    assert behind == Mark(9, 3, 1_000, sha256(batch()[:-4]).digest())
    judge_batch(batch(extensions=bytes.fromhex("8201c401ff02c400")), BEFORE)
    judge_batch(batch(who=[*WHO[:5], b"", b"", "", ""]), BEFORE)
    judge_batch(batch(records=[[2000]] * 70_000, count=70_000), BEFORE)


@pytest.mark.parametrize(
    ("kind", "changes"),
    [
        ("offset", {"base": 8}),
        ("chain", {"previous": bytes(32)}),
        ("epoch", {"epoch": 2}),
        ("time", {"time": 999}),
        ("count", {"count": 0, "records": []}),
        ("length", {"who": 5_000}),
        ("length", {"extensions": b"\x80" * 2}),
        ("shape", {"who": [*WHO, ""]}),
        ("shape", {"who": WHO[:8]}),
        ("shape", {"who": ["" for _ in range(9)]}),
        ("shape", {"who": [*WHO[:5], bytes(15), bytes(32), "", ""]}),
        ("shape", {"who": [*WHO[:5], bytes(16), bytes(31), "", ""]}),
        ("shape", {"who": "nine"}),
        ("length", {"who": msgpack.packb(WHO) + b"\xc0"}),
        ("records", {"records": [[2000]]}),
        ("records", {"records": [[2000]] * 3}),
        ("records", {"records": b"\xdc\x00\x02\x91\xcd\x07\xd0\x91\xcd\x07\xd0"}),
        ("records", {"records": msgpack.packb(NO_OPS) + b"\xc0"}),
        ("records", {"records": [[2000], 2000]}),
        ("records", {"records": [[2000], []]}),
        ("records", {"records": [[2000], [True]]}),
        ("records", {"records": [[2000], [2001]]}),
        ("records", {"records": [[2000], [100300, 1, 2, 3]]}),
        ("records", {"records": [[2000], ["2000"]]}),
        ("encoding", {"records": b"\x92\x91\xcd\x07\xd0\x91\xce\x00\x00\x07\xd0"}),
        ("encoding", {"records": [[2000], [2000, {}]]}),
        ("encoding", {"extensions": b""}),
        ("shape", {"extensions": b"\x90"}),
        ("shape", {"extensions": bytes.fromhex("8202c40001c400")}),
        ("shape", {"extensions": bytes.fromhex("8201c40001c400")}),
        ("shape", {"extensions": bytes.fromhex("8101a0")}),
        ("shape", {"extensions": bytes.fromhex("81ffc400")}),
        ("shape", {"extensions": bytes.fromhex("81c3c400")}),
        ("shape", {"extensions": bytes.fromhex("81cf0000000100000000c400")}),
    ],
)
def test_a_batch(kind: str, changes: dict) -> None:
    sizes = {name: value for name, value in changes.items() if name == "who" and value == 5_000}
    content = {name: value for name, value in changes.items() if name not in sizes}
    encoded = batch(**content)
    if sizes:
        encoded = finish_frame(encoded[:72] + struct.pack(">I", 5_000) + encoded[76:-4])
    with pytest.raises(Bad) as caught:
        judge_batch(encoded, BEFORE)
    assert caught.value.kind == kind, str(caught.value)


def test_offsets_end() -> None:
    before = Mark((1 << 63) - 3, 3, 1_000, BEFORE.hash)
    assert judge_batch(batch(base=before.offset), before).offset == (1 << 63) - 1
    before = before._replace(offset=(1 << 63) - 2)
    with pytest.raises(Bad, match="records"):
        judge_batch(batch(base=before.offset), before)


# ---- checkpoints --------------------------------------------------------------------------------

NAME = f"{7:020}-{3:010}.checkpoint"
NO_OP = msgpack.packb([2000])
LONG = msgpack.packb([400, 2, "orders", "a", "x" * 60_000])


def state_of(*records: bytes) -> bytes:
    total = sum(int.from_bytes(sha256(record).digest(), "big") for record in records)
    return (total % (1 << 256)).to_bytes(32, "big") + bytes(32)


def header(fields=None, extensions=b"\x80", *, state=bytes(64), **changes) -> bytes:
    names = {"cluster": "c", "generation": 1, "offset": 7, "epoch": 3, "time": 5}
    right = names | {"chain": bytes(32), "state": state, "voters": b""} | changes
    packed = msgpack.packb(list(right.values())) if fields is None else fields
    return sealed(b"QRTC", struct.pack(">II", len(packed), len(extensions)) + packed + extensions)


def block(*records: bytes, count: int | None = None) -> bytes:
    count = len(records) if count is None else count
    packed = msgpack.Packer().pack_array_header(len(records)) + b"".join(records)
    return sealed(b"QRTK", struct.pack(">I", count) + packed)


def footer(body: bytes, blocks: int, records: int) -> bytes:
    return sealed(b"QRTF", struct.pack(">IQ32s", blocks, records, sha256(body).digest()))


def checkpoint(folder: Path, *frames: bytes, records: int, behind: bytes = b"") -> Path:
    body = b"".join(frames)
    path = folder / NAME
    path.write_bytes(body + footer(body, len(frames) - 1, records) + behind)
    return path


def test_what_is_right_is_read(tmp_path: Path) -> None:
    read = read_checkpoint(checkpoint(tmp_path, header(), records=0), skip_crc=False)
    assert read.mark == Mark(7, 3, 5, bytes(32))
    full = [header(state=state_of(LONG, LONG, NO_OP)), block(LONG, LONG), block(NO_OP)]
    read_checkpoint(checkpoint(tmp_path, *full, records=3), skip_crc=False)
    outcome = msgpack.packb([100100, bytes(16), bytes(32), b"", 0])
    apart = state_of(outcome)[32:] + state_of(outcome)[:32]
    frames = [header(state=apart, voters=msgpack.packb([200600, []])), block(outcome)]
    read_checkpoint(checkpoint(tmp_path, *frames, records=1), skip_crc=False)


FIELDS = ["c", 1, 7, 3, 5, bytes(32), bytes(64), b""]


@pytest.mark.parametrize(
    ("kind", "frames", "count"),
    [
        ("shape", [header(msgpack.packb(FIELDS[:7]))], 0),
        ("shape", [header(generation="1")], 0),
        ("shape", [header(generation=True)], 0),
        ("shape", [header(generation=-1)], 0),
        ("shape", [header(chain=bytes(31))], 0),
        ("shape", [header(state=bytes(63))], 0),
        ("shape", [header(extensions=b"\xc0")], 0),
        ("length", [header(voters=b"\xc0\xc0")], 0),
        ("encoding", [header(voters=b"\xc1")], 0),
        ("length", [header(extensions=b"\x80\x80")], 0),
        ("length", [finish_frame(header()[:19] + b"\x09" + header()[20:-4])], 0),
        ("name", [header(offset=8)], 0),
        ("name", [header(epoch=4)], 0),
        ("block", [header(state=state_of()), block()], 0),
        ("block", [header(state=state_of(NO_OP, NO_OP)), block(NO_OP), block(NO_OP)], 2),
        ("block", [header(state=state_of(LONG, LONG, NO_OP)), block(LONG, LONG, NO_OP)], 3),
        ("records", [header(state=state_of(NO_OP)), block(NO_OP, count=2)], 2),
        ("records", [header(), block(msgpack.packb([9_999]))], 1),
        ("footer", [header(state=state_of(NO_OP)), block(NO_OP)], 2),
        ("state", [header(state=state_of(NO_OP)[32:] * 2), block(NO_OP)], 1),
        ("magic", [header(), header()], 0),
    ],
)
def test_a_checkpoint(kind: str, frames: list[bytes], count: int, tmp_path: Path) -> None:
    path = checkpoint(tmp_path, *frames, records=count)
    with pytest.raises(Bad) as caught:
        read_checkpoint(path, skip_crc=False)
    assert caught.value.kind == kind, str(caught.value)


def test_a_checkpoint_ends_behind_its_footer(tmp_path: Path) -> None:
    path = checkpoint(tmp_path, header(), records=0, behind=b"\0")
    with pytest.raises(Bad, match="behind the footer") as caught:
        read_checkpoint(path, skip_crc=False)
    assert caught.value.byte == path.stat().st_size - 1
    for size in (0, len(header())):
        path.write_bytes(header()[:size])
        with pytest.raises(Bad) as caught:
            read_checkpoint(path, skip_crc=False)
        assert (caught.value.kind, caught.value.byte) == ("truncated", size)


@pytest.mark.parametrize("size", [0, 11, 71, 4097, 2**32 - 1])
def test_a_length_that_cannot_be(size: int, tmp_path: Path) -> None:
    world = small(1)
    (frame, *_) = frames_of(b"".join(world.files[world.checkpoints[0]]))
    lying = frame[:8] + min(size, 2**32 - 1).to_bytes(4, "big") + frame[12:]
    (tmp_path / NAME).write_bytes(lying)
    with pytest.raises(Bad) as caught:
        read_checkpoint(tmp_path / NAME, skip_crc=False)
    assert caught.value.kind in {"length", "crc", "truncated"}


@pytest.mark.parametrize(
    "body", [[], [1, 2, 3, 4, b"\x01" * 56], [1, 2, 3, 4, b"\x02" * 57], [1, 2, 3, 4, "5"], 5]
)
def test_a_manifest_without_a_mark(body: object, tmp_path: Path) -> None:
    packed = msgpack.packb(body)
    head = b"QRTMANI1" + struct.pack("<II", len(packed), crc32c(packed))
    (tmp_path / "manifest").write_bytes(head + packed)
    with pytest.raises(Bad, match="the fifth element"):
        read_manifest(tmp_path / "manifest")
