"""PySyncObj's own core starts, compacts and restarts on our journal and manifest."""

import logging
import random

import pysyncobj.syncobj as core_module
import pytest
from pysyncobj import SyncObj, SyncObjConf
from pysyncobj.transport import Transport

from quorum.api import Voter
from quorum.journal import RaftJournal
from quorum.journal.manifest import JournalManifest, encode_manifest
from quorum.journal.manifest_store import ManifestStore
from quorum.raft.core_dump import CoreDump, replaced_os
from quorum.raft.core_journal import CoreJournal
from quorum.raft.core_node import CoreNode
from tests.unit.quorum.journal.rig import Rig, entries, manifest_at

ME = CoreNode(1, b"\1" * 16)


class NoTransport(Transport):
    """A single node talks to nobody."""

    def __init__(self) -> None:
        super().__init__(None, None, [])

    @property
    def ready(self) -> bool:
        return True

    def waitReady(self) -> None:
        pass

    def addNode(self, node) -> None:
        pass

    def dropNode(self, node) -> None:
        pass

    def send(self, node, message) -> bool:
        return False

    def destroy(self) -> None:
        pass


class Core(SyncObj):
    """Remembers what was applied."""

    def __init__(self, journal: RaftJournal, store: ManifestStore) -> None:
        self.applied: list[bytes] = []
        super().__init__(
            ME,
            [],
            SyncObjConf(
                autoTick=False,
                journalFile=journal,
                fullDumpFile=store,
                dynamicMembershipChange=True,
                logCompactionMinEntries=1 << 60,
                logCompactionMinTime=1 << 60,
                raftMinTimeout=0.4,
                raftMaxTimeout=0.5,
            ),
            transport=NoTransport(),
            nodeClass=CoreNode,
        )

    def _SyncObj__doApplyCommand(self, command: bytes) -> None:
        self.applied.append(command)


@pytest.fixture
def clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    now = [1000.0]
    # The guard's own stand-ins are for nodes that the guard runs.
    monkeypatch.setattr(core_module, "random", random.Random(1))
    monkeypatch.setattr(core_module, "createJournal", CoreJournal)
    monkeypatch.setattr(core_module, "Serializer", CoreDump)
    monkeypatch.setattr(core_module, "os", replaced_os)
    monkeypatch.setattr(core_module, "monotonicTime", lambda: now[0])
    return now


def store_of(rig: Rig) -> ManifestStore:
    store = rig.store()
    store.load()
    return store


def tick(core: Core, clock: list[float], rig: Rig, count: int = 5) -> None:
    for _ in range(count):
        clock[0] += 0.6
        core.doTick(0)
        rig.settle(0.1)


def lead_and_write(core: Core, clock: list[float], rig: Rig, commands: list[bytes]) -> None:
    tick(core, clock, rig)
    assert core._isLeader()
    for command in commands:
        core._applyCommand(command, None)
        tick(core, clock, rig, 1)
    tick(core, clock, rig)


def test_the_core_restarts_and_compacts_on_our_files(
    clock: list[float], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING)
    rig = Rig(segment_bytes=500)
    store = store_of(rig)
    journal = rig.open(store.current)
    core = Core(journal, store)
    lead_and_write(core, clock, rig, [b"\x00%d" % i for i in range(40)])
    assert core.applied[-1] == b"\x0039"
    term = journal.term
    assert journal.voted_for == ME.id
    journal.sync()
    rig.settle()

    mark = manifest_at(journal, 30)
    store.offer(mark, lambda _: None)
    tick(core, clock, rig, 1)
    rig.settle()
    tick(core, clock, rig, 1)
    assert journal[0] == mark.first
    assert journal[1] == mark.second
    kept = entries(journal)
    rig.settle()

    rig.lose_power()
    store = store_of(rig)
    assert store.current == mark
    journal = rig.open(store.current)
    assert entries(journal) == kept
    core = Core(journal, store)
    core.doTick(0)
    assert entries(journal) == kept
    tick(core, clock, rig)
    assert core.applied[: len(kept) - 2] == [entry[0] for entry in kept[2:]]
    assert journal.term == term + 1
    assert caplog.records == []


def test_the_core_takes_an_installed_manifest(clock: list[float]) -> None:
    rig = Rig()
    store = store_of(rig)
    journal = rig.open()
    core = Core(journal, store)
    core.doTick(0)
    other = CoreNode(2, b"\2" * 16)
    far = JournalManifest(
        cluster_id="cluster-a",
        first=(b"\x00far", 499, 7),
        second=(b"\x00further", 500, 7),
        mark_data=b"mark",
        voters=(Voter(1, ME.directory_id, "", 0), Voter(2, other.directory_id, "", 0)),
        directory_id=journal.directory_id,
        journal_position=journal.durable_position,
    )
    store.install(far, lambda _: None)
    rig.settle()
    core._SyncObj__onMessageReceived(
        other,
        {
            "type": "append_entries",
            "term": 7,
            "commit_index": 500,
            "serialized": (encode_manifest(far), True, True),
        },
    )
    assert entries(journal) == [far.first, far.second]
    assert core.raftLastApplied == 500
    assert [node.id for node in core.otherNodes] == [other.id]
    rig.lose_power()
    again = rig.open(far)
    assert entries(again) == [far.first, far.second]
    assert again.damage == ""
