"""The invariants of a cluster, checked after every event and at the end.

docs/simulation.md defines I1 to I25. Here: I4 to I6, I8 to I10, I13 and I14, of the cluster.
`administrators` and `answers` check I7, the answers to administrators; `carriers` checks I15, the
principals; `replicas` checks I16, leaders and ISRs, `movers` I17, reassignments,
`broker_leases` I19, who serves, `silent_brokers` I20, who is fenced, and `session_clients` and
`coordination_fold` I21, who holds locks; `bridging` I22, who leads; `kafka_observers` I23, the log
of Kafka's brokers; `voter_requests` I24, who votes; `archiving` I25, what the archive holds.
"""

from collections import Counter
from typing import Any

from broker_agent.publishers import Manifest
from ledger.chain import LogMark
from ledger.reader import LedgerReader
from ledger.verify import verify_ledger
from metadata.codec import decode_records
from metadata.image import EMPTY, MetadataDelta, MetadataImage, image_from_records
from metadata.image.cluster import broker_record
from metadata.records import (
    AbortTransactionRecord,
    BeginEpochRecord,
    Record,
    RegisterBrokerRecord,
    RequestOutcomeRecord,
)
from metadata.steps import finished
from metadata.uuids import uuid_text
from runtime.simulated.world import Process
from snapshots.store import list_checkpoints, load_steps
from tests.simulation.coordination_fold import CoordinationFold

_OF_ADMINISTRATORS = {"CreateTopics", "DeleteTopics", "ChangeVoters"}


class _Follower:
    """A broker's publisher: it sees offsets grow."""

    def __init__(self, invariants: "Invariants", incarnation: Any) -> None:
        self.invariants, self.incarnation = invariants, incarnation

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        world = self.invariants.cluster.world
        if manifest.offset < self.incarnation.offset and not manifest.replaced:
            world.fail(
                f"I6: broker went back from {self.incarnation.offset} to {manifest.offset}", None
            )
        self.incarnation.offset = manifest.offset
        if after.transaction is None and after.state_hash is not None:
            self.invariants.state_at(manifest.offset, after.state_hash.shared, "a broker")


class Invariants:
    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self._heads: dict[int, bytes] = {}
        self.states: dict[int, int] = {}
        self._seen: dict[int, int] = {}
        self._broker_epochs: dict[int, int] = {}
        self.served: set[tuple[int, int]] = set()
        """Broker id and epoch of who ever might serve."""

    def publisher(self, incarnation: Any) -> _Follower:
        return _Follower(self, incarnation)

    def forgot(self, node_id: int) -> None:
        """Its folder was damaged. Nothing here depends on what a folder holds."""

    def controller_started(self, node_id: int) -> None:
        self._seen[node_id] = 0

    def state_at(self, offset: int, shared: int, who: str) -> None:
        if self.states.setdefault(offset, shared) != shared:
            self.cluster.world.fail(f"I4: {who} has another state at offset {offset}", None)

    def after_event(self, process: Process | None) -> None:
        if process is None:
            return
        controller = self.cluster.controllers.get(process.node_id)
        if controller is not None and process.alive:
            self._check_controller(process.node_id, controller)
        if process.node_id >= 100 or self.cluster.combined is not None:
            self._check_serving(process.node_id)

    def _check_controller(self, node_id: int, controller: Any) -> None:
        offset = controller.image.offset
        before = self._seen[node_id]
        if offset == before:
            return
        if offset < before:
            self.cluster.world.fail(f"I6: an image went back from {before} to {offset}", node_id)
        self._seen[node_id] = offset
        image = controller.image
        self.cluster.silent_brokers.look_for_leader(controller)
        self.cluster.leases.committed(controller)
        if image.transaction is None and image.state_hash is not None:
            self.state_at(offset, image.state_hash.shared, f"controller {node_id}")
            self._check_leaders(image, node_id)
            self.cluster.replicas.check(image, node_id)
            self.cluster.unregistering.check(image, node_id)
            self.cluster.session_clients.check(image, node_id)
            self.cluster.importer.check(image, node_id)
        ledger = controller.ledger
        if ledger is not None and ledger.log_end == offset:
            expected = self._heads.setdefault(offset, ledger.head)
            if expected != ledger.head:
                self.cluster.world.fail(f"I4: another chain hash at {offset}", node_id)
        for broker_id, registration in image.cluster.brokers.items():
            epoch = self._broker_epochs.setdefault(broker_id, registration.broker_epoch)
            self._broker_epochs[broker_id] = max(epoch, registration.broker_epoch)

    def _check_leaders(self, image: MetadataImage, node_id: int | None) -> None:
        """At every offset each leader is registered and not fenced."""
        for broker_id, partitions in image.topics.leader_counts.items():
            broker = image.cluster.brokers.get(broker_id)
            if partitions and broker_id >= 0 and (broker is None or broker.fenced):
                self.cluster.world.fail(
                    f"broker {broker_id} leads {partitions} partitions at offset {image.offset}, "
                    f"and is {'not registered' if broker is None else 'fenced'}",
                    node_id,
                )

    def _check_serving(self, host_id: int) -> None:
        """I8: who may serve holds the newest epoch that the log has given to its id."""
        incarnation = self.cluster.incarnation_on(host_id)
        if (
            incarnation is None
            or not incarnation.process.alive
            or incarnation.agent is None
            or incarnation.process.paused
        ):
            return
        self._check_shown(incarnation)
        self.cluster.leases.after_event_of(incarnation)
        if incarnation.agent.may_serve():
            newest = self._broker_epochs.get(incarnation.broker_id, -1)
            self.served.add((incarnation.broker_id, incarnation.agent.broker_epoch))
            if incarnation.agent.broker_epoch < newest:
                self.cluster.world.fail(
                    f"I8: broker {incarnation.broker_id} serves with epoch "
                    f"{incarnation.agent.broker_epoch}, the log has {newest}",
                    host_id,
                )

    def _check_shown(self, incarnation: Any) -> None:
        """I4: whatever the broker is at, its readers have an image that the log has had."""
        image = incarnation.agent.image
        if image is incarnation.shown:
            return
        incarnation.shown = image
        if image.transaction is None and image.state_hash is not None:
            who = f"a reader of broker {incarnation.broker_id}"
            self.state_at(image.offset, image.state_hash.shared, who)

    # -- at the end ---------------------------------------------------------------------------

    def at_the_end(self) -> Counter[str]:
        """Check the logs themselves; returns what was seen, for coverage."""
        cluster = self.cluster
        facts: Counter[str] = Counter()
        effects: Counter[str] = Counter()
        for node_id, controller in cluster.running().items():
            disk = cluster.hosts[node_id].disk()
            report = verify_ledger(disk, live=True)
            if not report.ok:
                cluster.world.fail(f"the ledger does not verify: {report.first_bad}", node_id)
            image, from_offset, found = self._replayed(node_id, disk)
            facts["backfilled" if from_offset == 0 else "history missing"] += 1
            effects = max(effects, found, key=lambda counted: counted.total())
            live = controller.image
            if image.state_hash != live.state_hash or not image.same_state(live):
                cluster.world.fail("I13: the replayed log is not the live image", node_id)
        for request_id, change in cluster.admins.acknowledged.items():
            if effects[request_id] != 1:
                cluster.world.fail(
                    f"I5/I9: {change} is in the log {effects[request_id]} times", None
                )
        twice = [request_id for request_id, times in effects.items() if times > 1]
        if twice:
            cluster.world.fail(f"I9: took effect more than once: {twice}", None)
        facts += cluster.clearers.judge(live.topics.names)
        facts += cluster.large_requests.judge(whole_log=cluster.movers.whole_log)
        facts += cluster.unregistering.counts
        if cluster.shape.first_voters:
            facts += cluster.voter_requests.judge(effects)
        facts += cluster.bridging.counts
        facts += cluster.leases.counts
        facts += cluster.silent_brokers.counts
        return facts + cluster.replicas.judge() + cluster.movers.judge() + cluster.judgement.judge()

    def _check_literal(self, image: MetadataImage, records: list[Any]) -> None:
        """A reader that takes a registration at its word has the registration that holds."""
        for record in records:
            if isinstance(record, RegisterBrokerRecord):
                held = broker_record(image.cluster.brokers[record.broker_id])
                if held != record:
                    self.cluster.world.fail(
                        f"I14: the log says {record}, what holds is {held}", None
                    )

    def _replayed(self, node_id: int, disk: Any) -> tuple[MetadataImage, int, Counter[str]]:
        reader = LedgerReader(disk)
        image, mark = EMPTY, LogMark.beginning(reader.cluster_id)
        if reader.log_start > 0:
            usable = [c for c in list_checkpoints(disk) if c.offset >= reader.log_start]
            loaded = finished(load_steps(disk, reader.cluster_id, usable[0]))
            held = loaded.records()
            head = loaded.header
            image = image_from_records(held, head.offset, head.epoch, head.timestamp_ms)
            mark = head.mark
        began = mark.log_end
        self.cluster.movers.whole_log |= began == 0
        effects: Counter[str] = Counter()
        headers = (batch.header for batch in reader.batches(began, reader.log_end))
        self.cluster.carriers.check_log(node_id, headers)
        coordination = CoordinationFold(
            image.coordination, lambda what: self.cluster.world.fail(what, node_id)
        )
        unit: list[Record] = []
        """The records that become visible together: of a batch, or of a whole transaction."""
        for batch in reader.batches(began, reader.log_end):
            delta = MetadataDelta(image)
            header = batch.header
            records = list(decode_records(batch.records))
            self.cluster.unregistering.note(image, header.provenance.reason, records)
            if isinstance(records[0], BeginEpochRecord):
                unit = []  # A new epoch discards a transaction that is open.
            unit += records
            delta.replay_all(records, header.base_offset)
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
            before, image = image, delta.apply()
            self.cluster.bridging.note(before, records, image)
            if isinstance(records[-1], AbortTransactionRecord):
                unit = []
            self.cluster.large_requests.note(
                image, header.provenance.request_id, header.base_offset, records
            )
            if image.transaction is None:
                self._check_leaders(image, None)
                self.cluster.replicas.check(image, None)
                self.cluster.replicas.note(image, unit)
                self.cluster.movers.note(unit)
                coordination.take(unit)
                unit = []
                self._check_literal(image, records)
            # A transaction has one outcome, in the last of its batches. Rounds have one each: the
            # last one's is that of the request.
            done = any(
                isinstance(record, RequestOutcomeRecord)
                and record.key == header.provenance.request_id
                for record in records
            )
            if done and header.provenance.operation in _OF_ADMINISTRATORS:
                effects[uuid_text(header.provenance.request_id)] += 1
        self.cluster.session_clients.counts |= coordination.counts
        self.cluster.importer.judge(image)
        return image, began, effects
