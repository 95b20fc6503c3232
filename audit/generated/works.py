"""Works: what people plan and do to brokers, controllers and rights, over hours.

Rule: a work takes the brokers it needs when it begins and gives them back at its end; it is told as
a fact when it is over, from its first offset to its last.
"""

from itertools import islice

from audit.generated import brokers, coordinating, security
from audit.generated.cast import BrokerProcess
from audit.generated.people import ALICE, BOB, DEPLOY_BOT, SECURITY, Actor
from audit.generated.replicas import move
from audit.generated.rhythm import DAY_MS, HOUR_MS, MINUTE_MS, SECOND_MS, moment
from audit.generated.stage import CONTROLLERS, Stage, Story
from metadata.messages import WantedState

_THIEF = Actor("User:connect", "token", "10.9.77.3", "curl")
_FRIEND = "User:mallory"
_EVERYTHING = ("CLUSTER", "kafka-cluster"), ("TOPIC", "*")


def deployment(stage: Stage) -> Story:
    """Every broker is restarted, one after another."""
    cast = stage.cast
    cast.software = min(cast.software + 1, brokers.SOFTWARE_MOST)
    cast.deployments += 1
    told = stage.teller(
        "deployment",
        "brokers",
        DEPLOY_BOT.principal,
        f"deploy-bot rolled out a release to {len(stage.free)} brokers, "
        "one by one, then to the controllers.",
    )
    release = coordinating.begin_deployment(stage, f"2026.{cast.deployments}")
    for broker_id in list(cast.brokers):
        broker = cast.brokers.get(broker_id)
        if broker is not None and broker.is_active(stage.image) and not broker.busy:
            yield from brokers.restart(stage, broker)
            yield 30 * SECOND_MS + stage.dice.around(MINUTE_MS)
    _restart_controllers(stage)
    release()
    told()


def _restart_controllers(stage: Stage) -> None:
    """Each controller is restarted, the leader last: another leads then."""
    rehearsal = stage.rehearsal
    old = rehearsal.leader_id
    for number in CONTROLLERS:
        if number != old:
            rehearsal.restart(number)
    fail_over(stage)
    rehearsal.restart(old)
    rehearsal.announce()
    stage.collect()


def fail_over(stage: Stage) -> None:
    """Another controller is elected."""
    others = [number for number in CONTROLLERS if number != stage.leader]
    epoch = stage.rehearsal.epoch + stage.dice.between(1, 2)
    stage.rehearsal.elect(stage.dice.pick(others), epoch)
    stage.collect()


def replace_broker(stage: Stage) -> Story:
    """A broker's partitions move to a new one, and it is forgotten."""
    cast, free = stage.cast, stage.free
    if len(free) < 4:
        return
    old = stage.dice.pick(free)
    new = BrokerProcess(max(cast.brokers) + 1, old.rack, (stage.dice.uuid(),))
    held = stage.image.topics.replicas_on(old.id)
    told = stage.teller(
        "broker_replaced",
        f"broker:{old.id}",
        BOB.principal,
        f"bob replaced broker {old.id} by broker {new.id}; the balancer moved {held} replicas.",
    )
    old.busy = new.busy = True
    cast.brokers[new.id] = new
    yield from brokers.come_back(stage, new, new_process=True)
    # It takes no new replicas, where the cluster's level lets it say so (KIP-1066).
    stage.rehearsed_brokers.report_directories(old.actor().caller, old.id, cordoned=old.log_dirs)
    stage.collect()
    while True:
        topics = stage.rehearsal.settled().topics
        if not topics.replicas_on(old.id):
            break
        movable = (
            key
            for key in topics.held_by(old.id)
            for partition in (topics.partitions[key],)
            if not (partition.adding or partition.removing)
            and partition.leader >= 0
            and new.id not in partition.replicas
            and old.id in partition.isr
        )
        move(stage, list(islice(movable, max(10, held // 20))), old.id, new.id)
        yield 4 * MINUTE_MS
    brokers.wants(stage, old, WantedState.STOPPING)
    yield 2 * SECOND_MS
    brokers.stopped(stage, old)
    yield 10 * MINUTE_MS
    del cast.brokers[old.id]
    stage.ask(BOB, "unregister_broker", None, "hardware is out of warranty", id=str(old.id))
    new.busy = False
    told()


def raise_level(stage: Stage, name: str, level: int, why: str) -> Story:
    """Raise a level; later again, if a broker or controller is not ready for it."""
    while True:
        before, begun = stage.image.features.levels.get(name, 0), (stage.offset, stage.now_ms)
        if security.feature(stage, name, level, ALICE, why):
            break
        yield HOUR_MS
    said = f"{moment(stage.now_ms)}: alice raised {name} from {before} to {level}."
    stage.tell_since("upgrade", f"feature:{name}", begun, ALICE.principal, said)


def intrusion(stage: Stage) -> Story:
    """A stolen token grants its thief everything, at night; hours later somebody finds out.

    It is what an auditor must find by the address, the hour and the operations; nothing marks it.
    """
    yield (stage.now_ms // DAY_MS + 1) * DAY_MS + 3 * HOUR_MS - stage.now_ms
    told = stage.teller(
        "intrusion",
        f"acl:{_FRIEND}",
        _THIEF.principal,
        f"connect's token was used from {_THIEF.address} to give {_FRIEND} all rights; dave found "
        "out five hours later.",
    )
    for resource in _EVERYTHING:
        security.allow(stage, _THIEF, _FRIEND, resource, ("ALL",), "", "LITERAL")
    yield MINUTE_MS
    security.set_password(stage, _THIEF, "mallory")
    yield 5 * HOUR_MS - MINUTE_MS
    security.revoke_all_of(stage, SECURITY, _FRIEND, "nobody knows this user: incident 77")
    told()
