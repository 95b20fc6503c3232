"""Mutants of coordination's client: rules of a session, of repeats and of watches, switched off."""

from typing import Final

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Build, Patch, edited, gives

_ASKING: Final = "coordination.backends.quorum.asking.ControllerRequests"
_POLLING: Final = "coordination.backends.quorum.polling"
_SESSION: Final = "coordination.session.Session"


def _mutant(name: str, without: str, place: str, build: Build, *cases: str) -> Mutant:
    return Mutant(name, "I21", without, (Patch(place, build),), searched_in("case", *cases))


CONTENDING = (
    _mutant(
        "a session's deadline counts from the answer",
        "The client counts from when a heartbeat's answer arrives, and twice the ttl.",
        "coordination.session_deadline.SessionDeadline.extend",
        edited(("sent_s + ttl_s", "self._clock.monotonic() + 2 * ttl_s")),
        "C1",
    ),
    _mutant(
        "a session outlives its deadline",
        "The client waits for the store to say that its session is over.",
        f"{_SESSION}._notice",
        gives(None),
        "C4",
    ),
    _mutant(
        "a repeat has a request id of its own",
        "The controllers take each try of a change for another change.",
        f"{_ASKING}.ask",
        edited(
            (
                "query or {}, request_id, left_s",
                "query or {}, request_id and self.request_ids.of(None), left_s",
            )
        ),
        "P6",
        "K15",
    ),
    _mutant(
        "a watch goes on one change too late",
        "The next request of a watch names a revision that it wasn't told of.",
        f"{_POLLING}.QuorumWatch.asked",
        edited(
            (
                "key=self.scope.key, after=self.after",
                "key=self.scope.key, after=self.after and self.after + 1",
            )
        ),
        "W4",
        "W2",
    ),
    _mutant(
        "a watch begins anew with each request",
        "A watch doesn't say up to where it was told.",
        f"{_POLLING}.QuorumWatch.asked",
        edited(("key=self.scope.key, after=self.after", "key=self.scope.key, after=None")),
        "W3",
        "W4",
    ),
    _mutant(
        "a commit carries no fence",
        "The store isn't told under which grant a write is made.",
        "coordination.backends.quorum.connection.QuorumBackend.commit",
        edited(("for fence in commit.fences", "for fence in ()")),
        "F3",
    ),
    _mutant(
        "a grant outlives its session",
        "What a client holds isn't over when its session is.",
        "coordination.scopes.EndSignal._end_with_parent",
        gives(None),
        "L6",
        "C4",
    ),
)
