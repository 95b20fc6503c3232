"""Brokers' lives: they register, serve, fall silent, flap, are restarted, and come back.

Rule: a broker does what its agent does: it registers, asks to be online, asks to stop, says what it
leads; the controllers decide what becomes of it. Each step is a request at its own time, so others
come in between.
"""

from functools import partial

from audit.generated.cast import BrokerProcess, Cast
from audit.generated.people import Actor, broker_actor
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Then
from metadata.errors import ErrorCode, LogbergError
from metadata.image import Partition
from metadata.messages import (
    AlterPartitionRequest,
    Endpoint,
    IsrMember,
    MetadataFetchRequest,
    PartitionToAlter,
    Registration,
    SupportedFeature,
    TopicToAlter,
    WantedState,
)
from metadata.partition_key import PlainPartitionKey
from metadata.records import SecurityProtocol
from metadata.uuids import uuid_text

_REPORT = 40
"""Partitions that a leader reports in one request, on average; brokers gather what comes within
50 ms."""
_SESSION_MS = 9 * SECOND_MS
SOFTWARE_MOST = 33
"""The highest metadata.version that there is."""

Isrs = list[tuple[PlainPartitionKey, tuple[int, ...]]]


class Brokers:
    """What happens to brokers."""

    def __init__(self, stage: Stage, cast: Cast) -> None:
        self._stage = stage
        self._cast = cast
        self.software = 25
        """The highest metadata.version that brokers support, as deployed."""

    def calls(self, broker: BrokerProcess) -> Actor:
        return broker_actor(broker.id, broker.rack)

    # Coming.

    def register(self, broker: BrokerProcess) -> None:
        """A new process of a broker registers, fenced."""
        stage = self._stage
        registration = Registration(
            endpoints=(
                Endpoint(
                    name="CLIENTS",
                    host=f"broker-{broker.id}.example.net",
                    port=9092,
                    security_protocol=SecurityProtocol.SASL_SSL,
                ),
            ),
            features=(
                SupportedFeature("eligible.leader.replicas.version", 0, 1),
                SupportedFeature("group.version", 0, 1),
                SupportedFeature("logberg.version", 1, 4),
                SupportedFeature("metadata.version", 21, self.software),
            ),
            rack=f"rack-{'abcdefgh'[broker.rack]}",
            log_dirs=tuple(map(uuid_text, broker.log_dirs)),
            previous_broker_epoch=broker.stopped_at,
        )
        broker.stopped_at = -1
        stage.rehearsal.register(
            self.calls(broker).caller,
            MetadataFetchRequest(
                cluster_id=stage.cluster_id,
                broker_id=broker.id,
                incarnation_id=uuid_text(stage.dice.uuid()),
                registration=registration,
            ),
        )
        stage.collect()

    def wants(self, broker: BrokerProcess, state: WantedState) -> None:
        """A broker says what it wants to be, in a heartbeat."""
        self._stage.rehearsal.beat(self.calls(broker).caller, broker.id, state)
        self._stage.collect()

    def come_back(self, broker: BrokerProcess, *, new_process: bool, then: Then) -> None:
        """Register (or not), be unfenced, return to the ISRs; `then` goes on."""
        stage = self._stage

        def begin() -> None:
            if new_process and not self._registers(broker):
                stage.after(5 * SECOND_MS, begin)
                return
            stage.after(2 * SECOND_MS + stage.dice.around(4 * SECOND_MS), back)

        def back() -> None:
            broker.silent = False
            self.wants(broker, WantedState.ONLINE)
            took_ms = self._rejoin(broker)
            stage.after(took_ms + stage.dice.around(20 * SECOND_MS), then)

        begin()

    def _registers(self, broker: BrokerProcess) -> bool:
        """Register; False: the last process may be alive still, as far as the controllers know."""
        try:
            self.register(broker)
        except LogbergError as error:
            if error.code is not ErrorCode.DUPLICATE_BROKER_REGISTRATION:
                raise
            return False
        return True

    def _rejoin(self, broker: BrokerProcess) -> int:
        """The leaders of a broker's partitions report it in sync, one request after another."""
        stage, dice = self._stage, self._stage.dice
        image = stage.rehearsal.settled()
        lagging: dict[int, list[PlainPartitionKey]] = {}
        for key in image.topics.held_by(broker.id):
            partition = image.topics.partitions[key]
            if broker.id not in partition.isr:
                lagging.setdefault(partition.leader, []).append(key)
        latest = 0
        for keys in lagging.values():
            at_ms = dice.around(10 * SECOND_MS)
            first = 0
            while first < len(keys):
                some = keys[first : first + 1 + dice.below(2 * _REPORT)]
                first += len(some)
                stage.after(at_ms, partial(self.catch_up, broker.id, some))
                latest = max(latest, at_ms)
                at_ms += dice.around(1_500)
        return latest

    def catch_up(self, follower: int, keys: list[PlainPartitionKey]) -> None:
        """A follower is in sync again: who leads now says so, where there is a leader."""
        image = self._stage.image
        registered = image.cluster.brokers.get(follower)
        if registered is None or not registered.active:
            return
        reports: dict[int, Isrs] = {}
        waiting: list[PlainPartitionKey] = []
        for key in keys:
            partition: Partition | None = image.topics.partitions.get(key)
            if partition is None or follower not in partition.replicas or follower in partition.isr:
                continue
            if partition.leader < 0:
                waiting.append(key)
            else:
                isr = (*partition.isr, follower)
                reports.setdefault(partition.leader, []).append((key, isr))
        for leader, isrs in reports.items():
            self.report(leader, isrs)
        if waiting:
            self._stage.after(MINUTE_MS, partial(self.catch_up, follower, waiting))

    def report(self, leader: int, isrs: Isrs) -> bool:
        """A leader reports ISRs (AlterPartition), for what it still leads; False: for nothing."""
        stage = self._stage
        image = stage.image
        brokers, partitions = image.cluster.brokers, image.topics.partitions
        topics: list[TopicToAlter] = []
        for key, isr in isrs:
            partition: Partition | None = partitions.get(key)
            if partition is None or partition.leader != leader:
                continue
            members = [(each, brokers.get(each)) for each in isr]
            if any(member is None or not member.active for _, member in members):
                continue
            wanted = PartitionToAlter(
                partition_index=key[1],
                leader_epoch=partition.leader_epoch,
                partition_epoch=partition.partition_epoch,
                new_isr_with_epochs=tuple(
                    IsrMember(each, -1 if member is None else member.broker_epoch)
                    for each, member in members
                ),
            )
            topics.append(TopicToAlter((wanted,), topic_id=uuid_text(key[0])))
        if not topics:
            return False
        stage.rehearsal.alter_partitions(
            self.calls(self._cast.brokers[leader]).caller,
            AlterPartitionRequest(
                cluster_id=stage.cluster_id,
                broker_id=leader,
                broker_epoch=brokers[leader].broker_epoch,
                topics=tuple(topics),
            ),
        )
        stage.collect()
        return True

    def recovered(self, leader: int, key: PlainPartitionKey) -> None:
        """A leader that was elected uncleanly has recovered, and says so."""
        partition = self._stage.image.topics.partitions[key]
        if partition.leader == leader:
            self.report(leader, [(key, partition.isr)])

    # Going.

    def shut_down(self, broker: BrokerProcess) -> None:
        """A broker asks to stop: its leaders move."""
        self.wants(broker, WantedState.STOPPING)

    def stopped(self, broker: BrokerProcess) -> None:
        """A broker has nothing left to give up: it stops, fenced."""
        stage = self._stage
        image = stage.image
        stage.rehearsal.hear([each.id for each in self._cast.active(image)])
        if not image.cluster.brokers[broker.id].fenced:
            self.wants(broker, WantedState.STOPPING)
        broker.stopped_at = stage.image.cluster.brokers[broker.id].broker_epoch

    def cordon(self, broker: BrokerProcess) -> None:
        """A broker takes no new replicas, where the cluster's level lets it say so (KIP-1066)."""
        stage = self._stage
        caller = self.calls(broker).caller
        stage.rehearsal.report_directories(caller, broker.id, cordoned=broker.log_dirs)
        stage.collect()

    def fall_silent(self, broker: BrokerProcess) -> None:
        """Nobody hears from a broker any more: its session ends, and the controller fences it."""
        stage = self._stage
        stage.rehearsal.hear([broker.id])
        broker.silent = True

        def fence() -> None:
            stage.rehearsal.fence(broker.id)
            stage.collect()
            if broker.silent and broker.is_active(stage.image):
                # A leader that is new gives every broker a whole session.
                stage.after(_SESSION_MS, fence)

        stage.after(_SESSION_MS + stage.dice.below(900), fence)

    # Episodes.

    def restart(self, broker: BrokerProcess, then: Then) -> None:
        """A rolling restart's step: shut down, stop, start, rejoin."""
        stage, dice = self._stage, self._stage.dice
        broker.busy = True
        self.shut_down(broker)

        def stop() -> None:
            self.stopped(broker)
            stage.after(15 * SECOND_MS + dice.around(20 * SECOND_MS), start)

        def start() -> None:
            self.come_back(broker, new_process=True, then=done)

        def done() -> None:
            broker.busy = False
            then()

        stage.after(dice.around(1_500), stop)

    def lose_session(self, broker: BrokerProcess, away_ms: int, *, died: bool, then: Then) -> None:
        """A broker is silent for a while; if its process died, a new one comes back."""
        stage = self._stage
        broker.busy = True
        self.fall_silent(broker)

        def back() -> None:
            self.come_back(broker, new_process=died, then=done)

        def done() -> None:
            broker.busy = False
            then()

        stage.after(10 * SECOND_MS + away_ms, back)

    def hiccup(self) -> None:
        """A broker pauses for a moment, alone: its session ends, and it comes back."""
        stage = self._stage
        free = self._cast.free(stage.image)
        if len(free) < 3:
            return
        broker, leader = stage.dice.pick(free), stage.leader
        begun: list[tuple[int, int]] = []

        def told() -> None:
            stage.tell_since(
                "session_lost", f"broker:{broker.id}", begun[0], f"Controller:{leader}"
            )

        stage.after(_SESSION_MS, lambda: begun.append((stage.offset, stage.now_ms)))
        self.lose_session(broker, stage.dice.around(MINUTE_MS), died=False, then=told)
