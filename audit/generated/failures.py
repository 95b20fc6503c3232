"""Failures: machines die, cables are bad, racks lose their power, disks are slow.

Rule: as works do, a failure takes its brokers, gives them back and is told when it is over. What
the cluster makes of it (fences, elections, ISRs) follows from the controllers alone.
"""

from itertools import islice

from audit.generated.brokers import lose_session, rack_name, report
from audit.generated.cast import BrokerProcess
from audit.generated.people import ALICE, ON_CALL
from audit.generated.replicas import lag
from audit.generated.rhythm import HOUR_MS, MINUTE_MS, SECOND_MS, moment
from audit.generated.stage import Stage, Story
from audit.generated.topics import pair
from metadata.messages import ElectionType, ElectLeadersRequest, TopicPartitions
from metadata.partition_key import PlainPartitionKey
from metadata.uuids import uuid_text


def broker_dies(stage: Stage) -> Story:
    """A machine is lost; somebody repairs it hours later."""
    free = stage.free
    if len(free) < 3:
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
    yield from lose_session(stage, broker, away_ms, died=True)
    told()


def broker_flaps(stage: Stage) -> Story:
    """A broker goes and comes back, again and again."""
    free = stage.free
    if len(free) < 3:
        return
    broker = stage.dice.pick(free)
    times = stage.dice.between(6, 9)
    told = stage.teller(
        "broker_flapped",
        f"broker:{broker.id}",
        f"Controller:{stage.leader}",
        f"broker {broker.id} flapped: fenced {times} times in short order (a bad cable).",
    )
    for _ in range(times):
        away_ms = 10 * SECOND_MS + stage.dice.around(20 * SECOND_MS)
        yield from lose_session(stage, broker, away_ms, died=False)
        yield 15 * SECOND_MS
    told()


def rack_outage(stage: Stage) -> Story:
    """All brokers of a rack fall silent within seconds."""
    dice = stage.dice
    racks: dict[int, list[BrokerProcess]] = {}
    for broker in stage.free:
        racks.setdefault(broker.rack, []).append(broker)
    if len(racks) < 2:
        return
    rack = dice.pick(sorted(racks))
    silent = racks.pop(rack)
    others = [broker for brokers in racks.values() for broker in brokers]
    more = ""
    if len(others) > 3:
        silent.append(dice.pick(others))
        more = ", one of them elsewhere, under the load of the rest"
    told = stage.teller(
        "rack_outage",
        f"rack:{rack_name(rack)}",
        f"Controller:{stage.leader}",
        f"{rack_name(rack)} lost its power: {len(silent)} brokers were fenced{more}.",
    )
    away_ms = 12 * MINUTE_MS + dice.around(8 * MINUTE_MS)
    lost: list[Story] = []
    for number, broker in enumerate(silent):
        broker.busy = True
        ours = broker.rack == rack
        mine_ms = away_ms // (1 if ours else 3) + dice.around(30 * SECOND_MS)
        begins_ms = (number if ours else 400) * 300 + dice.below(300)
        lost.append(_later(begins_ms, lose_session(stage, broker, mine_ms, died=ours)))
    yield lost
    told()


def _later(begins_ms: int, story: Story) -> Story:
    yield begins_ms
    yield from story


def isr_storm(stage: Stage) -> Story:
    """A broker's disk is slow: its leaders drop it and take it back for an hour."""
    dice, cast, free = stage.dice, stage.cast, stage.free
    if len(free) < 3:
        return
    victim = dice.pick(free)
    told = stage.teller(
        "isr_storm",
        f"broker:{victim.id}",
        "",
        f"broker {victim.id} had a slow disk: ISRs shrank and grew for an hour.",
    )
    ends_ms = stage.now_ms + HOUR_MS
    most = 2 + cast.partitions // 500
    while stage.now_ms < ends_ms:
        image = stage.image
        groups: dict[int, list[PlainPartitionKey]] = {}
        for broker in stage.active:
            followed = cast.followed(broker.id, victim.id, dice.fraction(), image)
            for key, partition in islice(followed, 1 + dice.below(most)):
                if partition.leader == broker.id and not partition.adding:
                    groups.setdefault(broker.id, []).append(key)
        for leader, partitions in groups.items():
            lag(stage, leader, victim.id, partitions, dice.around(2 * MINUTE_MS))
        yield 2 * MINUTE_MS + dice.around(2 * MINUTE_MS)
    told()


def unclean_election(stage: Stage) -> Story:
    """Both replicas die one after another; the stale one is made leader, by hand."""
    free = stage.free
    if len(free) < 4:
        return
    lost, stale = stage.dice.some(free, 2)
    key = pair(stage, ALICE, (lost, stale))
    stage.play(lose_session(stage, stale, 20 * MINUTE_MS, died=False))
    stage.play(_made_leader(stage, key, lost, stale))
    yield 5 * MINUTE_MS
    yield from lose_session(stage, lost, 3 * HOUR_MS, died=True)


def _made_leader(
    stage: Stage, key: PlainPartitionKey, lost: BrokerProcess, stale: BrokerProcess
) -> Story:
    name = stage.image.topics.by_id[key[0]].name
    yield 40 * MINUTE_MS
    while stage.image.topics.partitions[key].leader >= 0 or not stale.is_active(stage.image):
        yield 5 * MINUTE_MS
    request = ElectLeadersRequest(ElectionType.UNCLEAN, (TopicPartitions(name, (0,)),))
    reason = "offline for half an hour; the owner accepts that writes are lost"
    answered = stage.ask(ON_CALL, "elect_leaders", request, reason)
    said = (
        f"{moment(stage.now_ms)}: heidi made stale broker {stale.id} the leader of "
        f"{name}-0 (unclean election); what only broker {lost.id} had is lost."
    )
    subject = f"{name}-0@{uuid_text(key[0])}"
    stage.tell("unclean_election", subject, answered, ON_CALL.principal, said)
    yield 30 * SECOND_MS
    # Whoever was elected uncleanly has recovered, and says so.
    report(stage, stale.id, [(key, stage.image.topics.partitions[key].isr)])
