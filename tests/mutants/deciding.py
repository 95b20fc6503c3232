"""Mutants of the active controller: its decisions, outcomes, answers, and their order."""

from collections.abc import Callable
from typing import Any

import msgspec

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, around, edited, gives, instead


def _at_once(_self: Any, *arguments: Any) -> None:
    """Whatever is waited for: it is there."""
    arguments[-1](True)


def _read_what_is_proposed(read: Callable[..., Any], self: Any) -> Any:
    view, pending = read(self), self.leader.proposer.pending
    return view if pending is None else view._replace(image=pending.image)


def _placed_before(placed: Callable[..., Any], reply: Any, offset: int, *rest: Any) -> Any:
    return placed(reply, offset - 1, *rest)


def _another_id(request_key: Callable[..., Any], request: Any, *rest: Any) -> Any:
    """As if the client had sent none."""
    return request_key(msgspec.structs.replace(request, headers={}), *rest)


def _note_again(note: Callable[..., Any], self: Any, record: Any, offset: int) -> None:
    if record.key not in self.by_key:
        note(self, record, offset)


def _ship_what_is_proposed(find: Callable[..., Any], self: Any, request: Any) -> Any:
    """A fetcher that has all that is committed gets the oldest batch that is not, too."""
    content = find(self, request)
    proposed = self._ledger.__self__.files._applier.pending
    if content.something or proposed is None or not proposed._batches:
        return content
    batch = proposed.oldest()
    if batch.header.base_offset != request.fetched_offset:
        return content
    reply = msgspec.structs.replace(content.reply, batches=(batch.encoded,), state_hash=None)
    return content._replace(reply=reply, something=True)


def _go_on_from_before(
    activate: Callable[..., Any], self: Any, epoch: int, ledger: Any, levels: Any
) -> None:
    """Begin an epoch with what was pending in the last one."""
    if self._elected != epoch or ledger is None:
        return
    before = getattr(self, "_kept", None)
    if before is not None and before.mark.log_end > self._applier.image.offset:
        self._applier.image, image = before.settled(), self._applier.image
        try:
            activate(self, epoch, ledger, levels)
        finally:
            self._applier.image = image
    else:
        activate(self, epoch, ledger, levels)


def _keep_pending(end: Callable[..., Any], self: Any) -> None:
    self._kept = self._proposer.pending or getattr(self, "_kept", None)
    end(self)


_GROUP = "controller.replica.open_group.OpenGroup."

DECIDING = (
    Mutant(
        "acknowledgement before commit",
        "1, I5",
        "A change is answered when it is proposed.",
        (Patch("controller.replica.pending.Pending.when_committed", instead(_at_once)),),
        searched_in("answers", "", "rivals"),
    ),
    Mutant(
        "stale read",
        "2, I7",
        "A linearizable read asks nobody whether this node still leads.",
        (Patch("controller.replica.reads.ImageReads.linearizable", instead(_at_once)),),
        searched_in("answers", "rivals"),
    ),
    Mutant(
        "read of what is not committed",
        "2, I7",
        "Reads see what is proposed.",
        (
            Patch("controller.http.node_view.NodeView.read", around(_read_what_is_proposed)),
            Patch("controller.http.node_view.NodeView.read_now", around(_read_what_is_proposed)),
        ),
        searched_in("answers", "rivals"),
    ),
    Mutant(
        "read below minOffset",
        "2, 4, I7",
        "A read that must see its own writes is answered from what is here.",
        (Patch("controller.replica.reads.ImageReads.at_least", instead(_at_once)),),
        searched_in("answers", "rivals"),
    ),
    Mutant(
        "answer names another offset",
        "2, I7",
        "An answer says an offset below its change.",
        (Patch("controller.leader.changes._placed", around(_placed_before)),),
        searched_in("answers", ""),
    ),
    Mutant(
        "refusal without a majority",
        "2, I7",
        "Who was replaced while it stood still refuses by what its successor has changed.",
        (
            Patch(
                "controller.leader.changes.Changes._confirmed",
                instead(lambda _self, outcome, tell: tell(outcome)),
            ),
        ),
        searched_in("answers", "rivals", "stranded"),
    ),
    Mutant(
        "condition not checked",
        "2, I7",
        "A conditional change is made whatever has changed.",
        (Patch("controller.leader.conditions._is_stale", gives(False)),),
        searched_in("answers", "conditions"),
    ),
    Mutant(
        "condition believed across epochs",
        "2, I7",
        "A new leader takes what it never saw as unchanged.",
        (
            Patch(
                "controller.leader.last_changes.LastChanges.begin",
                edited(("self.floor = offset", "self.floor = 0")),
            ),
        ),
        searched_in("answers", "conditions"),
    ),
    Mutant(
        "idempotency forgotten",
        "5, I9",
        "Request ids are ignored: a retry is another request.",
        (Patch("controller.leader.changes.request_key", around(_another_id)),),
        searched_in("answers", ""),
    ),
    Mutant(
        "request executed twice",
        "5, I9",
        "A request id that is remembered is executed again, and noted once.",
        (
            Patch("controller.leader.idempotency.Idempotency.recall", gives(None)),
            Patch("metadata.image.outcomes.OutcomesDelta.note", around(_note_again)),
        ),
        searched_in("answers", "rivals"),
    ),
    Mutant(
        "request digest not compared",
        "5, I9",
        "The same id with another request gets the first one's answer.",
        (
            Patch(
                "controller.leader.idempotency.Idempotency.recall",
                edited(("if outcome.digest != key.digest:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "forgotten request is executed again",
        "5, I9",
        "A request id at or below the floor is taken for a new one. Guarded twice: both are off.",
        (
            Patch(
                "controller.leader.idempotency.Idempotency.recall",
                edited(("if key.request_id <= image.outcomes.floor:", "if False:")),
            ),
            Patch(
                "metadata.image.outcomes.OutcomesDelta.note",
                edited(('if key <= (self.floors.get(_FLOOR) or b""):', "if False:")),
            ),
        ),
    ),
    Mutant(
        "double apply",
        "1, 5, I4",
        "Batches that the image holds already are replayed into it again after a restart.",
        (
            Patch(
                "controller.replica.applier.Applier._apply",
                edited((" and batch.header.end_offset > self._replayed_to", "")),
            ),
        ),
        searched_in("cluster", "power", "lag"),
    ),
    Mutant(
        "pending image not dropped",
        "1, 2, I5",
        "A new epoch decides on what was proposed in the last one and perhaps lost.",
        (
            Patch("controller.leader.leader_duties.LeaderDuties.end", around(_keep_pending)),
            Patch(
                "controller.leader.leader_duties.LeaderDuties._activate", around(_go_on_from_before)
            ),
        ),
        searched_in("cluster", "everything", "cuts"),
    ),
    Mutant(
        "a group's decisions read its beginning",
        "2, I4",
        "A request doesn't see what the one before it in the group decided.",
        (
            Patch(
                _GROUP + "add",
                edited(("self.image = self._delta.opened(self.close)", "pass")),
            ),
        ),
    ),
    Mutant(
        "a failed decision stays in the delta",
        "2, I4",
        "The group goes on with the records that a decision with a defect began to replay.",
        (Patch(_GROUP + "_begin_anew", gives(None)),),
    ),
    Mutant(
        "a long decision reads on in an open group",
        "2, I4",
        "A decision in slices sees what is decided beside it.",
        (
            Patch(
                "controller.leader.proposer.Proposer._work",
                edited(("preparation.base = pending.settled()", "pass")),
            ),
        ),
    ),
    Mutant(
        "groups go over the offsets at which states are compared",
        "6, I13",
        "The leader has no state hash where the standbys have theirs.",
        (
            Patch(
                "controller.replica.pending.Pending.push_in_group",
                edited(("if noted or group.is_full", "if group.is_full")),
            ),
        ),
    ),
    Mutant(
        "delta shipped before commit",
        "1, 4, I4",
        "Brokers get a batch when it is proposed.",
        (Patch("controller.http.fetch_content.FetchContent.find", around(_ship_what_is_proposed)),),
        searched_in("cluster", "cuts", "everything"),
    ),
    Mutant(
        "timestamps may fall",
        "12, I13",
        "A batch gets the leader's clock, also when that is behind the log.",
        (
            Patch(
                "controller.leader.batch_writer.BatchWriter._seal",
                edited(("timestamp_ms = max(now_ms, mark.timestamp_ms)", "timestamp_ms = now_ms")),
            ),
        ),
        searched_in("cluster", "everything"),
    ),
    Mutant(
        "BeginEpoch missing",
        "2, I4",
        "An epoch begins with the first request: what the last one left open stays open.",
        (
            Patch(
                "controller.leader.leader_duties.begin_epoch",
                edited(("records: list[Record] = [begin]", "records: list[Record] = []")),
            ),
        ),
        searched_in("cluster", "everything"),
    ),
    Mutant(
        "own skipped batch is no reason to resign",
        "9, I12",
        "A leader whose batch the fence kept out goes on deciding on its image.",
        (
            Patch(
                "controller.replica.applier.Applier._apply",
                edited(("self._on_own_skipped(accepted.reason)", "pass")),
            ),
        ),
        searched_in("cluster", "everything", "cuts"),
    ),
    Mutant(
        "states not compared",
        "6, I13",
        "Controllers whose states differ serve on.",
        (Patch("controller.replica.digests.DigestComparison.verdict", gives("")),),
    ),
    Mutant(
        "checkpoint inside an open transaction",
        "1, I13",
        "A checkpoint is made of the state before a transaction, and says that it is behind it.",
        (
            Patch(
                "controller.storage.snapshotting.Snapshotting.write",
                edited(("image.transaction is not None or ", "")),
            ),
        ),
    ),
)
