"""The code takes the specification's steps: each is checked against its guard as a seed runs.

Rule: a node's state in model/Guard.tla is its journal, role and commit index; these change in few
places (the core's calls of the journal, its change of role), and promises leave by one
(`Outbox.send_encoded`). Each of them is wrapped here, and what happens must be one of the
specification's steps, enabled in the state that is there: judged from the journals themselves
and from what left the nodes before, never from what the guard believes. So a rule that the
specification has and the code hasn't is seen, and so is a step that the specification has not.

What is not seen here: what the specification leaves out (see model/README.md), steps that the
code never takes, and a node while its journal is damaged.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from quorum.guard.handing_up import HandingUp
from quorum.guard.inside import Inside
from quorum.guard.outbox import Outbox
from quorum.journal import RaftJournal
from quorum.node import QuorumNode
from quorum.raft.core import Core, Role
from quorum.wire.frames import Kind, decode
from tests.simulation.patches import patched

UNKNOWN = "unknown"


class NotAStepError(Exception):
    """The code did what the specification does not allow."""


class Conformance:
    """What has happened in one run, as far as the specification's guards ask for it."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        """How often each step was taken."""
        self._insides: dict[int, Inside] = {}
        self._journals: list[RaftJournal] = []
        """Held, so that no other object gets the same id."""
        self._clearing: set[int] = set()
        self._book: dict[int, dict[int, int]] = {}
        self._borne: Counter[int] = Counter()
        self._asked: dict[tuple[int, str], tuple[int, int]] = {}
        self._votes: set[tuple[int, str, str]] = set()
        self._acks: Counter[tuple[int, str]] = Counter()
        self._elected: dict[int, str] = {}
        self._truth: dict[int, int] = {}
        self._promised: Counter[str] = Counter()

    def watch(self) -> AbstractContextManager[None]:
        """Judge every step of every node, as long as the context lasts."""
        return patched(
            [
                (QuorumNode, "_build", self._after(QuorumNode._build, self._built)),
                (RaftJournal, "set_term", self._before("set_term", self._sets_term)),
                (RaftJournal, "add", self._before("add", self._adds)),
                (RaftJournal, "delete_from", self._before("delete_from", self._cuts)),
                (RaftJournal, "clear", self._before("clear", self._clears)),
                (
                    RaftJournal,
                    "set_commit_index",
                    self._before("set_commit_index", self._commits),
                ),
                (Core, "_role_changed", self._role(Core._role_changed)),
                (Outbox, "send_encoded", self._sending(Outbox.send_encoded)),
                (HandingUp, "tell_committed", self._handing_up(HandingUp.tell_committed)),
            ]
        )

    # -- wrapping ----------------------------------------------------------------------------

    def _after(self, method: Callable[..., Any], see: Callable[..., None]) -> Callable[..., Any]:
        def wrapped(node: Any, *args: Any) -> None:
            method(node, *args)
            see(node, *args)

        return wrapped

    def _before(self, name: str, judge: Callable[..., None]) -> Callable[..., Any]:
        method = getattr(RaftJournal, name)

        def wrapped(journal: RaftJournal, *args: Any) -> None:
            inside = self._insides.get(id(journal))
            if inside is not None:
                judge(inside, *args)
            method(journal, *args)

        return wrapped

    def _role(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(core: Core, old: int, new: int) -> None:
            inside = next((i for i in self._insides.values() if i.core is core), None)
            if inside is not None and new == Role.LEADER:
                self._wins(inside)
            method(core, old, new)

        return wrapped

    def _sending(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(outbox: Outbox, node_id: int, data: bytes) -> bool:
            inside = self._insides.get(id(outbox._journal))
            if inside is not None:
                self._sends(inside, node_id, decode(data))
            return method(outbox, node_id, data)

        return wrapped

    def _handing_up(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(handing_up: HandingUp) -> None:
            before = handing_up.delivered_index
            method(handing_up)
            inside = handing_up._inside
            if id(inside.journal) in self._insides and handing_up.delivered_index > before:
                self._handed_up(inside, before, handing_up.delivered_index)

        return wrapped

    def _built(self, node: QuorumNode, journal: RaftJournal, *_: Any) -> None:
        self._insides[id(journal)] = node.inside
        self._journals.append(journal)
        me = _name(node.inside)
        promised = self._promised[me]
        if not journal.damage and journal.term < promised:
            self._no(node.inside, f"Crash: it is back in a term below {promised}")
        self.steps["Restart"] += 1

    # -- guards, by the names of the specification -------------------------------------------

    def _sets_term(self, inside: Inside, term: int, voted_for: str | None) -> None:
        journal, me = inside.journal, _name(inside)
        now, vote = journal.term, journal.voted_for
        if voted_for is None:
            self._is_a("RaiseTerm", inside, term > now)
        elif voted_for == me:
            self._is_a("Stand", inside, term == now + 1 and inside.may_vote)
            self._asked[term, me] = (inside.view.last_term, inside.view.last)
        elif voted_for == UNKNOWN:
            self._is_a("Repair", inside, term == now and bool(journal.damage))
        else:
            ours = (inside.view.last_term, inside.view.last)
            asked = self._asked.get((term, str(voted_for)))
            allowed = term == now and vote is None and inside.may_vote
            self._is_a("GrantVote", inside, allowed and asked is not None and asked >= ours)

    def _wins(self, inside: Inside) -> None:
        term, me = inside.journal.term, _name(inside)
        voters = {voter for t, voter, to in self._votes if (t, to) == (term, me)} | {me}
        majority = len(voters & _pinned(inside)) >= inside.formation.majority()
        voted = inside.journal.voted_for == me
        self._is_a("Win", inside, majority and voted and term not in self._elected)
        self._elected[term] = me
        entries = inside.journal[:]
        # Before what a journal keeps stands what was handed up.
        first = inside.journal.first_index
        before = {index: of for index, of in self._truth.items() if index < first}
        self._book[term] = before | {index: of for _, index, of in entries}

    def _adds(self, inside: Inside, _command: bytes, index: int, term: int) -> None:
        journal = inside.journal
        now, last = journal.term, journal.last_index
        if index == 1 and term == 0:
            return
        if id(journal) in self._clearing:
            self._is_a("JumpDone", inside, self._truth.get(index) == term)
            if len(journal) == 1:
                self._clearing.discard(id(journal))
        elif inside.core is not None and inside.core.role is Role.LEADER:
            allowed = term == now and self._elected.get(now) == _name(inside)
            self._is_a("Propose", inside, allowed and index == last + 1)
            self._book[now][index] = term
        else:
            theirs = self._book.get(now, {})
            allowed = theirs.get(index) == term and theirs.get(last, 0) == inside.view.last_term
            self._is_a("TakeAppend", inside, allowed and index == last + 1)

    def _cuts(self, inside: Inside, place: int) -> None:
        journal = inside.journal
        if place >= len(journal):
            return
        _, index, term = journal[place]
        theirs = self._book.get(journal.term, {})
        contradicts = index in theirs and theirs[index] != term
        self._is_a("TakeAppend, a conflict", inside, contradicts and index > _commit(inside))

    def _clears(self, inside: Inside) -> None:
        self._clearing.add(id(inside.journal))
        self._is_a("JumpDone, clearing", inside, inside.core is not None)

    def _commits(self, inside: Inside, index: int) -> None:
        journal, core = inside.journal, inside.core
        if core is None or index <= _commit(inside) or id(journal) in self._clearing:
            return
        now, term = journal.term, inside.view.term_at(index)
        if core.role is Role.LEADER:
            acked = {n for n in _pinned(inside) if self._acks[now, n] >= index} | {_name(inside)}
            allowed = len(acked) >= inside.formation.majority() and term == now
            if inside.formation.majority() > 1:
                allowed = allowed and index <= journal.durable_index
            self._is_a("Commit", inside, allowed)
        else:
            held = self._book.get(now, {}).get(index) == term
            self._is_a("TakeAppend, commit", inside, held and index <= self._borne[now])

    def _sends(self, inside: Inside, node_id: int, frame: Any) -> None:
        kind, term = frame[0], frame[1]
        journal, me = inside.journal, _name(inside)
        durable = journal.durable_position >= journal.position_of_vote
        if kind in (Kind.APPEND, Kind.SNAPSHOT):
            allowed = self._elected.get(term) == me and frame[3] <= journal.durable_index
            self._is_a("sends append", inside, allowed)
            self._borne[term] = max(self._borne[term], frame[3])
        elif kind == Kind.VOTE_REQUEST:
            self._is_a("sends vote request", inside, durable and (term, me) in self._asked)
            self._promised[me] = max(self._promised[me], term)
        elif kind == Kind.VOTE:
            addressee = journal.voted_for
            allowed = term == journal.term and inside.may_vote
            allowed = allowed and str(addressee).startswith(f"{node_id}@")
            self._is_a("sends vote", inside, durable and allowed)
            self._votes.add((term, me, str(addressee)))
            self._promised[me] = max(self._promised[me], term)
        elif kind == Kind.ACK and frame[3] > 0:
            self._acknowledges(inside, term, frame[3], counted=frame[5])

    def _acknowledges(self, inside: Inside, term: int, match: int, *, counted: bool) -> None:
        journal, me = inside.journal, _name(inside)
        ours = inside.view.term_at(match)
        # Behind what the journal keeps, everything is the same everywhere.
        matches = match < journal.first_index or self._book.get(term, {}).get(match) == ours
        held = journal.durable_position >= journal.position_of_vote
        durable = held and match <= journal.durable_index
        current = term == journal.term
        self._is_a("sends ack", inside, matches and durable and current)
        if counted:
            self._acks[term, me] = max(self._acks[term, me], match)
            self._promised[me] = max(self._promised[me], term)

    def _handed_up(self, inside: Inside, before: int, upto: int) -> None:
        allowed = upto <= inside.journal.durable_index and upto <= _commit(inside)
        self._is_a("hands up", inside, allowed)
        for index in range(before + 1, upto + 1):
            term = inside.view.term_at(index)
            if term >= 0 and self._truth.setdefault(index, term) != term:
                self._no(inside, f"it hands up another entry {index} than others did")

    # ----------------------------------------------------------------------------------------

    def _is_a(self, step: str, inside: Inside, allowed: bool) -> None:
        self.steps[step] += 1
        if not allowed and not inside.journal.damage:
            self._no(inside, step)

    def _no(self, inside: Inside, what: str) -> None:
        raise NotAStepError(f"node {_name(inside)} in term {inside.term}: {what}")


def _name(inside: Inside) -> str:
    """The node as the core names it."""
    return f"{inside.config.node_id}@{inside.journal.directory_id.hex()}"


def _pinned(inside: Inside) -> set[str]:
    return {
        f"{node_id}@{directory.hex()}" for node_id, directory in inside.formation.pinned.items()
    }


def _commit(inside: Inside) -> int:
    return inside.journal.commit_index
