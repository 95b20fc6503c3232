"""The console says why a thing is as it is, as `logberg explain` does from the whole state."""

import json
from pathlib import Path

import pytest

from audit.console.console import Console
from audit.console.log_source import FileSource
from audit.index.partial_image import EXPLAINED
from audit.places.replicas import one_replica
from audit.questions.state_words import TABLE_OF, name_of
from logberg.commands.audit.console_reasons import reasons
from metadata.image import MetadataImage
from metadata.records import (
    BrokerRegistrationChangeRecord,
    EntryKind,
    EntryRecord,
    FencingChange,
    PartitionRecord,
    RegisterBrokerRecord,
    SessionRecord,
    TopicRecord,
)
from runtime.http.requests import Request
from tests.histories import HistoryBatch
from tests.unit.audit.nodes import write_node

TOPIC, SESSION = (bytes(15) + bytes([number]) for number in (1, 2))


def opened(folder: Path, node: Path) -> Console:
    source = FileSource(lambda: one_replica(str(node)))
    console = Console(source, folder / "cache", now=lambda: 0.0, explain=reasons)
    console.keep_up(lambda: False)
    return console


def ask(console: Console, table: str, name: str, at: int) -> tuple[int, dict]:
    query = {"table": table, "name": name, "at": str(at)}
    reply = console.answer(Request("GET", "/api/explain", query=query))
    return reply.status, json.loads(reply.body)


def whole(image: MetadataImage, table: str, name: str) -> list[dict[str, str]]:
    """What the whole state says."""
    return [{"about": one.about, "says": one.says} for one in reasons(image, table, name)]


@pytest.mark.parametrize("seed", range(2))
def test_the_reasons_are_those_of_the_whole_state(seed: int, tmp_path: Path) -> None:
    images = write_node(tmp_path / "node", 160, seed, checkpoint_every=200)
    console = opened(tmp_path, tmp_path / "node")
    told = dict.fromkeys(EXPLAINED, 0)
    for image in images[7::11]:
        if image.transaction is not None:
            continue
        for table in EXPLAINED:
            for key in image.table(TABLE_OF[table]):
                name = name_of(table, key, image)
                status, said = ask(console, table, name, image.offset)
                assert status == 200, said
                assert said == {"isKnown": True, "findings": whole(image, table, name)}, name
                told[table] += bool(said["findings"])
    assert all(told.values()), told


def test_a_broker_that_may_not_stop_a_partition_without_leader_and_a_lock(tmp_path: Path) -> None:
    stop = BrokerRegistrationChangeRecord(1, 0, in_controlled_shutdown=1)
    fence = BrokerRegistrationChangeRecord(1, 0, fenced=FencingChange.FENCE)
    registered = RegisterBrokerRecord(1, bytes(15) + b"\7", 0, (), (), None, fenced=False)
    session = SessionRecord(SESSION, 9_000, "User:ana", "cli", 3)
    lock = EntryRecord(EntryKind.LOCK, "deploys", "ana/1", SESSION, b"", False, 4, 4, 4)
    batches = (
        (registered, TopicRecord("orders", TOPIC)),
        (PartitionRecord(0, TOPIC, (1, 2), (1,), (), (), 1, 0, 0),),
        (session, lock),
        (stop,),
        (fence,),
    )
    history, base = [], 0
    for number, records in enumerate(batches):
        history.append(HistoryBatch(base, 1, 1_000 * (number + 1), tuple(records)))
        base += len(records)
    write_node(tmp_path / "node", written=history)
    console = opened(tmp_path, tmp_path / "node")

    def says(table: str, name: str, at: int) -> str:
        status, said = ask(console, table, name, at)
        assert status == 200, said
        return " | ".join(one["says"] for one in said["findings"])

    assert says("brokers", "1", 2) == ""
    assert "it still leads 1 partitions" in says("brokers", "1", 6)
    assert "it is fenced" in says("brokers", "1", 7)
    assert "broker 2 is not in sync: broker 2 is not registered" in says(
        "partitions", "orders-0", 3
    )
    assert says("topics", "orders", 3).startswith("orders-0: broker 2 is not in sync")
    assert "ana/1 holds it: token 4, session" in says("entries", "lock:deploys/ana/1", 7)


def test_what_nobody_can_explain_and_what_is_not_there(tmp_path: Path) -> None:
    ends = [image.offset for image in write_node(tmp_path / "node", 30, 1)]
    console = opened(tmp_path, tmp_path / "node")
    assert ask(console, "configs", "topic:x", 5) == (200, {"isKnown": False, "findings": []})
    status, said = ask(console, "topics", "nobody", 5)
    assert status == 400
    end = min(each for each in ends if each > 5)
    assert said["message"] == f"'nobody' of the table topics is not there at offset {end}"
