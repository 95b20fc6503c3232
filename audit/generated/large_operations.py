"""Large operations: requests that are many batches, in a transaction that is ended, or is not.

Rule: nothing stands between the batches of a transaction, since decisions are made one after
another. What is not ended never happened. A short history has no change that is larger than a
batch, so for these the controllers divide a change sooner than they usually do.
"""

from collections.abc import Sequence
from typing import Final

from audit.generated.cast import Cast
from audit.generated.controllers import Controllers
from audit.generated.people import ALICE, BOB, Actor
from audit.generated.replicas import Replicas
from audit.generated.rhythm import moment
from audit.generated.stage import Stage, Then
from audit.generated.topics import Planned, Topics
from controller.rehearsal.rehearsal import Answered
from metadata.messages import CreateTopicsRequest

_PIECE_BYTES: Final = 900
"""Some ten partitions."""
_MOVES: Final = 48
_TOPICS: Final = 6
_PARTITIONS: Final = 40
"""At least four pieces."""
_WHY: Final = "a new product line"


class LargeOperations:
    """Transactions; each is over when the call returns."""

    def __init__(
        self,
        stage: Stage,
        cast: Cast,
        topics: Topics,
        replicas: Replicas,
        controllers: Controllers,
    ) -> None:
        self._stage = stage
        self._cast = cast
        self._topics = topics
        self._replicas = replicas
        self._controllers = controllers

    def big_change(self, then: Then) -> None:
        """A request that is many batches: one transaction, ended."""
        planned = self._many_topics()
        answered = self._create(ALICE, planned)
        self._topics.created(answered, planned)
        said = f"alice created {len(planned)} topics in one transaction over several batches."
        self._tell("ended", "CreateTopics", answered, ALICE, said)
        then()

    def aborted_change(self, then: Then) -> None:
        """A reassignment of many partitions that a defect of the controller stops half-way."""
        stage = self._stage
        free = self._cast.free(stage.image)
        if len(free) < 4:
            then()
            return
        source, target = stage.dice.some(free, 2)
        topics = stage.rehearsal.settled().topics
        keys = []
        for key in topics.held_by(source.id):
            partition = topics.partitions[key]
            if target.id not in partition.replicas and not partition.adding:
                keys.append(key)
                if len(keys) == _MOVES:
                    break
        if len(keys) < 2:
            then()
            return
        request = self._replicas.asked_moves(keys, source.id, target.id)
        stage.rehearsal.cut_at(len(keys) * 20)
        answered = stage.rehearsal.ask(
            BOB.caller,
            "alter_reassignments",
            request,
            headers=BOB.headers("empty a rack"),
            spoil=True,
        )
        stage.rehearsal.cut_at(None)
        stage.collect()
        said = (
            f"bob's reassignment of {len(keys)} partitions was aborted half-way by a defect of the "
            "controller; nothing of it happened."
        )
        self._tell("aborted", "AlterPartitionReassignments", answered, BOB, said)
        then()

    def discarded_change(self, then: Then) -> None:
        """A creation of topics that a controller's failure discards."""
        stage = self._stage
        planned = self._many_topics()
        stage.rehearsal.lose_office_after(2)
        begun = self._create(ALICE, planned)
        self._controllers.failover()
        said = (
            f"{moment(begun.time_ms)}: the controller failed while alice created {len(planned)} "
            "topics; the new epoch discarded it, and there are none of them."
        )
        at = begun.base_offset, begun.time_ms
        stage.tell_since("transaction_discarded", "CreateTopics", at, ALICE.principal, said)
        then()

    def open_change(self) -> None:
        """A creation of topics that has not ended when the log does."""
        stage = self._stage
        stage.rehearsal.lose_office_after(3)
        begun = self._create(ALICE, self._many_topics())
        said = (
            f"{moment(stage.now_ms)}: alice's creation of topics is still open where the log ends."
        )
        at = begun.base_offset, begun.time_ms
        stage.chronicle.tell("transaction_open", "CreateTopics", at, None, ALICE.principal, said)

    def _many_topics(self) -> list[Planned]:
        """Draw six topics, or more if these are small, so that they are several pieces."""
        planned: list[Planned] = []
        partitions = 0
        while len(planned) < _TOPICS or partitions < _PARTITIONS:
            planned.append(self._topics.plan_usual())
            partitions += planned[-1].wanted.num_partitions
        return planned

    def _create(self, actor: Actor, planned: Sequence[Planned]) -> Answered:
        rehearsal = self._stage.rehearsal
        rehearsal.cut_at(_PIECE_BYTES)
        request = CreateTopicsRequest(tuple(each.wanted for each in planned))
        answered = self._stage.ask(actor, "create_topics", request, _WHY)
        rehearsal.cut_at(None)
        return answered

    def _tell(
        self, ending: str, operation: str, answered: Answered, actor: Actor, said: str
    ) -> None:
        sentence = f"{moment(answered.time_ms)}: {said}"
        kind = f"transaction_{ending}"
        self._stage.tell(kind, operation, answered, actor.principal, sentence)
