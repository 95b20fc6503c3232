"""Mutants of coordination: rules of ADR 0055, each switched off."""

from typing import Final

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Build, Patch, edited, gives

_SESSIONS: Final = searched_in("cluster", "sessions")
_QUEUES: Final = "controller.managers.coordination.queue_changes.QueueChanges"


def _mutant(name: str, without: str, place: str, build: Build) -> Mutant:
    return Mutant(name, "I21", without, (Patch(place, build),), _SESSIONS)


COORDINATING = (
    _mutant(
        "a leader that was replaced renews sessions",
        "A renewal is answered without a majority's word that this controller leads.",
        "controller.http.coordination.renewals.Renewals.handle",
        edited(("node.replica.reads.linearizable(confirmed)", "confirmed(True)")),
    ),
    _mutant(
        "a new leader gives no session its ttl again",
        "A new leader counts each session as silent since before it led.",
        "controller.leader.session_contacts.SessionContacts._fill",
        edited(("began + ttl_s", "began")),
    ),
    _mutant(
        "a renewal is noted nowhere",
        "A session ends after its ttl, however often its client renews it.",
        "controller.leader.session_contacts.SessionContacts.touch",
        gives(None),
    ),
    _mutant(
        "a fence is not looked at",
        "A holder that was replaced writes on.",
        "controller.managers.coordination.keys._check_fence",
        gives(None),
    ),
    _mutant(
        "a lock is granted though it is held",
        "Whoever enters is granted at once.",
        f"{_QUEUES}._is_due_at_end",
        gives(True),
    ),
    _mutant(
        "nobody is granted when a holder goes",
        "The queue waits for ever.",
        f"{_QUEUES}._grant_from",
        gives(None),
    ),
    _mutant(
        "a grant has the token of its place in the queue",
        "A token may be lower than one that was granted before it.",
        f"{_QUEUES}._grant_from",
        edited(("token = self._state.token_base + offset", "token = entry.place")),
    ),
    _mutant(
        "a session ends and its entries stay",
        "The end of a session removes none of its entries.",
        "controller.managers.coordination.sessions._end",
        edited(("changes.remove(entry)", "pass")),
    ),
    _mutant(
        "anybody uses a session",
        "A session's principal is not compared.",
        "controller.managers.coordination.sessions.check_owner",
        gives(None),
    ),
    _mutant(
        "a watch skips what the feed no longer has",
        "A watch that comes back late is told nothing of what came in between.",
        "controller.http.coordination.watches.CoordinationWatches._begin",
        edited(("if old:", "if False:")),
    ),
)
