"""Decides which files the fault injector may damage, and plays the operator.

Rule: damage stays within what Logberg promises to survive. A byte of the journal may be damaged in
two cases. Something that is certainly durable says that the byte was durable
(`quorum.journal.opening` explains what can't be recognised). Or a majority of the other voters
holds everything that this node may have promised, also before an earlier damage, and all of them
know its terms. The operator does only what the runbook says: start a process again, and move a
folder away that a node refuses.
"""

from collections import Counter
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple, cast

import structlog

from ledger.errors import LedgerError
from quorum.journal import DamagedError, WrongFolderError
from quorum.journal.chain import read_chain, read_files
from quorum.journal.identity import FOLDER, SUFFIX
from quorum.journal.manifest import FILE as MANIFEST
from quorum.journal.manifest_copies import COPY
from runtime.disk.interface import Disk
from runtime.simulated.platter import folder_of
from runtime.simulated.world import US

REFUSALS = (DamagedError, WrongFolderError, LedgerError)
"""With these a start may be refused; the message says why."""
WORDS_OF_DAMAGE = ("damaged", "missing")
TOLD = (
    "checkpoint_damaged",
    "history_missing",
    "journal_damaged",
    "journal_repaired",
    "journal_torn_tail_cut",
    "ledger_damaged",
    "ledger_mended",
    "ledger_tail_cut",
    "manifest_restored",
)
"""Events of the log that are counted: what nodes say of damage and of its end."""
MANIFESTS = (MANIFEST, COPY)
SUPERVISOR_S = 0.5
STOPS_MAX = 8
"""A node that ends so often with its folder is given an empty one."""


class _Files(NamedTuple):
    """As much of a disk as reading a journal takes."""

    files: dict[str, bytes]

    def list(self, folder: str) -> list[str]:
        start = len(folder) + 1
        return [name[start:] for name in self.files if folder_of(name) == folder]

    def read(self, name: str) -> bytes:
        return self.files[name]


class Promised(NamedTuple):
    """What others may rest on: the last durable entry, its epoch, and the node's own epoch."""

    index: int
    entry_epoch: int
    epoch: int


class ClusterFaultAtlas:
    """One for a run; `quorum_of` returns a node's newest quorum node, alive or dead."""

    def __init__(
        self,
        cluster: Any,
        cluster_id: str,
        quorum_of: Callable[[int], Any],
        checksummed: Sequence[str],
    ) -> None:
        self.cluster = cluster
        cluster.world.on_exception = self.expects
        self.cluster_id = cluster_id
        self.quorum_of = quorum_of
        self.folders = (FOLDER, "", *checksummed)
        self.facts: Counter[str] = Counter()
        self.victims: list[int] = []
        self.refusals: dict[int, str] = {}
        self.emptied: dict[int, str] = {}
        """Whose folder was moved away, and what it had said."""
        self._promised: dict[int, Promised] = {}
        """What each node held durable when its journal was last sound."""
        self._votes: dict[int, tuple[Any, Any]] = {}
        """Of nodes that may not vote: their journal, and the vote when that was seen first."""
        self._said: dict[int, Counter[str]] = {}
        """By node, in its newest life."""
        self._elsewhere: Sequence[int] = ()
        self._harmed: set[int] = set()
        """Whose journal may lack something that no repair has made good yet."""
        self._stops: Counter[int] = Counter()
        self._formed = False

    # -- runtime.simulated.damage_faults.FaultAtlas ----------------------------------------

    def open_to_damage(self) -> bool:
        if not self._formed:
            contexts = [self._context(n) for n in self.cluster.hosts]
            self._formed = all(i is not None and i.formation.announced for i in contexts)
        return self._formed

    def files(self, node_id: int) -> list[str]:
        names = self.cluster.hosts[node_id].platter.names
        return [n for n in sorted(names) if folder_of(n) in self.folders and _is_ours(n)]

    def is_deep(self, name: str) -> bool:
        return name in MANIFESTS or name.endswith(SUFFIX)

    def has_begun(self, node_id: int) -> bool:
        # Who could not read it, by an error of the disk, may be on its way out for a while.
        return self.cluster.hosts[node_id].running and self._context(node_id) is not None

    def seen_below(self, node_id: int, name: str) -> int:
        platter = self.cluster.hosts[node_id].platter
        size = len(platter.names[name].content)
        if name in MANIFESTS or not name.endswith(SUFFIX):
            return size
        durable = platter.durable_files()
        if name not in durable:
            return 0
        try:
            chain = read_chain(read_files(cast("Disk", _Files(durable)), self.cluster_id, node_id))
        except (DamagedError, WrongFolderError):
            return 0
        for file in chain.files:
            if file.name == name and file.opening is not None:
                return max(0, min(chain.synced - file.shift, len(file.data), size))
        return 0

    def is_covered(self, node_id: int) -> bool:
        mine = self._context(node_id)
        if mine is None or not self.open_to_damage():
            return False
        if not mine.voters.we_vote:
            return True
        holders = 0
        for other in self.cluster.hosts:
            if other == node_id:
                continue
            theirs = self._context(other) if self.cluster.hosts[other].running else None
            if theirs is None or theirs.core is None or theirs.stopped:
                return False
            if not theirs.voters.we_vote:
                continue
            if theirs.journal.durable_position < theirs.journal.position_needing_sync:
                return False
            promised = self._promised[node_id]
            if theirs.term < max(mine.term, promised.epoch):
                return False
            holders += _holds(theirs, mine) and _held(theirs, promised)
        return holders > len(self.cluster.hosts) // 2

    def forgot(self, node_id: int) -> None:
        self._harmed.add(node_id)
        self.cluster.invariants.forgot(node_id)

    def changed_hands(self, nodes: Sequence[int]) -> None:
        self._elsewhere = nodes

    # -- the operator --------------------------------------------------------------------------

    def started(self, node_id: int) -> None:
        """Forget an earlier refusal."""
        self.refusals.pop(node_id, None)

    def refused(self, node_id: int, error: Exception) -> None:
        """Note why a start was refused; a folder that is damaged is moved away."""
        self.refusals[node_id] = str(error)
        self.facts[f"refused: {type(error).__name__}"] += 1
        if node_id in self._elsewhere:
            return
        if node_id not in self.victims:
            self.cluster.world.fail(f"refused its sound folder: {error}", node_id)
        self._after(SUPERVISOR_S, lambda: self.empty(node_id, str(error)))

    def may_stop(self, node_id: int, reason: str) -> bool:
        """Return whether a node stopped because of damage and reported it."""
        return node_id in self.victims and any(word in reason for word in WORDS_OF_DAMAGE)

    def stopped(self, node_id: int, reason: str) -> None:
        """A victim stopped itself and said why: it is started again, as by a supervisor."""
        self.facts["stopped itself"] += 1
        self._stops[node_id] += 1
        if self._stops[node_id] >= STOPS_MAX:
            self._stops[node_id] = 0
            self._after(SUPERVISOR_S, lambda: self.empty(node_id, reason))
        else:
            self._after(SUPERVISOR_S, lambda: self._start(node_id))

    def expects(self, process: Any, error: Exception) -> bool:
        """Let a process end by a read that its disk refused: it is started again."""
        if process.node_id not in self.cluster.hosts or "read" not in getattr(
            error, "__notes__", ()
        ):
            return False
        self.facts["ended by a read error"] += 1
        process.kill()
        self._after(SUPERVISOR_S, lambda: self._start(process.node_id))
        return True

    def empty(self, node_id: int, why: str) -> None:
        """Move a node's folder away and start it with an empty one, as the runbook says."""
        host = self.cluster.hosts[node_id]
        if host.running or node_id in self._elsewhere or self.refusals.get(node_id, why) != why:
            return
        host.platter.wipe()
        self.forgot(node_id)
        self.emptied[node_id] = why
        self.facts["folders moved away"] += 1
        self._start(node_id)

    def _start(self, node_id: int) -> None:
        if not self.cluster.hosts[node_id].running:
            self.cluster.start(node_id)

    def _after(self, seconds: float, act: Callable[[], None]) -> None:
        self.cluster.world.schedule(int(seconds * US), act, None, "operator")

    def _context(self, node_id: int) -> Any:
        quorum = self.quorum_of(node_id)
        return getattr(quorum, "context", None)

    def log(self, node_id: int) -> structlog.typing.FilteringBoundLogger:
        """Return a logger for a new life of a node, whose words are counted and dropped."""
        said = self._said[node_id] = Counter()

        def note(_logger: object, _name: str, event: Any) -> Any:
            if event["event"] in TOLD:
                said[event["event"]] += 1
                self.facts[f"said {event['event']}"] += 1
                self._judge_accusation(node_id, event)
            raise structlog.DropEvent

        return structlog.wrap_logger(None, processors=[note], wrapper_class=structlog.BoundLogger)

    # -- what must hold ------------------------------------------------------------------------

    def _judge_accusation(self, node_id: int, event: Any) -> None:
        """What peers remember is held against a folder only while something is amiss with it."""
        if event["event"] == "journal_repaired":
            self._harmed.discard(node_id)
        elif event["event"] == "journal_damaged":
            # At an opening it is what was found before: a repair that was not durable is undone.
            is_opening = self._context(node_id) is None
            if is_opening or "remembers this folder" not in event["what"]:
                self._harmed.add(node_id)
            elif node_id not in self._harmed:
                self.cluster.world.fail(f"I10: accused without cause: {event['what']}", node_id)

    def after_event(self, process: Any) -> None:
        """Nobody leads or votes whose journal is damaged, or whose folder isn't pinned."""
        if process is None or process.node_id not in self.cluster.hosts:
            return
        node_id = process.node_id
        context = self._context(node_id)
        if context is None or context.core is None:
            return
        journal, voters = context.journal, context.voters
        sound = voters.we_vote and not journal.damage
        if sound:
            durable = context.view.durable
            self._promised[node_id] = Promised(durable, context.view.term_at(durable), context.term)
            self._votes.pop(node_id, None)
            return
        if journal.damage and not self._said[node_id]["journal_damaged"]:
            self.cluster.world.fail(f"I10: damaged, and silent: {journal.damage}", node_id)
        if context.core.role.name == "LEADER":
            self.cluster.world.fail("I10: it leads, and is damaged or an observer", node_id)
        vote = journal._state.vote
        before, first = self._votes.get(node_id, (None, vote))
        if before is not journal:
            # What it promised before it was known to be damaged stands.
            self._votes[node_id] = (journal, vote)
        elif vote != first and vote.voted_for not in (None, "unknown"):
            self.cluster.world.fail(f"I10: damaged or unpinned, it gave its {vote}", node_id)

    def judge_folders(self) -> Counter[str]:
        """At the end: who is not a sound voter was damaged, and says so."""
        for node_id in self.cluster.hosts:
            status = self.quorum_of(node_id).status()
            if status.role in ("observer", "damaged"):
                if node_id not in self.victims or not status.note:
                    self.cluster.world.fail(
                        f"I10: it is {status.role} without cause or word: {status.note!r}", node_id
                    )
                self.facts[f"in the end {status.role}"] += 1
            elif node_id in self.victims:
                self.facts["in the end a sound voter"] += 1
        return self.facts


def _is_ours(name: str) -> bool:
    """Only what a node would read again: not evidence, not what is half fetched."""
    return name in MANIFESTS or (folder_of(name) != "" and not name.endswith((".damaged", ".part")))


def _holds(theirs: Any, mine: Any) -> bool:
    last = mine.view.last
    return _held(theirs, Promised(last, mine.view.term_at(last), 0))


def _held(theirs: Any, promised: Promised) -> bool:
    """Return whether a sound node has durably what another promised."""
    last = promised.index
    same = theirs.core.commit_index >= last or theirs.view.term_at(last) == promised.entry_epoch
    return bool(not theirs.journal.damage and theirs.view.durable >= last and same)
