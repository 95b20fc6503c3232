"""Replicas' lives: they lag and catch up, are moved between brokers, find their directories.

Rule: who reports an ISR leads the partition at that moment; a move is over when the new replica is
in sync, and then the controllers remove the old one.
"""

from functools import partial
from itertools import islice

from audit.generated.brokers import catch_up, report
from audit.generated.people import BALANCER, WHY
from audit.generated.rhythm import MINUTE_MS, SECOND_MS
from audit.generated.stage import Stage, Story
from audit.generated.topics import some_partition
from metadata import messages
from metadata.partition_key import PlainPartitionKey
from metadata.records import DIRECTORY_UNASSIGNED
from metadata.uuids import uuid_text


def wobble(stage: Stage) -> None:
    """A follower lags behind a leader for a while: out of some ISRs, and in again."""
    dice, image = stage.dice, stage.image
    first = image.topics.partitions[some_partition(stage)]
    followers = [replica for replica in first.isr if replica != first.leader]
    if first.leader < 0 or not followers:
        return
    victim, wanted = dice.pick(followers), 1 + dice.below(2 * stage.cast.wobble)
    followed = stage.cast.followed(first.leader, victim, dice.fraction(), image)
    found = (
        key
        for key, partition in islice(followed, 8 * wanted)
        if partition.leader == first.leader
        and victim in partition.isr
        and not (partition.adding or partition.removing)
    )
    keys = list(islice(found, wanted))
    lag(stage, first.leader, victim, keys, 20 * SECOND_MS + dice.around(2 * MINUTE_MS))


def lag(
    stage: Stage, leader: int, victim: int, keys: list[PlainPartitionKey], lasts_ms: int
) -> None:
    """A leader drops a follower from ISRs, and takes it back later."""
    partitions = stage.image.topics.partitions
    isrs = [(key, partitions[key].isr) for key in keys if partitions.get(key) is not None]
    dropped = [
        (key, tuple(replica for replica in isr if replica != victim))
        for key, isr in isrs
        if victim in isr
    ]
    if dropped and report(stage, leader, dropped):
        stage.after(lasts_ms, partial(catch_up, stage, victim, keys))


def reassign(stage: Stage) -> None:
    """The balancer moves a replica of some partitions from one broker to another."""
    dice, image = stage.dice, stage.image
    free = stage.free
    if len(free) < 3:
        return
    source, target, other = dice.some(free, 3)
    first, follower = (source, other) if dice.chance(0.5) else (other, source)
    followed = stage.cast.followed(first.id, follower.id, dice.fraction(), image)
    movable = [
        key
        for key, partition in islice(followed, 200)
        if target.id not in partition.replicas
        and not (partition.adding or partition.removing)
        and partition.leader >= 0
        and len(partition.isr) == len(partition.replicas)
    ]
    move(stage, dice.some(movable, 1 + dice.below(12)), source.id, target.id)


def move(stage: Stage, keys: list[PlainPartitionKey], source: int, target: int) -> None:
    """Replace a replica: added, copied, in sync, the old one removed."""
    if not keys:
        return
    reason = stage.dice.pick(WHY["AlterPartitionReassignments"])
    stage.ask(BALANCER, "alter_reassignments", asked_moves(stage, keys, source, target), reason)
    partitions = stage.image.topics.partitions
    groups: dict[int, list[PlainPartitionKey]] = {}
    for key in keys:
        groups.setdefault(partitions[key].leader, []).append(key)
    for moved in groups.values():
        stage.play(_arrive(stage, moved, target))


def asked_moves(
    stage: Stage, keys: list[PlainPartitionKey], source: int, target: int
) -> messages.AlterReassignmentsRequest:
    """Return the request that replaces one broker by another."""
    topics = stage.image.topics
    return messages.AlterReassignmentsRequest(
        tuple(
            messages.Reassignment(
                topics.by_id[key[0]].name,
                key[1],
                tuple(target if r == source else r for r in topics.partitions[key].replicas),
            )
            for key in keys
        )
    )


def _arrive(stage: Stage, keys: list[PlainPartitionKey], target: int) -> Story:
    """The new replicas are in sync; later, if their brokers are away."""
    yield MINUTE_MS + stage.dice.around(8 * MINUTE_MS)
    while keys:
        catch_up(stage, target, keys)
        waiting = []
        for key in keys:
            partition = stage.image.topics.partitions.get(key)
            if partition is None:
                continue
            if partition.adding:
                waiting.append(key)
                continue
            first = partition.replicas[0]
            for follower in partition.replicas[1:]:
                if target in (first, follower):
                    stage.cast.follows(first, follower, key)
        keys = waiting
        if keys:
            yield 2 * MINUTE_MS


def assign_directories(stage: Stage) -> None:
    """A broker with many disks says where new replicas lie (KIP-858)."""
    dice, image = stage.dice, stage.image
    several = [each for each in stage.free if len(each.log_dirs) > 1]
    if not several:
        return
    broker = dice.pick(several)
    said: dict[PlainPartitionKey, messages.ReplicaInDirectory] = {}
    for _ in range(60):
        key = some_partition(stage)
        partition = image.topics.partitions[key]
        if broker.id not in partition.replicas:
            continue
        if partition.directories[partition.replicas.index(broker.id)] != DIRECTORY_UNASSIGNED:
            continue
        directory = uuid_text(dice.pick(broker.log_dirs))
        one = messages.ReplicaInDirectory(uuid_text(key[0]), key[1], directory)
        said.setdefault(key, one)
    if said:
        request = messages.AssignReplicasRequest(
            cluster_id=stage.cluster_id,
            broker_epoch=image.cluster.brokers[broker.id].broker_epoch,
            replicas=tuple(said.values()),
        )
        stage.rehearsed_brokers.assign_directories(broker.actor().caller, broker.id, request)
        stage.collect()
