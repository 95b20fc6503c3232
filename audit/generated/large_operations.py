"""Large operations: requests that are many batches, in a transaction that is ended, or is not.

Rule: nothing stands between the batches of a transaction, since decisions are made one after
another. What is not ended never happened. A short history has no change that is larger than a
batch, so for these the controllers divide a change sooner than they usually do.
"""

from itertools import islice
from typing import Final

from audit.generated.people import ALICE, BOB
from audit.generated.replicas import asked_moves
from audit.generated.rhythm import moment
from audit.generated.stage import Stage
from audit.generated.topics import Planned, create_planned, plan_usual
from audit.generated.works import fail_over
from controller.rehearsal.rehearsal import Answered

_PIECE_BYTES: Final = 900
"""Some ten partitions."""
_MOVES: Final = 48
_TOPICS: Final = 6
_PARTITIONS: Final = 40
"""At least four pieces."""


def big_change(stage: Stage) -> None:
    """A request that is many batches: one transaction, ended."""
    planned = _many_topics(stage)
    answered = _create(stage, planned, settles=True)
    said = f"alice created {len(planned)} topics in one transaction over several batches."
    said = f"{moment(answered.time_ms)}: {said}"
    stage.tell("transaction_ended", "CreateTopics", answered, ALICE.principal, said)


def aborted_change(stage: Stage) -> None:
    """A reassignment of many partitions that a defect of the controller stops half-way."""
    free, rehearsal = stage.free, stage.rehearsal
    if len(free) < 4:
        return
    source, target = stage.dice.some(free, 2)
    topics = rehearsal.settled().topics
    movable = (
        key
        for key in topics.held_by(source.id)
        for partition in (topics.partitions[key],)
        if target.id not in partition.replicas and not partition.adding
    )
    keys = list(islice(movable, _MOVES))
    if len(keys) < 2:
        return
    request = asked_moves(stage, keys, source.id, target.id)
    rehearsal.cut_at(len(keys) * 20)
    why = BOB.headers("empty a rack")
    answered = rehearsal.ask(BOB.caller, "alter_reassignments", request, headers=why, spoil=True)
    rehearsal.cut_at(None)
    stage.collect()
    said = (
        f"{moment(answered.time_ms)}: bob's reassignment of {len(keys)} partitions was aborted "
        "half-way by a defect of the controller; nothing of it happened."
    )
    operation = "AlterPartitionReassignments"
    stage.tell("transaction_aborted", operation, answered, BOB.principal, said)


def discarded_change(stage: Stage) -> None:
    """A creation of topics that a controller's failure discards."""
    planned = _many_topics(stage)
    stage.rehearsal.lose_office_after(2)
    begun = _create(stage, planned, settles=False)
    fail_over(stage)
    said = (
        f"{moment(begun.time_ms)}: the controller failed while alice created {len(planned)} "
        "topics; the new epoch discarded it, and there are none of them."
    )
    at = begun.base_offset, begun.time_ms
    stage.tell_since("transaction_discarded", "CreateTopics", at, ALICE.principal, said)


def open_change(stage: Stage) -> None:
    """A creation of topics that has not ended when the log does."""
    stage.rehearsal.lose_office_after(3)
    begun = _create(stage, _many_topics(stage), settles=False)
    said = f"{moment(stage.now_ms)}: alice's creation of topics is still open where the log ends."
    at = begun.base_offset, begun.time_ms
    stage.chronicle.tell("transaction_open", "CreateTopics", at, None, ALICE.principal, said)


def _many_topics(stage: Stage) -> list[Planned]:
    """Draw six topics, or more if these are small, so that they are several pieces."""
    planned: list[Planned] = []
    while len(planned) < _TOPICS or sum(p.wanted.num_partitions for p in planned) < _PARTITIONS:
        planned.append(plan_usual(stage))
    return planned


def _create(stage: Stage, planned: list[Planned], *, settles: bool) -> Answered:
    stage.rehearsal.cut_at(_PIECE_BYTES)
    answered = create_planned(stage, ALICE, planned, "a new product line", settles=settles)
    stage.rehearsal.cut_at(None)
    return answered
