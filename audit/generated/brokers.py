"""Brokers' lives: they register, serve, fall silent, flap, are restarted, moved out and replaced.

Rule: a broker leaves as the controller's tables have it (shutdown, moves, fence) and comes back in
the same steps (registration, unfence, then its partitions' leaders take it into their ISRs one
after another). Each step is its own operation at its own time, so others happen in between.
"""

from functools import partial

from audit.generated.model import Broker, Partition
from audit.generated.pen import Written
from audit.generated.people import Actor, broker_actor, controller_actor
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Then
from metadata.records import (
    NO_LEADER,
    BrokerEndpoint,
    BrokerFeature,
    BrokerRegistrationChangeRecord,
    ControlledShutdownChange,
    FencingChange,
    Record,
    RegisterBrokerRecord,
    SecurityProtocol,
)

_REPORT = 40
"""Partitions that a leader reports in one request, on average; brokers gather what comes within
50 ms."""
_ELECT = 500
"""Partitions that the controller gives back to their preferred leader at once."""


class Brokers:
    """What happens to brokers."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage

    def free(self) -> list[Broker]:
        """Return the active brokers that no episode has."""
        return [broker for broker in self._stage.cluster.active() if not broker.busy]

    def calls(self, broker: Broker) -> Actor:
        return broker_actor(broker.id, broker.rack)

    # Coming.

    def register(self, broker: Broker) -> Written:
        """A new process of a broker registers, fenced."""
        stage = self._stage
        broker.incarnation = stage.dice.uuid()
        broker.epoch = stage.pen.offset
        broker.registered, broker.fenced, broker.leaving = True, True, False
        host = f"broker-{broker.id}.example.net"
        record = RegisterBrokerRecord(
            broker.id,
            broker.incarnation,
            broker.epoch,
            (BrokerEndpoint("CLIENTS", host, 9092, SecurityProtocol.SASL_SSL),),
            (
                BrokerFeature("group.version", 0, 1),
                BrokerFeature("metadata.version", 7, stage.software),
            ),
            f"rack-{'abcdefgh'[broker.rack]}",
            log_dirs=broker.log_dirs,
        )
        return stage.write(self.calls(broker), "RegisterBroker", [record], "registration")

    def unfence(self, broker: Broker) -> Written:
        """A broker has caught up: what had no leader may have one now."""
        stage = self._stage
        broker.fenced = False
        elected = stage.cluster.elect_leaderless(broker)
        change = self._change(broker, fenced=FencingChange.UNFENCE)
        return stage.write(self.calls(broker), "UnfenceBroker", [change, *elected], "caught up")

    def come_back(self, broker: Broker, *, new_process: bool, then: Then) -> None:
        """Register (or not), be unfenced, return to the ISRs, lead again; `then` goes on."""
        stage = self._stage

        def back() -> None:
            self.unfence(broker)
            took_ms = self._rejoin(broker)
            stage.after(took_ms + stage.dice.around(20 * SECOND_MS), led)

        def led() -> None:
            self.prefer(broker)
            then()

        if new_process:
            self.register(broker)
        stage.after(2 * SECOND_MS + stage.dice.around(4 * SECOND_MS), back)

    def _rejoin(self, broker: Broker) -> int:
        """The leaders of a broker's partitions report it in sync, one request after another."""
        stage, dice = self._stage, self._stage.dice
        lagging: dict[int, list[Partition]] = {}
        for partition in broker.hosted.items:
            if broker.id not in partition.isr:
                lagging.setdefault(partition.leader, []).append(partition)
        latest = 0
        for partitions in lagging.values():
            at_ms = dice.around(10 * SECOND_MS)
            first = 0
            while first < len(partitions):
                some = partitions[first : first + 1 + dice.below(2 * _REPORT)]
                first += len(some)
                stage.after(at_ms, partial(self.catch_up, broker.id, some))
                latest = max(latest, at_ms)
                at_ms += dice.around(1_500)
        return latest

    def catch_up(self, follower: int, partitions: list[Partition]) -> None:
        """A follower is in sync again: who leads now says so, where there is a leader."""
        if not self._stage.cluster.is_active(follower):
            return
        groups: dict[int, list[Partition]] = {}
        for partition in partitions:
            if (
                partition.topic.alive
                and follower in partition.replicas
                and follower not in partition.isr
            ):
                groups.setdefault(partition.leader, []).append(partition)
        waiting = groups.pop(NO_LEADER, [])
        for leader, some in groups.items():
            self.report(leader, [(partition, (*partition.isr, follower)) for partition in some])
        if waiting:
            self._stage.after(MINUTE_MS, partial(self.catch_up, follower, waiting))

    def report(self, leader: int, isrs: list[tuple[Partition, tuple[int, ...]]]) -> Written | None:
        """A leader reports ISRs (AlterPartition), for what it still leads."""
        stage = self._stage
        records = [
            stage.cluster.set_isr(partition, isr)
            for partition, isr in isrs
            if partition.topic.alive and partition.leader == leader and leader in isr
        ]
        if not records:
            return None
        caller = self.calls(stage.cluster.brokers[leader])
        return stage.write(caller, "AlterPartition", records)

    def prefer(self, broker: Broker) -> None:
        """The controller gives a broker back what it should lead."""
        stage = self._stage
        if not broker.active:
            return
        mine = [
            partition
            for partition in broker.hosted.in_order()
            if partition.replicas[0] == broker.id != partition.leader
            and broker.id in partition.isr
            and not partition.moving
        ]
        for first in range(0, len(mine), _ELECT):
            records = [
                stage.cluster.lead(partition, broker.id)
                for partition in mine[first : first + _ELECT]
            ]
            stage.write(
                controller_actor(stage.controller),
                "ElectLeaders",
                records,
                "leaders are out of balance",
            )

    # Going.

    def shut_down(self, broker: Broker) -> Written:
        """A broker asks to stop: its leaders move."""
        stage = self._stage
        broker.leaving = True
        begin = self._change(broker, shutdown=ControlledShutdownChange.IN_CONTROLLED_SHUTDOWN)
        moved = stage.cluster.leave(broker)
        return stage.write(
            self.calls(broker), "BeginControlledShutdown", [begin, *moved], "it wants to stop"
        )

    def stopped(self, broker: Broker) -> Written:
        """A broker has nothing left to give up: it may stop, fenced."""
        broker.fenced = True
        change = self._change(broker, fenced=FencingChange.FENCE)
        return self._stage.write(self.calls(broker), "FenceBroker", [change], "it may stop")

    def fall_silent(self, broker: Broker) -> Written:
        """A session ends: the controller fences the broker."""
        stage = self._stage
        broker.fenced = True
        moved = stage.cluster.leave(broker)
        change = self._change(broker, fenced=FencingChange.FENCE)
        silence = f"not heard from for 9.{stage.dice.below(10)} s"
        return stage.write(
            controller_actor(stage.controller), "FenceBroker", [*moved, change], silence
        )

    def _change(
        self,
        broker: Broker,
        fenced: FencingChange = FencingChange.NONE,
        shutdown: ControlledShutdownChange = ControlledShutdownChange.NONE,
    ) -> Record:
        return BrokerRegistrationChangeRecord(
            broker.id, broker.epoch, fenced=fenced, in_controlled_shutdown=shutdown
        )

    # Episodes.

    def restart(self, broker: Broker, then: Then) -> None:
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

    def lose_session(self, broker: Broker, away_ms: int, *, died: bool, then: Then) -> None:
        """A broker is silent for a while; if its process died, a new one comes back."""
        stage = self._stage
        broker.busy = True
        self.fall_silent(broker)

        def back() -> None:
            self.come_back(broker, new_process=died, then=done)

        def done() -> None:
            broker.busy = False
            then()

        stage.after(away_ms, back)

    def hiccup(self) -> None:
        """A broker pauses for a moment, alone: its session ends, and it comes back."""
        free = self.free()
        if len(free) < 3:
            return
        stage = self._stage
        broker = stage.dice.pick(free)
        begun = stage.pen.offset

        def told() -> None:
            stage.tell_since(
                "session_lost", f"broker:{broker.id}", begun, began_ms, f"Controller:{leader}"
            )

        leader, began_ms = stage.controller, stage.now_ms
        self.lose_session(broker, stage.dice.around(MINUTE_MS), died=False, then=told)
