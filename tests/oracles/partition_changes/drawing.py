"""Draws partitions and changes of them from a seed.

Rule: the same dice give the same cases. Half of the changes are those of a manager: a broker is
fenced or unfenced, a leader changes its ISR, an election, a reassignment begins, is overlapped or
is cancelled, a directory is assigned. The other half set each part of the target by itself. A
partition is drawn whole, or it is what the change before left behind, so that long histories are
met, too.
"""

from collections.abc import Callable, Sequence
from random import Random
from typing import Final

import msgspec

from controller.managers.partition_change import ElectionMode, Rules, Target
from controller.managers.reassignments import _reverted, started
from metadata.image.partition import Partition
from metadata.records import NO_LEADER
from tests.oracles.partition_changes.lines import HIGHEST_LEVEL, Case, Change, Ids, directory

_MOST_REPLICAS: Final = 6
_FEW: Final = tuple(range(1, 9))
_MANY: Final = (*_FEW, 17, 33, 1_000_001, 2_147_483_647)
_LETTERS: Final = "aabbcUUMML"
_MODES: Final = (*[ElectionMode.ONLINE] * 2, ElectionMode.PREFERRED, ElectionMode.UNCLEAN)
_LEVELS: Final = (23, 25, HIGHEST_LEVEL)


def draw_cases(dice: Random, count: int, before: Sequence[Partition] = ()) -> list[Case]:
    """Return `count` cases; half of them go on from a partition in `before`, if there are any."""
    cases = []
    for number in range(count):
        goes_on = number < len(before) and dice.random() < 0.5
        partition = _fresh_epochs(before[number]) if goes_on else draw_partition(dice)
        cases.append(Case(partition, draw_change(dice, partition)))
    return cases


def draw_partition(dice: Random) -> Partition:
    """Return a partition; it may be one that no history leads to."""
    brokers = _MANY if dice.random() < 0.1 else _FEW
    replicas = tuple(dice.sample(brokers, dice.randint(1, _MOST_REPLICAS)))
    isr = _some(dice, replicas, least=int(dice.random() < 0.8))
    others = [replica for replica in replicas if replica not in isr]
    elr = tuple(sorted(_some(dice, others))) if dice.random() < 0.5 else ()
    removing, adding = _reassigning(dice, replicas)
    leader = dice.choice(isr) if isr and dice.random() < 0.8 else NO_LEADER
    last_known = _some(dice, replicas, most=2) if leader == NO_LEADER or dice.random() < 0.1 else ()
    return Partition(
        replicas=replicas,
        directories=(() if dice.random() < 0.1 else tuple(_draw_directory(dice) for _ in replicas)),
        isr=isr,
        elr=elr,
        last_known_elr=last_known,
        removing=removing,
        adding=adding,
        leader=leader,
        leader_recovery_state=int(dice.random() < 0.2),
        leader_epoch=0,
        partition_epoch=0,
    )


def draw_change(dice: Random, partition: Partition) -> Change:
    """Return a change of this partition."""
    draw = dice.choice(_OF_MANAGERS) if dice.random() < 0.5 else _draw_any_target
    target = draw(dice, partition)
    replicas = partition.replicas if target.replicas is None else target.replicas
    asked = ""
    if draw is _draw_reassignment:
        wanted = replicas[: len(replicas) - len({*partition.replicas} & {*(target.removing or ())})]
        asked = f"reassign={','.join(map(str, wanted))}"
    elif target.replicas is not None and draw is _draw_cancellation:
        asked = "cancel"
    return Change(
        target,
        _draw_alive(dice, partition, target, replicas),
        Rules(
            elr=dice.random() < (0.95 if partition.elr else 0.5),
            min_isr=min(dice.choice((1, 2, 2, 3, 4)), len(replicas)),
            mode=dice.choice(_MODES),
        ),
        _some(dice, replicas, most=2) if dice.random() < 0.2 else (),
        {
            broker: _draw_directory(dice)
            for broker in replicas
            if broker not in partition.replicas and dice.random() < 0.5
        },
        dice.choice(_LEVELS) if dice.random() < 0.1 else HIGHEST_LEVEL,
        asked,
    )


def _draw_alive(dice: Random, partition: Partition, target: Target, replicas: Ids) -> Ids:
    """Return brokers that may lead. A leader that a manager takes out of the ISR may seldom."""
    known = sorted({*replicas, *partition.replicas, *partition.last_known_elr})
    alive = {broker for broker in known if dice.random() < 0.65}
    if target.isr is not None and partition.leader not in target.isr and dice.random() < 0.9:
        alive.discard(partition.leader)
    return tuple(sorted(alive))


def _draw_isr_change(dice: Random, partition: Partition) -> Target:
    """A leader takes a follower out of the ISR or puts one in; it may report that it recovered."""
    isr = list(partition.isr)
    outside = [replica for replica in partition.replicas if replica not in isr]
    if outside and (dice.random() < 0.7 or not isr):
        isr.insert(dice.randint(0, len(isr)), dice.choice(outside))
    elif isr:
        isr.remove(dice.choice(isr))
    state = dice.choice((None, 0, partition.leader_recovery_state))
    return Target(isr=tuple(isr), recovery_state=state)


def _draw_all_in_sync(dice: Random, partition: Partition) -> Target:
    """A leader reports that every replica is in sync, but perhaps for one."""
    isr = dice.sample(partition.replicas, len(partition.replicas))
    return Target(isr=tuple(isr[dice.randint(0, 1) :]))


def _draw_broker_leaves(dice: Random, partition: Partition) -> Target:
    """A broker is fenced, stops, or comes back after an unclean shutdown."""
    gone = dice.choice(partition.replicas)
    return Target(isr=tuple(replica for replica in partition.isr if replica != gone))


def _draw_election(dice: Random, partition: Partition) -> Target:
    """A broker is unfenced, or somebody asks for an election: only the leader may change."""
    return Target()


def _draw_reassignment(dice: Random, partition: Partition) -> Target:
    """A reassignment begins, perhaps on top of a running one (KIP-455)."""
    wanted = list(partition.replicas)
    for _ in range(dice.randint(0, 3)):
        strangers = [broker for broker in _FEW if broker not in wanted]
        choice = dice.random()
        if choice < 0.4 and strangers:
            wanted[dice.randrange(len(wanted))] = dice.choice(strangers)
        elif choice < 0.6 and strangers and len(wanted) < _MOST_REPLICAS:
            wanted.insert(dice.randint(0, len(wanted)), dice.choice(strangers))
        elif choice < 0.8 and len(wanted) > 1:
            wanted.remove(dice.choice(wanted))
        else:
            dice.shuffle(wanted)
    return started(partition, tuple(wanted))


def _draw_cancellation(dice: Random, partition: Partition) -> Target:
    """A reassignment is cancelled: the brokers that it was adding leave."""
    if not partition.moving or {*partition.replicas} <= {*partition.adding}:
        return Target()
    return _reverted(partition, "0", unclean=True)


def _draw_directories(dice: Random, partition: Partition) -> Target:
    """Brokers assign directories to their replicas (KIP-858)."""
    brokers = _some(dice, partition.replicas, least=1, most=2)
    return Target(directories={broker: _draw_directory(dice) for broker in brokers})


def _draw_any_target(dice: Random, partition: Partition) -> Target:
    """Each part by itself."""
    replicas = removing = adding = None
    if dice.random() < 0.25:
        kept = _some(dice, partition.replicas)
        new = _some(dice, [one for one in _FEW if one not in kept], least=int(not kept), most=3)
        drawn = [*kept, *new]
        dice.shuffle(drawn)
        replicas = tuple(drawn)
    of = partition.replicas if replicas is None else replicas
    if replicas is not None or dice.random() < 0.3:
        removing, adding = _reassigning(dice, of)
    return Target(
        isr=_some(dice, of) if replicas is not None or dice.random() < 0.6 else None,
        replicas=replicas,
        removing=removing,
        adding=adding,
        recovery_state=dice.choice((None, None, 0, 1)),
        directories=(
            {broker: _draw_directory(dice) for broker in _some(dice, of, most=2)}
            if dice.random() < 0.2
            else {}
        ),
    )


_OF_MANAGERS: Final[Sequence[Callable[[Random, Partition], Target]]] = (
    _draw_isr_change,
    _draw_all_in_sync,
    _draw_broker_leaves,
    _draw_election,
    _draw_reassignment,
    _draw_cancellation,
    _draw_directories,
)


def _reassigning(dice: Random, replicas: Ids) -> tuple[Ids, Ids]:
    """Return removing and adding ones among the replicas; often none."""
    if dice.random() < 0.5:
        return (), ()
    removing = _some(dice, replicas, most=2)
    adding = _some(dice, [one for one in replicas if one not in removing], most=2)
    return tuple(sorted(removing)), tuple(sorted(adding))


def _some(dice: Random, of: Sequence[int], least: int = 0, most: int = _MOST_REPLICAS) -> Ids:
    return tuple(dice.sample(of, dice.randint(min(least, len(of)), min(most, len(of)))))


def _draw_directory(dice: Random) -> bytes:
    return directory(dice.choice(_LETTERS))


def _fresh_epochs(partition: Partition) -> Partition:
    return msgspec.structs.replace(partition, leader_epoch=0, partition_epoch=0)
