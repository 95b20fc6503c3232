"""Brokers' metadata logs are held to the projection of our ledger, byte by byte."""

from pathlib import Path

import pytest

from audit.places.replicas import one_replica
from kafka_listener.projection.clear_values import ClearValues
from logberg.kafka.metadata_logs import (
    METADATA_LOG,
    DifferentLogError,
    compare_brokers,
    digest_of,
    projected,
    voters_of,
    write_log,
)
from tests.unit.audit.nodes import write_node


@pytest.fixture(scope="module")
def node(tmp_path_factory) -> Path:
    folder: Path = tmp_path_factory.mktemp("projected") / "controller-1"
    folder.mkdir()
    write_node(folder, batches=80)
    return folder


def broker(folder: Path, **segments: bytes) -> Path:
    log = folder / METADATA_LOG
    log.mkdir(parents=True)
    for name, content in segments.items():
        (log / f"{int(name[1:]):020d}.log").write_bytes(content)
    return folder


def test_the_same_log_has_the_same_digest_wherever_its_segments_end(node, tmp_path) -> None:
    other = tmp_path / "controller-2"
    other.mkdir()
    write_node(other, batches=80, segment_bytes=2_048)
    first, second = (one_replica(str(each)).reader() for each in (node, other))
    assert digest_of(first, None) == digest_of(second, None)
    assert digest_of(first, None).end <= first.log_end


def test_brokers_may_lag_and_have_several_segments(node, tmp_path) -> None:
    batches = list(projected(one_replica(str(node)).reader(), ClearValues(None)))
    half = len(batches) // 2
    first = b"".join(batch.data for batch in batches[:half])
    rest = b"".join(batch.data for batch in batches[half:])
    middle = batches[half].base_offset
    brokers = {
        1: broker(tmp_path / "whole", s0=first + rest),
        2: broker(tmp_path / "lags", s0=first),
        3: broker(tmp_path / "two", **{"s0": first, f"s{middle}": rest}),
        4: broker(tmp_path / "snapshot", **{f"s{middle}": rest}),
        5: broker(tmp_path / "empty", s0=b""),
    }
    end = batches[-1].end_offset
    ends = compare_brokers(iter(batches), brokers)
    assert ends == {1: end, 2: middle, 3: end, 4: end, 5: 0}


def test_a_bit_that_differs_is_found(node, tmp_path) -> None:
    batches = list(projected(one_replica(str(node)).reader(), ClearValues(None)))
    whole = bytearray(b"".join(batch.data for batch in batches))
    at = len(batches[0].data) + len(batches[1].data) // 2
    whole[at] ^= 1
    folder = broker(tmp_path, s0=bytes(whole))
    offset = batches[1].base_offset
    with pytest.raises(DifferentLogError, match=f"of broker 7 differs from offset {offset} on"):
        compare_brokers(iter(batches), {7: folder})


def test_a_log_that_is_cut_in_a_batch_is_found(node, tmp_path) -> None:
    batches = list(projected(one_replica(str(node)).reader(), ClearValues(None)))
    whole = b"".join(batch.data for batch in batches)
    with pytest.raises(DifferentLogError, match="of broker 7 differs"):
        compare_brokers(iter(batches), {7: broker(tmp_path, s0=whole[:-1])})


def test_a_log_that_goes_on_is_found(node, tmp_path) -> None:
    batches = list(projected(one_replica(str(node)).reader(), ClearValues(None)))
    whole = b"".join(batch.data for batch in batches)
    folder = broker(tmp_path, s0=whole + batches[-1].data)
    with pytest.raises(DifferentLogError, match="of broker 7 goes on after offset"):
        compare_brokers(iter(batches), {7: folder})


def test_a_broker_without_a_log_is_named(node, tmp_path) -> None:
    with pytest.raises(DifferentLogError, match="broker 7 has no metadata log"):
        compare_brokers(iter(()), {7: tmp_path})


def test_a_written_log_is_what_a_broker_would_have(node, tmp_path, monkeypatch) -> None:
    monkeypatch.setattr("logberg.kafka.metadata_logs.SEGMENT_BYTES_MAX", 2_000)
    reader = one_replica(str(node)).reader()
    written = write_log(reader, ClearValues(None), tmp_path)
    batches = list(projected(reader, ClearValues(None)))
    assert written.end == batches[-1].end_offset
    assert len(list(written.folder.glob("*.log"))) > 2
    assert compare_brokers(iter(batches), {7: tmp_path}) == {7: written.end}
    assert written.folder.stat().st_mode & 0o077 == 0
    with pytest.raises(FileExistsError):
        write_log(reader, ClearValues(None), tmp_path)


def test_the_voters_are_those_of_the_last_record(node) -> None:
    reader = one_replica(str(node)).reader()
    found = voters_of(reader)
    assert found
    assert all(len(voter.directory_id) == 22 for voter in found)
