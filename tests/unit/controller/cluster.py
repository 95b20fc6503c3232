"""Controllers on one virtual clock, without sockets or elections, and brokers that call them."""

import json
from random import Random

import msgspec
import structlog

from controller.config import ControllerConfig
from controller.controller import Controller
from controller.leader.decisions import Decision
from controller.policies import NO_POLICIES
from controller.result import ControllerResult
from ledger.batch import Provenance, parse
from metadata.codec import decode_records
from metadata.features import SUPPORTED
from metadata.image import EMPTY, MetadataDelta
from metadata.messages import (
    Endpoint,
    MetadataFetchReply,
    MetadataFetchRequest,
    Registration,
    SeenState,
    SupportedFeature,
    WantedState,
)
from metadata.messages.wire import JSON, MSGPACK, decode_fetch_reply
from metadata.records import NoOpRecord
from metadata.sealing import ClusterKey
from metadata.uuids import uuid_text
from runtime.http.requests import ANONYMOUS, Caller, Request, whole
from runtime.simulated.archive import SimulatedArchive
from runtime.simulated.disk import SimulatedDisk
from runtime.simulated.disk_faults import DiskFaults
from runtime.simulated.platter import Platter
from runtime.simulated.process import Death, SimulatedProcess
from runtime.simulated.world import World
from tests.unit.controller.in_memory_quorum import InMemoryCluster, InMemoryQuorum

CLUSTER_ID = "a-test-cluster"
SESSION_S = 9.0
DECLARED = tuple(
    SupportedFeature(name=name, min_supported_version=low, max_supported_version=high)
    for name, (low, high) in sorted(SUPPORTED.items())
)
"""The feature levels that this build's agents declare."""


def raise_it(error):
    """Fail the test on a defect that the product would survive."""
    raise error


class Cluster:
    """One to three controllers. The test chooses the leader."""

    def __init__(
        self,
        nodes=3,
        seed=1,
        leader=1,
        on_defect=raise_it,
        policies=NO_POLICIES,
        on_made=lambda *_made: None,
        archived=False,
        tracing=None,
        witnesses=lambda _node_id, _clock: (),
        **config,
    ):
        """With `on_defect` None, a decision that fails doesn't fail the test.

        `archived`: there is an archive, `self.archive`. `on_made` gets controller, config, clock,
        disk and log before a controller starts. `config` may have functions, which get the node's
        id. `witnesses` gets a node's id and clock, and returns its witnesses.
        """
        self.on_made = on_made
        self.world = World(seed)
        self.archive = SimulatedArchive(self.world) if archived else None
        self.tracing = tracing
        self.witnesses = witnesses
        self.keys = {}
        """The cluster key of each node, for tests that fill it in."""
        self.shared = InMemoryCluster(range(1, nodes + 1))
        self.platters = {}
        self.faults = {}
        self.processes = {}
        self.controllers = {}
        self.incarnations = {}
        self.stopped = {}
        self.config = config
        self.policies = policies
        self.on_defect = {} if on_defect is None else {"on_defect": on_defect}
        self.logs = structlog.testing.LogCapture()
        for node_id in self.shared.node_ids:
            self.platters[node_id] = Platter(self.world.random(f"platter/{node_id}"))
            self.faults[node_id] = DiskFaults()
            self.start(node_id)
        self.run(0.1)
        if leader is not None:
            self.lead(leader)
            self.run_until(self.registered)
            self.run_until(lambda: not self.leader.awaits_subject_keys)

    # -- start, stop, time -----------------------------------------------------------------

    def start(self, node_id):
        self.incarnations[node_id] = self.incarnations.get(node_id, 0) + 1
        process = self.processes[node_id] = SimulatedProcess(self.world, node_id)
        disk = SimulatedDisk(process, self.platters[node_id], self.faults[node_id])
        self.shared.disks[node_id] = disk
        config = ControllerConfig(
            cluster_id=CLUSTER_ID,
            node_id=node_id,
            controller_urls={i: f"http://controller-{i}" for i in self.shared.node_ids},
            **{"compare_records": True, **self._config_of(node_id)},
        )

        log = structlog.wrap_logger(
            None, processors=[self.logs], wrapper_class=structlog.BoundLogger
        )

        def make():
            controller = Controller(
                config,
                clock=process.clock,
                random=Random(f"{node_id}/{self.incarnations[node_id]}"),
                disk=disk,
                quorum_factory=lambda listener: InMemoryQuorum(
                    self.shared, node_id, process.clock, listener
                ),
                log=log,
                version="0.0-test",
                on_stopped=lambda reason: self.stopped.__setitem__(node_id, reason),
                policies=self.policies,
                archive=None if self.archive is None else self.archive.of(process),
                tracing=self.tracing,
                witnesses=self.witnesses(node_id, process.clock),
                draw_secret=self.world.random(f"secrets/{node_id}").randbytes,
                **self.on_defect,
            )
            self.controllers[node_id] = controller
            self.on_made(controller, config, process.clock, disk, log)
            controller.start()

        process.run(make)

    def _config_of(self, node_id):
        made = {k: v(node_id) if callable(v) else v for k, v in self.config.items()}
        if node_id != 1 and isinstance(self.config.get("cluster_key"), ClusterKey):
            # Each process has its own. The first controller has the test's, so that it can open.
            made["cluster_key"] = made["cluster_key"].copy()
        return made

    def kill(self, node_id, how=Death.KILLED):
        self.shared.nodes.pop(node_id)
        if self.shared.leader == node_id:
            self.shared.leader = None
        self.processes[node_id].kill(how)
        if how is Death.POWER:
            self.platters[node_id].lose_power()

    def lead(self, node_id):
        self.processes[node_id].run(lambda: self.shared.lead(node_id))
        self.run_until(lambda: self.controllers[node_id].active)

    def run(self, seconds):
        self.world.run_for(seconds)

    def run_until(self, stop, seconds=30.0):
        assert self.world.run_for(seconds, stop), "it did not happen"

    # -- looking --------------------------------------------------------------------------

    def registered(self):
        """Return whether the leader knows the registration of every controller that runs."""
        known = self.image.cluster.controllers
        alive = {node.node_id for node in self.shared.alive()}
        return all(
            known.get(node_id) == self.controllers[node_id]._leader.self_registration._own
            for node_id in alive
        )

    @property
    def leader(self):
        return self.controllers[self.shared.leader]

    @property
    def image(self):
        return self.leader.image

    def broker(self, broker_id):
        return self.image.cluster.brokers[broker_id]

    def write(self, *records):
        """Let the leader write records that no request can write yet."""
        self.decide(*records)

    def decide(self, *records):
        """Let the leader make a decision; returns its outcome."""
        done = []
        decision = Decision(
            lambda image: ControllerResult(records), Provenance(operation="Test"), done.append
        )
        node = self.shared.leader
        self.processes[node].run(lambda: self.controllers[node]._leader.proposer.submit(decision))
        self.run_until(lambda: bool(done))
        return done[0]

    def end_session(self, broker_id):
        """Let the leader believe that it heard nothing from a broker for a whole session."""
        heartbeats = self.leader._leader.heartbeats
        heartbeats._contacts[broker_id].deadline = 0.0
        heartbeats._deadlines.put(broker_id)

    def hold_the_turn(self, steps=1_000):
        """Keep the leader busy with one decision for so many steps. All others wait."""

        def decide(_image):
            yield from [None] * steps
            return ControllerResult((NoOpRecord(),))

        node = self.shared.leader
        self.processes[node].clock.cost_us = 50
        decision = Decision(decide, Provenance(operation="Test"), lambda _: None, first=True)
        self.processes[node].run(lambda: self.controllers[node]._leader.proposer.submit(decision))

    def partition(self, name, number=0):
        return self.image.topics.partitions[self.image.topics.named(name).topic_id, number]

    def batches(self, node_id=None):
        controller = self.controllers[node_id] if node_id else self.leader
        return list(controller.ledger.batches(0))

    def ledger_files(self, node_id):
        """Return the content of the segments on a node's disk, by name."""
        names = self.platters[node_id].names
        return {n: bytes(i.content) for n, i in names.items() if n.endswith(".log")}

    def holds(self, node_id, before):
        """Return whether a node has these segments again. Its log may have grown since."""
        files = self.ledger_files(node_id)
        return all(files.get(name, b"").startswith(content) for name, content in before.items())

    def records(self, since=0):
        return [
            record
            for batch in self.batches()
            if batch.header.base_offset >= since
            for record in decode_records(batch.records)
        ]

    def events(self, name):
        return [entry for entry in self.logs.entries if entry["event"] == name]

    def assert_equal(self):
        """Check that all controllers have the same log and image, and that replay agrees."""
        self.run(0.5)
        images = [c.image for c in self.controllers.values()]
        heads = {c.ledger.head for c in self.controllers.values()}
        assert len(heads) == 1
        assert all(image == images[0] for image in images)
        assert len({image.state_hash for image in images}) == 1
        image = EMPTY
        for batch in self.batches():
            delta = MetadataDelta(image)
            delta.replay_all(decode_records(batch.records), batch.header.base_offset)
            header = batch.header
            delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
            image = delta.apply()
        assert image == images[0]

    # -- asking ---------------------------------------------------------------------------

    def send(self, method, path, body=None, *, node=None, query=None, headers=None, caller=None):
        """Send a request; returns the list that its reply will be in."""
        replies = []

        def take(reply):
            assert not replies, "a request was answered twice"
            replies.append(whole(reply))

        request = Request(
            method,
            path,
            b"" if body is None else body if isinstance(body, bytes) else json.dumps(body).encode(),
            query or {},
            headers or {},
            caller or Caller("User:alice", "token", "10.0.0.7"),
        )
        node = node or self.shared.leader
        self.processes[node].run(lambda: self.controllers[node].handle(request, take))
        return replies

    def ask(self, method, path, body=None, **options):
        """Send a request and wait: (status, JSON)."""
        replies = self.send(method, path, body, **options)
        self.run_until(lambda: bool(replies))
        assert len(replies) == 1
        text = replies[0].headers.get("content-type", "").startswith("application/json")
        return replies[0].status, json.loads(replies[0].body) if text else replies[0].body

    def create_topic(self, name, partitions=1, factor=3, **more):
        topic = {"name": name, "numPartitions": partitions, "replicationFactor": factor, **more}
        status, reply = self.ask("POST", "/v1/topics", {"topics": [topic]})
        assert status == 200, reply
        return reply

    def assign(self, name, *replicas):
        """Create a topic with these replica lists."""
        rows = [{"partitionIndex": i, "brokerIds": list(r)} for i, r in enumerate(replicas)]
        status, reply = self.ask(
            "POST", "/v1/topics", {"topics": [{"name": name, "assignments": rows}]}
        )
        assert status == 200, reply

    def alter_isr(self, key, isr):
        """Let a partition's leader ask for an ISR; return the answer about the partition."""
        topic_id, number = key
        partition = self.image.topics.partitions[key]
        wanted = {
            "partitionIndex": number,
            "leaderEpoch": partition.leader_epoch,
            "partitionEpoch": partition.partition_epoch,
            "newIsrWithEpochs": [{"brokerId": broker_id} for broker_id in isr],
        }
        body = {
            "clusterId": CLUSTER_ID,
            "brokerId": partition.leader,
            "brokerEpoch": self.broker(partition.leader).broker_epoch,
            "topics": [{"topicId": uuid_text(topic_id), "partitions": [wanted]}],
        }
        status, reply = self.ask("POST", "/v1/partitions/alter", body)
        assert status == 200, reply
        (answer,) = reply["topics"][0]["partitions"]
        return answer

    def online(self, *broker_ids, **options):
        """Register brokers and bring them online."""
        return [Broker(self, broker_id, **options).bring_online() for broker_id in broker_ids]


class Broker:
    """A broker process that sends MetadataFetch and keeps no image."""

    def __init__(
        self, cluster, broker_id, rack=None, incarnation=None, log_dirs=(), features=DECLARED
    ):
        self.cluster = cluster
        self.broker_id = broker_id
        self.incarnation = incarnation or cluster.world.random("incarnations").randbytes(16)
        self.registration = Registration(
            endpoints=(Endpoint(name="PLAINTEXT", host="localhost", port=9000 + broker_id),),
            rack=rack,
            log_dirs=tuple(uuid_text(d) for d in log_dirs),
            features=features,
        )
        self.epoch = -1
        self.offset = 0
        self.fetched_epoch = -1
        self.applied = 0
        self.last = None

    def request(self, wanted=WantedState.ONLINE, **changes):
        request = MetadataFetchRequest(
            cluster_id=CLUSTER_ID,
            broker_id=self.broker_id,
            incarnation_id=uuid_text(self.incarnation),
            broker_epoch=self.epoch,
            registration=self.registration if self.epoch < 0 else None,
            fetched_offset=self.offset,
            fetched_epoch=self.fetched_epoch,
            applied_offset=self.applied,
            wanted_state=wanted,
        )
        return msgspec.structs.replace(request, **changes)

    def send(self, wanted=WantedState.ONLINE, node=None, caller=None, **changes):
        """Send a fetch; returns the list that the decoded reply will be in."""
        cluster, replies = self.cluster, []
        node = node or cluster.shared.leader
        body = msgspec.msgpack.encode(self.request(wanted, **changes))
        request = Request(
            "POST", "/v1/metadata/fetch", body, {}, {"content-type": MSGPACK}, caller or ANONYMOUS
        )

        def take(reply):
            assert not replies, "a fetch was answered twice"
            replies.append(decode_fetch_reply(reply.status, reply.body, MSGPACK))

        cluster.processes[node].run(lambda: cluster.controllers[node].handle(request, take))
        return replies

    def fetch(self, wanted=WantedState.ONLINE, *, apply=True, **changes) -> MetadataFetchReply:
        """Send a fetch and wait for the reply. Its batches count as fetched, perhaps as applied."""
        replies = self.send(wanted, **changes)
        self.cluster.run_until(lambda: bool(replies))
        return self.take(replies[0], apply=apply)

    def take(self, reply, *, apply=True):
        self.last = reply
        if reply.error is None:
            self.epoch = reply.broker_epoch
            for encoded in reply.batches:
                header = parse(encoded).header
                assert header.base_offset == self.offset
                self.offset, self.fetched_epoch = header.end_offset, header.epoch
            if apply:
                self.applied = self.offset
        return reply

    def register(self):
        reply = self.fetch(WantedState.FENCED)
        assert reply.error is None, reply.error
        return self

    def bring_online(self):
        self.register()
        for _ in range(20):
            if self.fetch(WantedState.ONLINE).state is SeenState.ONLINE:
                return self.catch_up()
            self.cluster.run(0.01)
        raise AssertionError(f"broker {self.broker_id} does not come online: {self.last}")

    def catch_up(self):
        while self.fetch(WantedState.ONLINE).batches:
            pass
        return self

    def keep_alive(self, seconds, step=1.0, wanted=WantedState.ONLINE):
        """Send heartbeats for some time."""
        until = self.cluster.world.now + seconds
        while self.cluster.world.now < until:
            self.fetch(wanted)
            self.cluster.run(min(step, max(until - self.cluster.world.now, 0.001)))
        return self


def keep_alive(cluster, brokers, seconds, step=1.0):
    """Let some brokers send heartbeats for some time. All others are silent."""
    until = cluster.world.now + seconds
    while cluster.world.now < until:
        for broker in brokers:
            broker.fetch()
        cluster.run(min(step, max(until - cluster.world.now, 0.001)))


__all__ = ["CLUSTER_ID", "JSON", "SESSION_S", "Broker", "Cluster", "keep_alive"]
