"""Episodes: what a cluster's keepers remember afterwards.

Rule: an episode takes the brokers it needs when it begins and gives them back at its end, then
calls `then`; it is told as a fact when it is over, from its first offset to its last.
"""

from collections.abc import Callable
from functools import partial
from typing import Final

from audit.generated.brokers import Brokers
from audit.generated.model import Broker, Partition
from audit.generated.pen import Written
from audit.generated.people import (
    ALICE,
    BOB,
    DEPLOY_BOT,
    ON_CALL,
    WHY,
    controller_actor,
)
from audit.generated.rhythm import HOUR_MS, MINUTE_MS, SECOND_MS, moment
from audit.generated.stage import Stage
from audit.generated.topics import Topics
from metadata.records import (
    ConfigRecord,
    ConfigResourceType,
    ControllerEndpoint,
    ControllerFeature,
    LeaderRecoveryState,
    Record,
    RegisterControllerRecord,
    SecurityProtocol,
    UnregisterBrokerRecord,
)

Then = Callable[[], None]
UNCLEAN: Final = "unclean.leader.election.enable"


class Episodes:
    """Failures, deployments and their like; each begins when it is called."""

    def __init__(self, stage: Stage, brokers: Brokers, topics: Topics) -> None:
        self._stage = stage
        self._brokers = brokers
        self._topics = topics

    def _teller(self, kind: str, subject: str, principal: str, sentence: str) -> Then:
        """Return what tells of an episode that begins now, once it is over."""
        stage = self._stage
        offset, time_ms = stage.pen.offset, stage.now_ms
        said = f"{moment(time_ms)}: {sentence}"
        return lambda: stage.tell_since(kind, subject, offset, time_ms, principal, said)

    # People and their software.

    def deployment(self, then: Then) -> None:
        """Every broker is restarted, one after another."""
        stage = self._stage
        stage.software += 1
        ids = list(stage.cluster.brokers)
        told = self._teller(
            "deployment",
            "brokers",
            DEPLOY_BOT.principal,
            f"deploy-bot rolled out a release to {len(self._brokers.free())} brokers, one by one, "
            "then to the controllers.",
        )
        label = ConfigRecord(
            ConfigResourceType.BROKER, "", "deployment.label", f"2026.{stage.software}"
        )
        stage.answer(DEPLOY_BOT, "IncrementalAlterConfigs", [label], "rolling restart begins")

        def step() -> None:
            while ids:
                broker = stage.cluster.brokers[ids.pop(0)]
                if broker.active and not broker.busy:
                    self._brokers.restart(broker, pause)
                    return
            self.failover()
            self.register_controllers()
            told()
            then()

        def pause() -> None:
            stage.after(30 * SECOND_MS + stage.dice.around(MINUTE_MS), step)

        step()

    def register_controllers(self) -> None:
        """Each controller's new process says where it is and what it can do."""
        stage = self._stage
        for voter in stage.voters:
            host = f"controller-{voter.voter_id}.example.net"
            record = RegisterControllerRecord(
                voter.voter_id,
                stage.dice.uuid(),
                False,
                (ControllerEndpoint("HTTPS", host, 9191, SecurityProtocol.SSL),),
                (
                    ControllerFeature("kraft.version", 0, 1),
                    ControllerFeature("metadata.version", 7, stage.software),
                ),
            )
            stage.write(controller_actor(voter.voter_id), "RegisterController", [record])

    def restart_one(self) -> None:
        """Somebody restarts a broker."""
        free = self._brokers.free()
        if len(free) > 2:
            self._brokers.restart(self._stage.dice.pick(free), _nothing)

    def replace_broker(self, then: Then) -> None:
        """A broker's partitions move to a new one, and it is forgotten."""
        stage = self._stage
        free = self._brokers.free()
        if len(free) < 4:
            then()
            return
        old = stage.dice.pick(free)
        new = Broker(max(stage.cluster.brokers) + 1, old.rack, (stage.dice.uuid(),))
        told = self._teller(
            "broker_replaced",
            f"broker:{old.id}",
            BOB.principal,
            f"bob replaced broker {old.id} by broker {new.id}; the balancer moved "
            f"{len(old.hosted)} replicas.",
        )
        old.busy = new.busy = True
        old.cordoned = True
        stage.cluster.brokers[new.id] = new
        wave = max(10, len(old.hosted) // 20)

        def move() -> None:
            if not len(old.hosted):
                self._brokers.shut_down(old)
                stage.after(2 * SECOND_MS, stop)
                return
            movable = [
                partition
                for partition in old.hosted.in_order()
                if not partition.moving
                and partition.leader >= 0
                and new.id not in partition.replicas
                and old.id in partition.isr
            ]
            self._topics.move(movable[:wave], old.id, new.id)
            stage.after(4 * MINUTE_MS, move)

        def stop() -> None:
            self._brokers.stopped(old)
            stage.after(10 * MINUTE_MS, forget)

        def forget() -> None:
            record = UnregisterBrokerRecord(old.id, old.epoch)
            del stage.cluster.brokers[old.id]
            stage.answer(BOB, "UnregisterBroker", [record], "hardware is out of warranty")
            new.busy = False
            told()
            then()

        self._brokers.come_back(new, new_process=True, then=move)

    # Failures.

    def broker_dies(self, then: Then) -> None:
        """A machine is lost; somebody repairs it hours later."""
        stage = self._stage
        free = self._brokers.free()
        if len(free) < 3:
            then()
            return
        broker = max(free, key=lambda one: (len(one.hosted), one.id))
        told = self._teller(
            "broker_died",
            f"broker:{broker.id}",
            f"Controller:{stage.controller}",
            f"broker {broker.id} died and was away for hours; partitions with one replica had no "
            "leader.",
        )
        away_ms = 2 * HOUR_MS + stage.dice.around(HOUR_MS)
        self._brokers.lose_session(broker, away_ms, died=True, then=_both(told, then))

    def broker_flaps(self, then: Then) -> None:
        """A broker goes and comes back, again and again."""
        stage = self._stage
        free = self._brokers.free()
        if len(free) < 3:
            then()
            return
        broker = stage.dice.pick(free)
        times = stage.dice.between(6, 9)
        told = self._teller(
            "broker_flapped",
            f"broker:{broker.id}",
            f"Controller:{stage.controller}",
            f"broker {broker.id} flapped: fenced {times} times in short order (a bad cable).",
        )
        left = [times]

        def again() -> None:
            if not left[0]:
                told()
                then()
                return
            left[0] -= 1
            away_ms = 10 * SECOND_MS + stage.dice.around(20 * SECOND_MS)
            self._brokers.lose_session(
                broker, away_ms, died=False, then=lambda: stage.after(15 * SECOND_MS, again)
            )

        again()

    def rack_outage(self, then: Then) -> None:
        """All brokers of a rack fall silent within seconds."""
        stage = self._stage
        racks: dict[int, list[Broker]] = {}
        for broker in self._brokers.free():
            racks.setdefault(broker.rack, []).append(broker)
        if len(racks) < 2:
            then()
            return
        rack = stage.dice.pick(sorted(racks))
        silent = racks.pop(rack)
        others = [broker for brokers in racks.values() for broker in brokers]
        more = ""
        if len(others) > 3:
            silent.append(stage.dice.pick(others))
            more = ", one of them elsewhere, under the load of the rest"
        name = f"rack-{'abcdefgh'[rack]}"
        told = self._teller(
            "rack_outage",
            f"rack:{name}",
            f"Controller:{stage.controller}",
            f"{name} lost its power: {len(silent)} brokers were fenced{more}.",
        )
        waiting = list(silent)

        def back(broker: Broker) -> None:
            waiting.remove(broker)
            if not waiting:
                told()
                then()

        away_ms = 12 * MINUTE_MS + stage.dice.around(8 * MINUTE_MS)
        for number, broker in enumerate(silent):
            broker.busy = True
            ours = broker.rack == rack
            lost = partial(
                self._brokers.lose_session,
                broker,
                away_ms // (1 if ours else 3) + stage.dice.around(30 * SECOND_MS),
                died=ours,
                then=partial(back, broker),
            )
            stage.after((number if ours else 400) * 300 + stage.dice.below(300), lost)

    def isr_storm(self, then: Then) -> None:
        """A broker's disk is slow: its leaders drop it and take it back for an hour."""
        stage, dice = self._stage, self._stage.dice
        free = self._brokers.free()
        if len(free) < 3:
            then()
            return
        victim = dice.pick(free)
        told = self._teller(
            "isr_storm",
            f"broker:{victim.id}",
            "",
            f"broker {victim.id} had a slow disk: ISRs shrank and grew for an hour.",
        )
        ends_ms = stage.now_ms + HOUR_MS

        def gust() -> None:
            if stage.now_ms >= ends_ms:
                told()
                then()
                return
            groups: dict[int, list[Partition]] = {}
            for partition in dice.some(victim.hosted.items, 1 + len(victim.hosted) // 12):
                if partition.leader not in (victim.id, -1) and not partition.moving:
                    groups.setdefault(partition.leader, []).append(partition)
            for leader, partitions in groups.items():
                self._topics.lag(leader, victim.id, partitions, dice.around(2 * MINUTE_MS))
            stage.after(2 * MINUTE_MS + dice.around(2 * MINUTE_MS), gust)

        gust()

    def unclean_election(self, then: Then) -> None:
        """Both replicas die one after another; the stale one is made leader, by hand."""
        stage = self._stage
        free = self._brokers.free()
        if len(free) < 4:
            then()
            return
        lost, stale = stage.dice.some(free, 2)
        topic, records = self._topics.pair((lost, stale))
        stage.cluster.adopt(topic)
        stage.answer(ALICE, "CreateTopics", records, "two replicas will do")
        partition = topic.partitions[0]

        def leader_dies() -> None:
            self._brokers.lose_session(lost, 3 * HOUR_MS, died=True, then=then)

        def enable() -> None:
            if partition.leader >= 0 or not stale.active:
                stage.after(5 * MINUTE_MS, enable)
                return
            config = ConfigRecord(ConfigResourceType.TOPIC, topic.name, UNCLEAN, "true")
            reason = "offline for half an hour; the owner accepts that writes are lost"
            stage.answer(ON_CALL, "IncrementalAlterConfigs", [config], reason)
            stage.after(20 * SECOND_MS, elect)

        def elect() -> None:
            if partition.leader >= 0:
                return
            change = stage.cluster.lead(
                partition, stale.id, (stale.id,), LeaderRecoveryState.RECOVERING
            )
            written = stage.answer(ON_CALL, "ElectLeaders", [change], "unclean, see the ticket")
            said = (
                f"{moment(stage.now_ms)}: heidi made stale broker {stale.id} the leader of "
                f"{topic.name}-0 (unclean election); what only broker {lost.id} had is lost."
            )
            stage.pen.tell(
                "unclean_election", partition.key, written, ON_CALL.principal, said, written
            )
            stage.after(30 * SECOND_MS, recovered)

        def recovered() -> None:
            if partition.leader == stale.id:
                change = stage.cluster.lead(
                    partition, stale.id, recovery=LeaderRecoveryState.RECOVERED
                )
                stage.write(self._brokers.calls(stale), "AlterPartition", [change])
            config = ConfigRecord(ConfigResourceType.TOPIC, topic.name, UNCLEAN, None)
            stage.answer(ON_CALL, "IncrementalAlterConfigs", [config], "back to normal")

        self._brokers.lose_session(stale, 20 * MINUTE_MS, died=False, then=_nothing)
        stage.after(5 * MINUTE_MS, leader_dies)
        stage.after(40 * MINUTE_MS, enable)

    # Topics at large.

    def big_change(self, then: Then) -> None:
        """A request that is many batches: one transaction, ended."""
        stage = self._stage
        records = self._many_topics(adopt=True)
        written = stage.answer(ALICE, "CreateTopics", records, "a new product line", pieces=4)
        said = (
            f"{moment(stage.now_ms)}: alice created many topics in one transaction over four "
            "batches."
        )
        stage.pen.tell("transaction_ended", "CreateTopics", written, ALICE.principal, said, written)
        then()

    def aborted_change(self, then: Then) -> None:
        """A reassignment of many partitions that is begun and aborted."""
        stage = self._stage
        records = self._topics.imagined_moves(48)
        if not records:
            then()
            return
        begun, provenance = stage.pen.begin_transaction(
            stage.now_ms, BOB, "AlterPartitionReassignments", records, "empty a rack", 3
        )
        ended = stage.pen.abort(stage.now_ms + 40, provenance, "the target brokers are full")
        said = (
            f"{moment(stage.now_ms)}: bob's reassignment of {len(records)} partitions was aborted "
            "half-way; nothing of it happened."
        )
        stage.pen.tell(
            "transaction_aborted",
            "AlterPartitionReassignments",
            begun,
            BOB.principal,
            said,
            ended,
        )
        then()

    def discarded_change(self, then: Then) -> None:
        """A deletion of topics that a controller's failure discards."""
        stage = self._stage
        records = self._topics.imagined_deletions(12)
        begun, _ = stage.pen.begin_transaction(
            stage.now_ms, ALICE, "DeleteTopics", records, WHY["DeleteTopics"][1], 2
        )
        ended = self.failover()
        said = (
            f"{moment(stage.now_ms)}: the controller failed while alice deleted {len(records)} "
            "topics; the new epoch discarded it, and they live."
        )
        stage.pen.tell("transaction_discarded", "DeleteTopics", begun, ALICE.principal, said, ended)
        then()

    def open_change(self) -> None:
        """A creation of topics that has not ended when the log does."""
        stage = self._stage
        records = self._many_topics(adopt=False)
        begun, _ = stage.pen.begin_transaction(
            stage.now_ms, ALICE, "CreateTopics", records, "a new product line", 3
        )
        said = (
            f"{moment(stage.now_ms)}: alice's creation of topics is still open where the log ends."
        )
        stage.pen.tell("transaction_open", "CreateTopics", begun, ALICE.principal, said)

    def _many_topics(self, *, adopt: bool) -> list[Record]:
        records: list[Record] = []
        for _ in range(6):
            topic, planned = self._topics.plan_usual()
            records += planned
            if adopt:
                self._stage.cluster.adopt(topic)
        return records

    def failover(self) -> Written:
        """Another controller is elected."""
        stage = self._stage
        stage.controller = 1 + (stage.controller + stage.dice.below(2)) % 3
        stage.pen.epoch += stage.dice.between(1, 2)
        written = stage.write(
            controller_actor(stage.controller),
            "BeginEpoch",
            [stage.begin_epoch()],
            "elected",
        )
        subject = f"controller:{stage.controller}"
        principal = f"Controller:{stage.controller}"
        stage.pen.tell("controller_failover", subject, written, principal, "", written)
        return written


def _both(first: Then, second: Then) -> Then:
    def call() -> None:
        first()
        second()

    return call


def _nothing() -> None:
    """What follows nothing."""
