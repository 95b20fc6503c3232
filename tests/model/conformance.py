"""Checks that the code only takes steps of the specification, while a seed runs.

Rule: in model/Guard.tla a node's state is its journal, role and commit index. In the code these
change in few places (the core's calls of the journal, its change of role), and every promise leaves
through `Outbox.send_encoded`. Each of these is wrapped here. What happens must be a step of the
specification whose guard holds in the present state. The guard is judged from the journals and from
what nodes sent before, never from what the product's own guard believes. So the check finds a rule
that the code lacks, and a step that the specification lacks.

The check does not see what the specification leaves out (see model/README.md), steps that the code
never takes, and a node while its journal is damaged.
"""

from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from quorum.folder_opening import OpenedFolder
from quorum.guard.context import NodeContext
from quorum.guard.delivery import Delivery
from quorum.guard.outbox import Outbox
from quorum.journal import RaftJournal
from quorum.node import QuorumNode
from quorum.raft.core import Core, Role
from quorum.wire.frames import FrameKind, decode
from tests.simulation.patches import patched

UNKNOWN = "unknown"


class NotAStepError(Exception):
    """The code did what the specification does not allow."""


class Conformance:
    """What has happened in one run, as far as the specification's guards ask for it."""

    def __init__(self) -> None:
        self.steps: Counter[str] = Counter()
        """How often each step was taken."""
        self._contexts: dict[int, NodeContext] = {}
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
                (Delivery, "deliver_committed", self._delivery(Delivery.deliver_committed)),
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
            context = self._contexts.get(id(journal))
            if context is not None:
                judge(context, *args)
            method(journal, *args)

        return wrapped

    def _role(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(core: Core, old: int, new: int) -> None:
            context = next((i for i in self._contexts.values() if i.core is core), None)
            if context is not None and new == Role.LEADER:
                self._wins(context)
            method(core, old, new)

        return wrapped

    def _sending(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(outbox: Outbox, node_id: int, data: bytes) -> bool:
            context = self._contexts.get(id(outbox._journal))
            if context is not None:
                self._sends(context, node_id, decode(data))
            return method(outbox, node_id, data)

        return wrapped

    def _delivery(self, method: Callable[..., Any]) -> Callable[..., Any]:
        def wrapped(delivery: Delivery) -> None:
            before = delivery.delivered_index
            method(delivery)
            context = delivery._context
            if id(context.journal) in self._contexts and delivery.delivered_index > before:
                self._delivered(context, before, delivery.delivered_index)

        return wrapped

    def _built(self, node: QuorumNode, opened: OpenedFolder) -> None:
        journal = opened.journal
        self._contexts[id(journal)] = node.context
        self._journals.append(journal)
        me = _name(node.context)
        promised = self._promised[me]
        if not journal.damage and journal.term < promised:
            self._no(node.context, f"Crash: it is back in a term below {promised}")
        self.steps["Restart"] += 1

    # -- guards, by the names of the specification -------------------------------------------

    def _sets_term(self, context: NodeContext, term: int, voted_for: str | None) -> None:
        journal, me = context.journal, _name(context)
        now, vote = journal.term, journal.voted_for
        if voted_for is None:
            self._is_a("RaiseTerm", context, term > now)
        elif voted_for == me:
            self._is_a("Stand", context, term == now + 1 and context.may_vote)
            self._asked[term, me] = (context.view.last_term, context.view.last)
        elif voted_for == UNKNOWN:
            self._is_a("Repair", context, term == now and bool(journal.damage))
        else:
            ours = (context.view.last_term, context.view.last)
            asked = self._asked.get((term, str(voted_for)))
            allowed = term == now and vote is None and context.may_vote
            self._is_a("GrantVote", context, allowed and asked is not None and asked >= ours)

    def _wins(self, context: NodeContext) -> None:
        term, me = context.journal.term, _name(context)
        voters = {voter for t, voter, to in self._votes if (t, to) == (term, me)} | {me}
        majority = len(voters & _pinned(context)) >= context.voters.majority()
        voted = context.journal.voted_for == me
        self._is_a("Win", context, majority and voted and term not in self._elected)
        self._elected[term] = me
        entries = context.journal[:]
        # Before what a journal keeps stands what was delivered.
        first = context.journal.first_index
        before = {index: of for index, of in self._truth.items() if index < first}
        self._book[term] = before | {index: of for _, index, of in entries}

    def _adds(self, context: NodeContext, _command: bytes, index: int, term: int) -> None:
        journal = context.journal
        now, last = journal.term, journal.last_index
        if index == 1 and term == 0:
            return
        if id(journal) in self._clearing:
            self._is_a("JumpDone", context, self._truth.get(index) == term)
            if len(journal) == 1:
                self._clearing.discard(id(journal))
        elif context.core is not None and context.core.role is Role.LEADER:
            allowed = term == now and self._elected.get(now) == _name(context)
            self._is_a("Propose", context, allowed and index == last + 1)
            self._book[now][index] = term
        else:
            theirs = self._book.get(now, {})
            allowed = theirs.get(index) == term and theirs.get(last, 0) == context.view.last_term
            self._is_a("TakeAppend", context, allowed and index == last + 1)

    def _cuts(self, context: NodeContext, place: int) -> None:
        journal = context.journal
        if place >= len(journal):
            return
        _, index, term = journal[place]
        theirs = self._book.get(journal.term, {})
        contradicts = index in theirs and theirs[index] != term
        self._is_a("TakeAppend, a conflict", context, contradicts and index > _commit(context))

    def _clears(self, context: NodeContext) -> None:
        self._clearing.add(id(context.journal))
        self._is_a("JumpDone, clearing", context, context.core is not None)

    def _commits(self, context: NodeContext, index: int) -> None:
        journal, core = context.journal, context.core
        if core is None or index <= _commit(context) or id(journal) in self._clearing:
            return
        now, term = journal.term, context.view.term_at(index)
        if core.role is Role.LEADER:
            acked = {n for n in _pinned(context) if self._acks[now, n] >= index} | {_name(context)}
            allowed = len(acked) >= context.voters.majority() and term == now
            if context.voters.majority() > 1:
                allowed = allowed and index <= journal.durable_index
            self._is_a("Commit", context, allowed)
        else:
            held = self._book.get(now, {}).get(index) == term
            self._is_a("TakeAppend, commit", context, held and index <= self._borne[now])

    def _sends(self, context: NodeContext, node_id: int, frame: Any) -> None:
        kind, term = frame[0], frame[1]
        journal, me = context.journal, _name(context)
        durable = journal.durable_position >= journal.position_of_vote
        if kind in (FrameKind.APPEND, FrameKind.SNAPSHOT):
            allowed = self._elected.get(term) == me and frame[3] <= journal.durable_index
            self._is_a("sends append", context, allowed)
            self._borne[term] = max(self._borne[term], frame[3])
        elif kind == FrameKind.VOTE_REQUEST:
            self._is_a("sends vote request", context, durable and (term, me) in self._asked)
            self._promised[me] = max(self._promised[me], term)
        elif kind == FrameKind.VOTE:
            addressee = journal.voted_for
            allowed = term == journal.term and context.may_vote
            allowed = allowed and str(addressee).startswith(f"{node_id}@")
            self._is_a("sends vote", context, durable and allowed)
            self._votes.add((term, me, str(addressee)))
            self._promised[me] = max(self._promised[me], term)
        elif kind == FrameKind.ACK and frame[3] > 0:
            self._acknowledges(context, term, frame[3], counted=frame[5])

    def _acknowledges(self, context: NodeContext, term: int, match: int, *, counted: bool) -> None:
        journal, me = context.journal, _name(context)
        ours = context.view.term_at(match)
        # Behind what the journal keeps, everything is the same everywhere.
        matches = match < journal.first_index or self._book.get(term, {}).get(match) == ours
        held = journal.durable_position >= journal.position_of_vote
        durable = held and match <= journal.durable_index
        current = term == journal.term
        self._is_a("sends ack", context, matches and durable and current)
        if counted:
            self._acks[term, me] = max(self._acks[term, me], match)
            self._promised[me] = max(self._promised[me], term)

    def _delivered(self, context: NodeContext, before: int, upto: int) -> None:
        allowed = upto <= context.journal.durable_index and upto <= _commit(context)
        self._is_a("hands up", context, allowed)
        for index in range(before + 1, upto + 1):
            term = context.view.term_at(index)
            if term >= 0 and self._truth.setdefault(index, term) != term:
                self._no(context, f"it hands up another entry {index} than others did")

    # ----------------------------------------------------------------------------------------

    def _is_a(self, step: str, context: NodeContext, allowed: bool) -> None:
        self.steps[step] += 1
        if not allowed and not context.journal.damage:
            self._no(context, step)

    def _no(self, context: NodeContext, what: str) -> None:
        raise NotAStepError(f"node {_name(context)} in term {context.term}: {what}")


def _name(context: NodeContext) -> str:
    """The node as the core names it."""
    return f"{context.config.node_id}@{context.journal.directory_id.hex()}"


def _pinned(context: NodeContext) -> set[str]:
    return {f"{node_id}@{directory.hex()}" for node_id, directory in context.voters.members.items()}


def _commit(context: NodeContext) -> int:
    return context.journal.commit_index
