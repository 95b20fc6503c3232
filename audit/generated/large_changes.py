"""Large changes: requests that are many batches, in a transaction that is ended, or is not.

Rule: nothing stands between the batches of a transaction, since decisions are made one after
another. What is not ended never happened: the model does not learn of it.
"""

from audit.generated.controllers import Controllers
from audit.generated.people import ALICE, BOB, WHY
from audit.generated.rhythm import moment
from audit.generated.stage import Stage, Then
from audit.generated.topics import Topics
from metadata.records import Record


class LargeChanges:
    """Transactions; each is over when the call returns."""

    def __init__(self, stage: Stage, topics: Topics, controllers: Controllers) -> None:
        self._stage = stage
        self._topics = topics
        self._controllers = controllers

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
        ended = self._controllers.failover()
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
