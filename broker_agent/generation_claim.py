"""Asks the other controllers about a later generation of the cluster that one controller claims.

A restore or a recovery begins a generation, perhaps with new keys. Then too few of the keys that
the agent believes sign the new heads. A controller in an attacker's hands can show such a head too.

Rule: the claim stands only if no other controller that answers objects. A controller objects with a
head of the generation that the agent knows, signed by a majority of the believed keys. It also
objects with a head of a later generation that the claimed keys did not sign. A controller that
shows neither says nothing. So the claim moves the agent only if every controller that it reaches
goes along.
"""

from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Final

from broker_agent.head_file import KeptHead, generation_of
from broker_agent.head_look import FoundHead
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead, believed_head
from ledger.merkle.notes import NoteKey, SignedNote
from runtime.http.requests import PendingRequest, Reply, Request, Requester, Unreachable

_DEADLINE_S: Final = 5.0


class GenerationClaim:
    """One claim. It calls `on_done` once, when all have answered, unless it is abandoned."""

    def __init__(
        self,
        requester: Requester,
        others: Collection[str],
        cluster_id: str,
        believed: Collection[bytes],
        known: KeptHead,
        claimed: FoundHead,
        on_done: Callable[[str], None],
    ) -> None:
        """`others`: URLs of the controllers to ask. `believed`: the public keys that count so far.

        `known`: the head that the agent keeps. `claimed`: what the look found. `on_done` gets the
        objections in a sentence; empty: nobody objects.
        """
        self._requester = requester
        self._others = tuple(dict.fromkeys(others))
        self._cluster_id = cluster_id
        self._believed = tuple(believed)
        self._known = known
        self._claimed = claimed
        self._on_done = on_done
        self._in_flight: dict[str, PendingRequest] = {}
        self._waits_for = len(self._others)
        self._objections: list[str] = []

    def begin(self) -> None:
        """Ask all at once. With nobody to ask, `on_done` is called before this returns."""
        if not self._others:
            self._on_done("")
        for url in self._others:
            self._ask(url)

    def abandon(self) -> None:
        """Ask no more; `on_done` is not called any more."""
        for request in self._in_flight.values():
            request.abandon()
        self._in_flight.clear()

    def _ask(self, url: str) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            self._in_flight.pop(url, None)
            self._waits_for -= 1
            if isinstance(answer, Reply) and answer.status == HTTPStatus.OK:
                self._judge(url, answer.body)
            if not self._waits_for:
                self._on_done("; ".join(self._objections))

        request = Request("GET", "/checkpoint")
        self._in_flight[url] = self._requester.request(url, request, answered, _DEADLINE_S)

    def _judge(self, url: str, data: bytes) -> None:
        """Note the objection that this head is. One that can't be read is none."""
        try:
            note = SignedNote.parse(data)
            origin = TreeHead.parse(note.text).origin
        except LedgerError:
            return
        if origin == self._known.head.origin and _signed(note, origin, self._believed):
            self._objections.append(
                f"{url} still shows a head of {origin}, which this broker knows"
            )
            return
        known = generation_of(self._known.head.origin, self._cluster_id)
        is_later = generation_of(origin, self._cluster_id) > known
        if is_later and not _signed(note, origin, self._claimed.keys):
            self._objections.append(f"{url} shows a head of {origin} that other keys signed")


def _signed(note: SignedNote, origin: str, keys: Collection[bytes]) -> bool:
    """Return whether a majority of the keys signed the head."""
    try:
        believed_head(note, origin, [NoteKey(origin, key) for key in keys])
    except LedgerError:
        return False
    return True
