"""The verifier alone: what it reads, what it refuses, what it says."""

import ast
import json
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import google_crc32c
import msgpack
import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from audit.generated import write_history
from ledger.batch import BatchHeader, Provenance, seal
from ledger.chain import LogMark
from ledger.frame import finish_frame
from ledger.segments import SegmentHeader, parse_segment_header
from metadata.codec import encode_records
from metadata.records import NoOpRecord
from tests.verifier.small_world import Files, Small, forged, laid_out, small, write
from verifier import logberg_verify
from verifier.logberg_verify import Bad, Options, Report, certificate, crc32c, main, unpack, verify

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "verifier" / "logberg_verify.py"
GOLDEN = ROOT / "tests" / "golden"


@pytest.fixture(scope="module")
def world() -> Small:
    return small(1)


def report_of(folder: Path, files: Files, **options: Any) -> Report:
    return verify([write(files, folder)], Options(**options))


def kinds(report: Report) -> list[str]:
    return [bad.kind for bad in report.findings]


# ---- alone --------------------------------------------------------------------------------------


def test_it_imports_nothing_but_the_standard_library() -> None:
    imported = set()
    for node in ast.walk(ast.parse(SOURCE.read_text())):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(str(node.module).split(".")[0])
        elif isinstance(node, ast.Name):
            assert node.id not in {"__import__", "eval", "exec", "compile"}
    assert imported <= sys.stdlib_module_names
    assert "importlib" not in imported


def test_it_runs_where_nothing_is_installed(tmp_path: Path, world: Small) -> None:
    """Isolated, without site-packages, the file copied away from the product."""
    copy = tmp_path / "elsewhere.py"
    copy.write_bytes(SOURCE.read_bytes())
    folder = write(world.files, tmp_path / "node")
    command = [sys.executable, "-I", "-S", str(copy), str(folder)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    offset, head = world.head(world.batches[-1].end)
    assert f"{offset}:{head.hex()}" in done.stdout


# ---- its parts against others -------------------------------------------------------------------


@given(st.binary(max_size=100))
def test_its_crc_is_that_of_others(data: bytes) -> None:
    assert crc32c(data) == google_crc32c.value(data)


def test_its_crc_is_that_of_the_standard() -> None:
    assert crc32c(b"123456789") == 0xE3069283
    assert crc32c(bytes(32)) == 0x8A9136AA


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.sampled_from([0, 127, 128, 255, 256, 65535, 65536, 2**32 - 1, 2**32, -32, -33, -128, -129])
    | st.sampled_from([-32768, -32769, -(2**31), -(2**31) - 1])
    | st.floats(allow_nan=False)
    | st.text(max_size=40)
    | st.binary(max_size=300),
    lambda inner: st.lists(inner, max_size=20),
    max_leaves=20,
)


@given(VALUES)
def test_what_others_pack_it_unpacks(value: object) -> None:
    packed = msgpack.packb(value)
    assert unpack(packed, 0) == (value, len(packed))
    for end in range(len(packed)):
        with pytest.raises(Bad):
            unpack(packed[:end], 0)


@settings(max_examples=500)
@given(st.binary(min_size=1, max_size=12))
def test_what_it_unpacks_is_canonical(data: bytes) -> None:
    """Packing what it read gives the same bytes again; all else it refuses."""
    try:
        value, end = unpack(data, 0)
    except Bad:
        return
    if isinstance(value, tuple):
        try:
            value = dict(zip(value[::2], value[1::2], strict=True))
        except TypeError:
            return
        if len(value) * 2 != len(unpack(data, 0)[0]):
            return
    assert msgpack.packb(value) == data[:end]


OTHER_FORMS = """
    cc7f cd00ff ce0000ffff cf00000000ffffffff d0e0 d000 d1ff80 d1007f d2ffff8000 d3ffffffff80000000
    d3 d900 da00ff db0000ffff c50001 c600000001 dc0001 dd00000001 de0001c0c0 c1 c70000 d40000 d500
    ca00000000 a1ff 9180 cb00
"""


@pytest.mark.parametrize("form", re.findall(r"\w+", OTHER_FORMS))
def test_other_forms_are_refused(form: str) -> None:
    with pytest.raises(Bad):
        unpack(bytes.fromhex(form), 0)


def test_depth_ends() -> None:
    with pytest.raises(Bad, match="nesting"):
        unpack(b"\x91" * 100_000, 0)


def test_it_knows_the_kinds_of_the_page() -> None:
    page = (ROOT / "docs" / "format" / "records.md").read_text()
    rows = re.findall(r"^\| \d+ \| \d+ \| (\d+) \| \[\w+\]\S* \| (.*) \|$", page, re.MULTILINE)
    assert len(rows) > 30
    assert {int(kind) for kind, _ in rows} == logberg_verify._IN_CHECKPOINT
    log = {int(kind) for kind, says in rows if "in snapshots only" not in says}
    assert log == logberg_verify._IN_LOG


# ---- what is right ------------------------------------------------------------------------------


def test_the_golden_ledger_is_right_and_its_made_up_state_hash_is_not() -> None:
    vectors = json.loads((GOLDEN / "ledger.json").read_text())
    report = verify([GOLDEN / "ledger-format-1"], Options(whole=True))
    assert kinds(report) == ["state"]
    (replica,) = report.replicas
    assert replica.cluster == vectors["cluster_id"]
    assert replica.end is not None
    assert replica.end.hash.hex() == vectors["checkpoint"]["chain_hash"]
    assert (replica.batches, replica.records) == (5, vectors["checkpoint"]["offset"])


def test_the_golden_batches_are_right_one_by_one() -> None:
    for batch in json.loads((GOLDEN / "ledger.json").read_text())["batches"]:
        before = logberg_verify.Mark(
            *struct.unpack(">qqq32s", bytes.fromhex(batch["mark_before"])[1:])
        )
        behind = logberg_verify.judge_batch(bytes.fromhex(batch["encoded"]), before)
        assert behind.hash.hex() == batch["hash"]
        assert behind.offset == batch["base_offset"] + batch["count"]


def test_a_realistic_history_is_right(tmp_path: Path) -> None:
    history = write_history(
        tmp_path,
        records=3_000,
        seed=3,
        replicas=3,
        checkpoint_every=1_000,
        segment_bytes=80_000,
        open_transaction=True,
    )
    report = verify(history.nodes, Options(whole=True, heads=((history.log_end, history.head),)))
    assert report.findings == []
    for replica in report.replicas:
        assert (replica.batches, replica.records) == (history.batches, history.log_end)
        assert [one.mark.offset for one in replica.checkpoints] == list(history.checkpoints)
        sources = [Path(one.source).name for one in replica.confirmed]
        assert "manifest" in sources
        assert len(sources) == len(history.checkpoints) + 2
        assert replica.notes == []


def test_segments_may_lie_in_the_archive_or_in_the_folder_itself(
    tmp_path: Path, world: Small
) -> None:
    moved = {name.replace("log/", "archive/"): world.files[name] for name in world.segments[:2]}
    kept = {name: world.files[name] for name in world.files if name not in world.segments[:2]}
    assert report_of(tmp_path / "moved", moved | kept, whole=True).findings == []
    flat = {name.partition("/")[2]: frames for name, frames in world.files.items()}
    report = report_of(tmp_path / "flat", flat, whole=True)
    assert report.findings == []
    assert len(report.replicas[0].checkpoints) == len(world.checkpoints)


def test_a_segment_that_is_there_twice_is_said(tmp_path: Path, world: Small) -> None:
    """Somebody who moved it to another disk may have left the old file."""
    name = world.segments[1]
    files = world.files | {name.replace("log", "archive", 1): world.files[name]}
    report = report_of(tmp_path, files, whole=True)
    assert report.findings == []
    assert "twice" in report.replicas[0].notes[0]


def _only(world: Small, name: str, **changes: Any) -> Files:
    """A history that begins with one segment, whose header says something else."""
    header, _ = parse_segment_header(world.files[name][0])
    previous = msgspec.structs.replace(header.previous, **changes)
    frames = [SegmentHeader(world.cluster, previous).encode(), *world.files[name][1:]]
    return {name: frames}


@pytest.mark.parametrize("name", ["log/7.log", "log/a.log", f"log/{8:021}.log", f"log/{8:020}.log"])
def test_a_segment_has_the_name_of_its_offset(name: str, tmp_path: Path, world: Small) -> None:
    report = report_of(tmp_path, {name: world.files[world.segments[1]]})
    assert kinds(report) == ["name"]
    assert report.findings[0].file == str(tmp_path / name)


@pytest.mark.parametrize(
    ("changes", "right"),
    [({}, True), ({"epoch": 0}, True), ({"epoch": -1}, False), ({"timestamp_ms": -1}, False)],
)
def test_numbers_of_a_header_are_none_below_zero(
    changes: dict[str, int], right: bool, tmp_path: Path, world: Small
) -> None:
    report = report_of(tmp_path, _only(world, world.segments[1], **changes))
    assert kinds(report) == ([] if right else ["header"])


def test_a_header_that_does_not_follow(tmp_path: Path, world: Small) -> None:
    name = world.segments[1]
    for changes in ({"head": bytes(32)}, {"epoch": 0}, {"timestamp_ms": 0}):
        report = report_of(tmp_path, world.files | _only(world, name, **changes))
        assert kinds(report)[0] == "header"
        assert report.findings[0].file == str(tmp_path / name)


def test_epoch_and_time_do_not_fall_across_a_gap(tmp_path: Path, world: Small) -> None:
    middle, after = world.segments[1:3]
    marker = {f"log/{middle[4:24]}-{after[4:24]}.gap": []}
    files = {name: world.files[name] for name in world.segments if name != middle}
    for changes in ({"epoch": 0}, {"timestamp_ms": 0}):
        forged_files = files | marker | _only(world, after, **changes)
        assert kinds(report_of(tmp_path, forged_files))[0] == "header"


# ---- ends, gaps, manifests ----------------------------------------------------------------------


def test_an_unfinished_tail_is_a_note_only_when_a_node_runs(tmp_path: Path, world: Small) -> None:
    last, files = world.segments[-1], world.copy()
    frame = files[last][-1]
    for size in {1, 11, 12, 13, *range(14, len(frame), 29), len(frame) - 1}:
        files[last][-1] = frame[:size]
        assert kinds(report_of(tmp_path, files)) == ["truncated"]
        report = report_of(tmp_path, files, live=True)
        assert report.findings == []
        assert "unfinished" in report.replicas[0].notes[0]


def test_a_node_that_just_began_a_segment_is_live(tmp_path: Path, world: Small) -> None:
    last, files = world.segments[-1], world.copy()
    for one in world.checkpoints:
        if int(one[12:32]) > int(last[4:24]):
            del files[one]
    header = files[last][0]
    for size in {0, 1, 11, 12, 40, len(header) - 1, len(header)}:
        files[last] = [header[:size]]
        assert kinds(report_of(tmp_path, files)) == ["truncated"]
        assert kinds(report_of(tmp_path, files, live=True)) == []


def test_only_the_last_segment_may_be_unfinished(tmp_path: Path, world: Small) -> None:
    name, files = world.segments[0], world.copy()
    files[name][-1] = files[name][-1][:-1]
    report = report_of(tmp_path, files, live=True)
    assert (kinds(report), report.findings[0].file) == (["truncated"], str(tmp_path / name))


def test_a_length_that_lies_is_no_unfinished_tail(tmp_path: Path, world: Small) -> None:
    """Otherwise a batch with a larger length would hide all later ones in a live log."""
    last, files = world.segments[-1], world.copy()
    frame = files[last][1]
    files[last][1] = frame[:8] + (900_000).to_bytes(4, "big") + frame[12:]
    report = report_of(tmp_path, files, live=True)
    assert kinds(report)[0] == "length"
    assert report.findings[0].byte == len(files[last][0]) + 8


def test_a_flipped_byte_at_the_end_of_a_live_log_is_found(tmp_path: Path, world: Small) -> None:
    last, files = world.segments[-1], world.copy()
    frame = bytearray(files[last][-1])
    frame[100] ^= 1
    files[last][-1] = bytes(frame)
    assert kinds(report_of(tmp_path, files, live=True)) == ["crc"]
    # What skipping CRCs costs: the last batch is covered by nothing else.
    assert kinds(report_of(tmp_path, files, skip_crc=True)) in ([], ["encoding"])


def test_a_marked_gap_is_said_and_not_held_against_a_node(tmp_path: Path, world: Small) -> None:
    middle, after = world.segments[1:3]
    files = world.copy()
    del files[middle]
    assert kinds(report_of(tmp_path, files))[0] == "gap"
    marker = f"log/{middle[4:24]}-{after[4:24]}.gap"
    report = report_of(tmp_path, files | {marker: []})
    assert report.findings == []
    assert report.replicas[0].gaps == [(int(middle[4:24]), int(after[4:24]))]
    assert kinds(report_of(tmp_path, files, whole=True)) == ["gap"]
    within = next(one for one in world.batches if one.file == middle)
    assert kinds(report_of(tmp_path, files, heads=(world.head(within.end),))) == ["head"]


def test_a_node_without_its_first_history_says_from_where(tmp_path: Path, world: Small) -> None:
    files = world.copy()
    del files[world.segments[0]]
    report = report_of(tmp_path, files)
    assert report.findings == []
    assert report.replicas[0].first.offset == int(world.segments[1][4:24])
    offsets = certificate(report.replicas[0])["offsets"]
    assert offsets == f"{int(world.segments[1][4:24])} to {world.batches[-1].end}"
    assert kinds(report_of(tmp_path, files, heads=(world.head(world.batches[0].end),))) == ["head"]


def test_a_manifest_knows_how_far_the_ledger_goes(tmp_path: Path, world: Small) -> None:
    history = write_history(tmp_path, records=200, seed=1, checkpoint_every=0, brokers=3, topics=3)
    (node,) = history.nodes
    assert verify([node], Options()).findings == []
    (segment,) = (node / "log").iterdir()
    content = segment.read_bytes()
    segment.write_bytes(content[: content.rindex(b"QRTB")])
    (bad,) = verify([node], Options(live=True)).findings
    assert (bad.kind, bad.file, bad.offset) == ("head", str(node / "manifest"), history.log_end)
    segment.write_bytes(content)
    manifest = (node / "manifest").read_bytes()
    for position in range(len(manifest)):
        flipped = bytearray(manifest)
        flipped[position] ^= 1
        (node / "manifest").write_bytes(bytes(flipped))
        (bad,) = verify([node], Options(skip_crc=True)).findings
        assert (bad.kind, bad.what) == ("manifest", "magic, length and CRC"), position


# ---- several folders ----------------------------------------------------------------------------


def test_a_shorter_replica_is_no_worse(tmp_path: Path, world: Small) -> None:
    files = {name: world.files[name] for name in world.segments[:-1]}
    folders = [write(world.files, tmp_path / "one"), write(files, tmp_path / "two")]
    assert verify(folders, Options()).findings == []
    assert verify(folders[::-1], Options()).findings == []


def test_of_two_that_differ_the_second_is_held_against_the_first(
    tmp_path: Path, world: Small
) -> None:
    batch = world.batches[10]
    header = msgspec.structs.replace(batch.batch.header, timestamp_ms=1 << 50)
    files = laid_out(world, forged(world, 10, seal(header, batch.batch.records))[:11])
    folders = [write(world.files, tmp_path / "one"), write(files, tmp_path / "two")]
    (bad,) = verify(folders, Options()).findings
    assert (bad.kind, bad.offset) == ("differs", batch.base)
    assert bad.file == str(folders[1] / batch.file)
    assert str(folders[0] / batch.file) in bad.what


def test_batches_that_never_begin_together_are_seen_to_differ(tmp_path: Path, world: Small) -> None:
    """A ledger that begins later and is cut into other batches shares no base with the true one."""
    end = world.batches[-1].end
    one = world.batches[20].base + 1
    mark = LogMark(log_end=one, epoch=1, timestamp_ms=1 << 49, head=bytes(32))
    assert world.batches[20].end > one
    header = BatchHeader(one, end - 1 - one, 1, 1 << 49, Provenance(), mark.head)
    batch = seal(header, encode_records([NoOpRecord()] * header.count))
    name = f"log/{one:020}.log"
    files = {name: [SegmentHeader(world.cluster, mark).encode(), batch.encoded]}
    folders = [write(world.files, tmp_path / "one"), write(files, tmp_path / "two")]
    for order in (folders, folders[::-1]):
        (bad,) = verify(order, Options()).findings
        assert bad.kind == "differs"
        assert {str(order[0]), str(order[1])} <= {
            str(Path(place).parents[1]) for place in (bad.file, bad.what.partition(", by ")[2])
        }


def test_folders_of_two_clusters_do_not_belong_together(tmp_path: Path, world: Small) -> None:
    other = small(1, "4L6g3nShT-eMCtK--X86sw")
    folders = [write(one.files, tmp_path / one.cluster) for one in (world, other)]
    assert "cluster" in kinds(verify(folders, Options()))


# ---- the command --------------------------------------------------------------------------------


def test_what_the_command_says(
    tmp_path: Path, world: Small, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = write(world.files, tmp_path / "node")
    offset, head = world.head(world.batches[-1].end)
    (tmp_path / "heads").write_text(f"{offset}:{head.hex()}\n\n")
    assert main([str(folder), "--heads", str(tmp_path / "heads"), "--skip-crc"]) == 0
    said = capsys.readouterr().out
    assert f"{offset} by a head written down earlier" in said
    assert "CRCs were skipped" in said
    assert "Not proved" in said
    assert main([str(folder), "--head", f"{offset}:{'0' * 64}", "--json"]) == 1
    whole = json.loads(capsys.readouterr().out)
    assert whole["right"] is False
    (bad,) = whole["findings"]
    assert (bad["kind"], bad["offset"], bad["found"]) == ("head", offset, head.hex())
    name = world.segments[1]
    content = bytearray((folder / name).read_bytes())
    content[500] ^= 1
    (folder / name).write_bytes(content)
    assert main([str(folder)]) == 1
    said = capsys.readouterr().out
    assert re.search(r"^NOT RIGHT. Bad places: 1,", said, re.MULTILINE)
    assert re.search(
        rf"^\[\w+\] {re.escape(str(folder / name))}, byte \d+, offset \d+: ", said, re.MULTILINE
    )
    assert "head  " not in said


@pytest.mark.parametrize(
    "arguments", [["--head", "7"], ["--head", "7:abc"], ["--heads", "nowhere"], ["nowhere"], []]
)
def test_what_cannot_be_told(
    arguments: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        main([*arguments, str(tmp_path)])
    assert left.value.code == 2
    assert "error: " in capsys.readouterr().err


def test_a_newer_format_is_refused_and_said_to_be_one(tmp_path: Path, world: Small) -> None:
    name, files = world.segments[1], world.copy()
    body = bytearray(files[name][2][:-4])
    body[5] = 2
    files[name][2] = finish_frame(bytes(body))
    (bad,) = (bad for bad in report_of(tmp_path, files).findings if bad.kind == "format")
    assert "newer release" in str(bad)
    assert "expected 1, 0, found 2, 0" in str(bad)
