"""Brokers' lives: they register, serve, fall silent, flap, are restarted, and come back.

Rule: a broker does what its agent does: it registers, asks to be online, asks to stop, says what it
leads; the controllers decide what becomes of it. Each step is a request at its own time, so others
come in between.
"""

from functools import partial
from typing import Final

from audit.generated.cast import BrokerProcess
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Story
from metadata import messages
from metadata.errors import ErrorCode, LogbergError
from metadata.image import Partition
from metadata.messages import WantedState
from metadata.partition_key import PlainPartitionKey
from metadata.records import SecurityProtocol
from metadata.uuids import uuid_text

_REPORT: Final = 40
"""Partitions that a leader reports in one request, on average; brokers gather what comes within
50 ms."""
_SESSION_MS: Final = 9 * SECOND_MS
SOFTWARE_MOST: Final = 33
"""The highest metadata.version that there is."""
_FEATURES: Final = (
    ("eligible.leader.replicas.version", 0, 1),
    ("group.version", 0, 1),
    ("logberg.version", 1, 4),
)

Isrs = list[tuple[PlainPartitionKey, tuple[int, ...]]]

# Coming.


def rack_name(rack: int) -> str:
    """Return what brokers call their rack."""
    return f"rack-{'abcdefgh'[rack]}"


def register(stage: Stage, broker: BrokerProcess) -> None:
    """A new process of a broker registers, fenced."""
    features = (*_FEATURES, ("metadata.version", 21, stage.cast.software))
    host = f"broker-{broker.id}.example.net"
    registration = messages.Registration(
        endpoints=(messages.Endpoint("CLIENTS", host, 9092, SecurityProtocol.SASL_SSL),),
        features=tuple(messages.SupportedFeature(*feature) for feature in features),
        rack=rack_name(broker.rack),
        log_dirs=tuple(map(uuid_text, broker.log_dirs)),
        previous_broker_epoch=broker.stopped_at,
    )
    broker.stopped_at = -1
    request = messages.MetadataFetchRequest(
        cluster_id=stage.cluster_id,
        broker_id=broker.id,
        incarnation_id=uuid_text(stage.dice.uuid()),
        registration=registration,
    )
    stage.rehearsed_brokers.register(broker.actor().caller, request)
    stage.collect()


def wants(stage: Stage, broker: BrokerProcess, state: WantedState) -> None:
    """A broker says what it wants to be, in a heartbeat."""
    stage.rehearsed_brokers.beat(broker.actor().caller, broker.id, state)
    stage.collect()


def come_back(stage: Stage, broker: BrokerProcess, *, new_process: bool) -> Story:
    """Register (or not), be unfenced, return to the ISRs."""
    while new_process and not _registers(stage, broker):
        yield 5 * SECOND_MS
    yield 2 * SECOND_MS + stage.dice.around(4 * SECOND_MS)
    broker.silent = False
    wants(stage, broker, WantedState.ONLINE)
    took_ms = _rejoin(stage, broker)
    yield took_ms + stage.dice.around(20 * SECOND_MS)


def _registers(stage: Stage, broker: BrokerProcess) -> bool:
    """Register; False: the last process may be alive still, as far as the controllers know."""
    try:
        register(stage, broker)
    except LogbergError as error:
        if error.code is not ErrorCode.DUPLICATE_BROKER_REGISTRATION:
            raise
        return False
    return True


def _rejoin(stage: Stage, broker: BrokerProcess) -> int:
    """The leaders of a broker's partitions report it in sync, one request after another."""
    dice, topics = stage.dice, stage.rehearsal.settled().topics
    lagging: dict[int, list[PlainPartitionKey]] = {}
    for key in topics.held_by(broker.id):
        partition = topics.partitions[key]
        if broker.id not in partition.isr:
            lagging.setdefault(partition.leader, []).append(key)
    latest = 0
    for keys in lagging.values():
        at_ms = dice.around(10 * SECOND_MS)
        first = 0
        while first < len(keys):
            some = keys[first : first + 1 + dice.below(2 * _REPORT)]
            first += len(some)
            stage.after(at_ms, partial(catch_up, stage, broker.id, some))
            latest = max(latest, at_ms)
            at_ms += dice.around(1_500)
    return latest


def catch_up(stage: Stage, follower: int, keys: list[PlainPartitionKey]) -> None:
    """A follower is in sync again: who leads now says so, where there is a leader."""
    image = stage.image
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
            reports.setdefault(partition.leader, []).append((key, (*partition.isr, follower)))
    for leader, isrs in reports.items():
        report(stage, leader, isrs)
    if waiting:
        stage.after(MINUTE_MS, partial(catch_up, stage, follower, waiting))


def report(stage: Stage, leader: int, isrs: Isrs) -> bool:
    """A leader reports ISRs (AlterPartition), for what it still leads; False: for nothing."""
    image = stage.image
    brokers, partitions = image.cluster.brokers, image.topics.partitions
    topics: list[messages.TopicToAlter] = []
    for key, isr in isrs:
        partition: Partition | None = partitions.get(key)
        if partition is None or partition.leader != leader:
            continue
        members = [(each, brokers.get(each)) for each in isr]
        if any(member is None or not member.active for _, member in members):
            continue
        wanted = messages.PartitionToAlter(
            partition_index=key[1],
            leader_epoch=partition.leader_epoch,
            partition_epoch=partition.partition_epoch,
            new_isr_with_epochs=tuple(
                messages.IsrMember(each, -1 if member is None else member.broker_epoch)
                for each, member in members
            ),
        )
        topics.append(messages.TopicToAlter((wanted,), topic_id=uuid_text(key[0])))
    if not topics:
        return False
    request = messages.AlterPartitionRequest(
        cluster_id=stage.cluster_id,
        broker_id=leader,
        broker_epoch=brokers[leader].broker_epoch,
        topics=tuple(topics),
    )
    stage.rehearsed_brokers.alter_partitions(stage.cast.brokers[leader].actor().caller, request)
    stage.collect()
    return True


# Going.


def stopped(stage: Stage, broker: BrokerProcess) -> None:
    """A broker has nothing left to give up: it stops, fenced."""
    stage.rehearsed_brokers.hear([each.id for each in stage.active])
    if not stage.image.cluster.brokers[broker.id].fenced:
        wants(stage, broker, WantedState.STOPPING)
    broker.stopped_at = stage.image.cluster.brokers[broker.id].broker_epoch


def _fall_silent(stage: Stage, broker: BrokerProcess) -> Story:
    """Nobody hears from a broker any more: its session ends, and the controller fences it."""
    stage.rehearsed_brokers.hear([broker.id])
    broker.silent = True
    yield _SESSION_MS + stage.dice.below(900)
    while True:
        stage.rehearsed_brokers.fence(broker.id)
        stage.collect()
        if not (broker.silent and broker.is_active(stage.image)):
            return
        # A leader that is new gives every broker a whole session.
        yield _SESSION_MS


# Both.


def restart(stage: Stage, broker: BrokerProcess) -> Story:
    """A rolling restart's step: shut down, stop, start, rejoin."""
    broker.busy = True
    wants(stage, broker, WantedState.STOPPING)
    yield stage.dice.around(1_500)
    stopped(stage, broker)
    yield 15 * SECOND_MS + stage.dice.around(20 * SECOND_MS)
    yield from come_back(stage, broker, new_process=True)
    broker.busy = False


def restart_one(stage: Stage) -> Story:
    """Somebody restarts a broker."""
    free = stage.free
    if len(free) > 2:
        yield from restart(stage, stage.dice.pick(free))


def lose_session(stage: Stage, broker: BrokerProcess, away_ms: int, *, died: bool) -> Story:
    """A broker is silent for a while; if its process died, a new one comes back."""
    broker.busy = True
    stage.play(_fall_silent(stage, broker))
    yield 10 * SECOND_MS + away_ms
    yield from come_back(stage, broker, new_process=died)
    broker.busy = False


def hiccup(stage: Stage) -> Story:
    """A broker pauses for a moment, alone: its session ends, and it comes back."""
    free = stage.free
    if len(free) < 3:
        return
    broker, leader = stage.dice.pick(free), stage.leader
    begun: list[tuple[int, int]] = []
    stage.after(_SESSION_MS, lambda: begun.append((stage.offset, stage.now_ms)))
    yield from lose_session(stage, broker, stage.dice.around(MINUTE_MS), died=False)
    stage.tell_since("session_lost", f"broker:{broker.id}", begun[0], f"Controller:{leader}")
