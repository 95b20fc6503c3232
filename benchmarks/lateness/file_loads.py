"""The loads of `make lateness` that read a controller's files: checkpoints, segments, the tree."""

import asyncio

from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import Stage

_MIB = 1 << 20


async def _snapshot(stage: Stage) -> None:
    """All ranges of the newest checkpoint, with the list of all before each."""
    name = (await stage.json("/v1/status"))["newestSnapshot"]
    assert name is not None, "no checkpoint was written"
    position = 0
    for _ in stage.going_on():
        await stage.json("/v1/snapshots")
        status, data = await stage.ask(
            "GET",
            f"/v1/snapshots/{name}",
            headers={"range": f"bytes={position}-{position + 8 * _MIB}"},
            keep=True,
        )
        assert status == 206, status
        position = position + len(data) if data else 0


async def _segments(stage: Stage) -> None:
    """All ranges of all segments, as a backup reads them, with the list before each."""
    base = position = 0
    for _ in stage.going_on():
        listed = (await stage.json("/v1/segments"))["segments"]
        status, data = await stage.ask(
            "GET",
            f"/v1/segments/{base}",
            headers={"range": f"bytes={position}-{position + 8 * _MIB}"},
            keep=True,
        )
        assert status == 206, status
        position += len(data)
        if not data:
            later = [each["baseOffset"] for each in listed if each["baseOffset"] > base]
            base, position = min(later, default=0), 0


async def _archived(stage: Stage) -> None:
    """The leader is asked again and again. All segments stay, as the stage's settings say."""
    for _ in stage.going_on():
        status, data = await stage.ask("POST", "/v1/archive/run", keep=True)
        assert status == 200, (status, data)


async def _proofs(stage: Stage) -> None:
    """Tiles and bundles that are whole, and the longest batch proofs, from the beginning on."""
    while True:
        status, head = await stage.ask("GET", "/checkpoint", keep=True)
        if status == 200:
            break
        # The first head is signed after some seconds.
        await asyncio.sleep(1)
    size = int(head.split(b"\n")[1])
    for turn in stage.going_on():
        number = turn % max(1, size // 256)
        width = "" if size >= 256 else f".p/{size}"
        for path in (
            "/checkpoint",
            f"/tile/0/{number % 1000:03d}{width}",
            f"/tile/entries/{number % 1000:03d}{width}",
            f"/v1/proofs/0?olderSize={1 + turn % size}",
        ):
            status, _ = await stage.ask("GET", path)
            assert status == 200, (path, status)


FILE_LOADS = (
    Load("a snapshot by ranges", ("list_snapshots", "read_snapshot"), _snapshot),
    Load("the log by ranges", ("list_segments", "read_segment"), _segments),
    Load("looks for segments to archive", ("run_archive",), _archived),
    Load("heads and proofs", ("read_signed_head", "read_tile", "make_proof"), _proofs),
)
