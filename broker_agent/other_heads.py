"""Asks the other controllers for their heads, before one controller's word changes what is kept.

The signatures under a head prove that it is of the cluster. They don't prove that it is the newest.
And too few believed keys sign the heads of a restored cluster, which has new ones. So there are two
things that one controller in an attacker's hands could say without a majority of the keys: that the
log is shorter than it was, by an old head, and that a later generation of the cluster has begun.

Rule: what one controller says so stands only if no other controller that answers objects. One that
shows no head, or a head that can't be read, says nothing. So the agent believes it only if every
controller that it reaches goes along.
"""

from collections.abc import Callable, Collection
from http import HTTPStatus
from typing import Final, NamedTuple

from broker_agent.head_file import KeptHead, generation_of
from broker_agent.head_look import FoundHead
from ledger.errors import LedgerError
from ledger.merkle.heads import TreeHead, believed_head
from ledger.merkle.notes import NoteKey, SignedNote
from runtime.http.requests import PendingRequest, Reply, Request, Requester, Unreachable

_DEADLINE_S: Final = 5.0


class ShownByOther(NamedTuple):
    """A head that another controller shows. Nothing of it is verified."""

    url: str
    head: TreeHead
    note: SignedNote


class OtherHeads:
    """Asks once. It calls `on_done` once, when all have answered, unless it is abandoned."""

    def __init__(
        self,
        requester: Requester,
        others: Collection[str],
        on_done: Callable[[list[ShownByOther]], None],
    ) -> None:
        """`others`: URLs of the controllers to ask."""
        self._requester = requester
        self._others = tuple(dict.fromkeys(others))
        self._on_done = on_done
        self._in_flight: dict[str, PendingRequest] = {}
        self._waits_for = len(self._others)
        self._shown: list[ShownByOther] = []

    def begin(self) -> None:
        """Ask all at once. With nobody to ask, `on_done` is called before this returns."""
        if not self._others:
            self._on_done([])
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
                self._note(url, answer.body)
            if not self._waits_for:
                self._on_done(self._shown)

        request = Request("GET", "/checkpoint")
        self._in_flight[url] = self._requester.request(url, request, answered, _DEADLINE_S)

    def _note(self, url: str, data: bytes) -> None:
        try:
            note = SignedNote.parse(data)
            self._shown.append(ShownByOther(url, TreeHead.parse(note.text), note))
        except LedgerError:
            return


def objections_to_generation(
    shown: Collection[ShownByOther],
    cluster_id: str,
    believed: Collection[bytes],
    known: KeptHead,
    claimed: FoundHead,
) -> str:
    """Return who objects to a claim of a later generation, in a sentence; empty: nobody does.

    A controller objects with a head of the known generation, signed by a majority of the `believed`
    keys. It also objects with a head of a later generation that the claimed keys did not sign.
    """
    found = []
    now = generation_of(known.head.origin, cluster_id)
    for url, head, note in shown:
        origin = head.origin
        if origin == known.head.origin and _signed(note, origin, believed):
            found.append(f"{url} still shows a head of {origin}, which this broker knows")
        elif generation_of(origin, cluster_id) > now and not _signed(note, origin, claimed.keys):
            found.append(f"{url} shows a head of {origin} that other keys signed")
    return "; ".join(found)


def objections_to_shorter_log(
    shown: Collection[ShownByOther], believed: Collection[bytes], known: KeptHead
) -> str:
    """Return who shows a head of the known generation that is not smaller than the known one.

    It is a sentence; empty: nobody does.
    """
    return "; ".join(
        f"{url} shows a head of {head.size} batches"
        for url, head, note in shown
        if head.origin == known.head.origin
        and head.size >= known.head.size
        and _signed(note, head.origin, believed)
    )


def _signed(note: SignedNote, origin: str, keys: Collection[bytes]) -> bool:
    """Return whether a majority of the keys signed the head."""
    try:
        believed_head(note, origin, [NoteKey(origin, key) for key in keys])
    except LedgerError:
        return False
    return True
