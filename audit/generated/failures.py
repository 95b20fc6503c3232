"""Failures: machines die, cables are bad, racks lose their power, disks are slow.

Rule: as works do, a failure takes its brokers, gives them back and is told when it is over. What
the cluster makes of it (fences, elections, ISRs) follows from the model alone.
"""

from functools import partial
from itertools import islice

from audit.generated.brokers import Brokers
from audit.generated.cast import BrokerProcess, Cast
from audit.generated.people import ALICE, ON_CALL
from audit.generated.replicas import Replicas
from audit.generated.rhythm import HOUR_MS, MINUTE_MS, SECOND_MS, moment
from audit.generated.stage import Stage, Then, nothing
from audit.generated.topics import Topics
from metadata.messages import ElectionType, ElectLeadersRequest, TopicPartitions
from metadata.partition_key import PlainPartitionKey
from metadata.uuids import uuid_text


class Failures:
    """Each begins when it is called; `then` goes on when it is over."""

    def __init__(
        self, stage: Stage, cast: Cast, brokers: Brokers, topics: Topics, replicas: Replicas
    ) -> None:
        self._stage = stage
        self._cast = cast
        self._brokers = brokers
        self._topics = topics
        self._replicas = replicas

    def broker_dies(self, then: Then) -> None:
        """A machine is lost; somebody repairs it hours later."""
        stage = self._stage
        free = self._cast.free(stage.image)
        if len(free) < 3:
            then()
            return
        topics = stage.rehearsal.settled().topics
        broker = max(free, key=lambda one: (topics.replicas_on(one.id), one.id))
        told = stage.teller(
            "broker_died",
            f"broker:{broker.id}",
            f"Controller:{stage.leader}",
            f"broker {broker.id} died and was away for hours; partitions with one replica had no "
            "leader.",
        )
        away_ms = 2 * HOUR_MS + stage.dice.around(HOUR_MS)
        self._brokers.lose_session(broker, away_ms, died=True, then=_both(told, then))

    def broker_flaps(self, then: Then) -> None:
        """A broker goes and comes back, again and again."""
        stage = self._stage
        free = self._cast.free(stage.image)
        if len(free) < 3:
            then()
            return
        broker = stage.dice.pick(free)
        times = stage.dice.between(6, 9)
        told = stage.teller(
            "broker_flapped",
            f"broker:{broker.id}",
            f"Controller:{stage.leader}",
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
        racks: dict[int, list[BrokerProcess]] = {}
        for broker in self._cast.free(stage.image):
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
        told = stage.teller(
            "rack_outage",
            f"rack:{name}",
            f"Controller:{stage.leader}",
            f"{name} lost its power: {len(silent)} brokers were fenced{more}.",
        )
        waiting = list(silent)

        def back(broker: BrokerProcess) -> None:
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
        free = self._cast.free(stage.image)
        if len(free) < 3:
            then()
            return
        victim = dice.pick(free)
        told = stage.teller(
            "isr_storm",
            f"broker:{victim.id}",
            "",
            f"broker {victim.id} had a slow disk: ISRs shrank and grew for an hour.",
        )
        ends_ms = stage.now_ms + HOUR_MS
        most = 2 + self._cast.partitions // 500

        def gust() -> None:
            if stage.now_ms >= ends_ms:
                told()
                then()
                return
            image = stage.image
            groups: dict[int, list[PlainPartitionKey]] = {}
            for broker in self._cast.active(image):
                followed = self._cast.followed(broker.id, victim.id, dice.fraction(), image)
                for key, partition in islice(followed, 1 + dice.below(most)):
                    if partition.leader == broker.id and not partition.adding:
                        groups.setdefault(broker.id, []).append(key)
            for leader, partitions in groups.items():
                self._replicas.lag(leader, victim.id, partitions, dice.around(2 * MINUTE_MS))
            stage.after(2 * MINUTE_MS + dice.around(2 * MINUTE_MS), gust)

        gust()

    def unclean_election(self, then: Then) -> None:
        """Both replicas die one after another; the stale one is made leader, by hand."""
        stage = self._stage
        free = self._cast.free(stage.image)
        if len(free) < 4:
            then()
            return
        lost, stale = stage.dice.some(free, 2)
        key = self._topics.pair(ALICE, (lost, stale))
        name = stage.image.topics.by_id[key[0]].name

        def leader_dies() -> None:
            self._brokers.lose_session(lost, 3 * HOUR_MS, died=True, then=then)

        def elect() -> None:
            if stage.image.topics.partitions[key].leader >= 0 or not stale.is_active(stage.image):
                stage.after(5 * MINUTE_MS, elect)
                return
            named = (TopicPartitions(name, (0,)),)
            request = ElectLeadersRequest(ElectionType.UNCLEAN, named)
            reason = "offline for half an hour; the owner accepts that writes are lost"
            answered = stage.ask(ON_CALL, "elect_leaders", request, reason)
            said = (
                f"{moment(stage.now_ms)}: heidi made stale broker {stale.id} the leader of "
                f"{name}-0 (unclean election); what only broker {lost.id} had is lost."
            )
            subject = f"{name}-0@{uuid_text(key[0])}"
            stage.tell("unclean_election", subject, answered, ON_CALL.principal, said)
            stage.after(30 * SECOND_MS, lambda: self._brokers.recovered(stale.id, key))

        self._brokers.lose_session(stale, 20 * MINUTE_MS, died=False, then=nothing)
        stage.after(5 * MINUTE_MS, leader_dies)
        stage.after(40 * MINUTE_MS, elect)


def _both(first: Then, second: Then) -> Then:
    def call() -> None:
        first()
        second()

    return call
