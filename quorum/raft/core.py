"""The Raft core: PySyncObj's terms, elections, log matching and commit rule behind our own types.

Rule: everything that goes in or out passes here as one of `quorum.raft.messages`. The guard enters
the core by `receive`, `tick` and `append` only, and never while the core is calling the guard.

A tick costs more than most events, so `tick` skips it while the core has nothing to do: it has all
that was appended, and has handed out all that is committed. `on_timer` runs it in any case, since
some of the core's work is due by its clock.

The core begins connected to nobody, and a core that is connected to nobody never stands for
election. So the guard decides when it stands, by `stand`.
"""

from collections.abc import Callable, Iterable
from enum import IntEnum
from typing import Any

from pysyncobj import SyncObj, SyncObjConf, replicated
from pysyncobj.transport import Transport

from quorum.config import APPEND_BYTES_MAX, QuorumConfig
from quorum.journal.manifest_store import ManifestStore
from quorum.raft import core_world
from quorum.raft.core_node import CoreNode
from quorum.raft.dicts import from_dict, to_dict
from quorum.raft.messages import (
    AppendEntries,
    AppendReply,
    FromCore,
    Heartbeat,
    RequestVote,
    TimeoutNow,
    ToCore,
)
from quorum.terms import is_term
from quorum.wire.commands import encode_command, encode_voters_command

core_world.install()

_NEVER = 2**62


class Role(IntEnum):
    """The core's roles, with its numbers."""

    FOLLOWER = 0
    CANDIDATE = 1
    LEADER = 2


class _Machine(SyncObj):  # type: ignore[misc]
    """The replicated object. Its methods hand out the payloads of a committed entry.

    The core numbers them by name, from 0 on: `quorum.wire.commands` counts on that.
    """

    def __init__(self, on_apply: Callable[[tuple[bytes, ...]], None], *args: Any) -> None:
        self._on_apply = on_apply
        super().__init__(*args[:2], conf=args[2], nodeClass=CoreNode, transport=args[3])

    @replicated  # type: ignore[untyped-decorator]
    def apply(self, payloads: tuple[bytes, ...]) -> None:
        """Hand the payloads out; never raises."""
        self._on_apply(payloads)

    @replicated  # type: ignore[untyped-decorator]
    def change_voters(self, voters: bytes, payloads: tuple[bytes, ...]) -> None:
        """Hand the payloads out. The voters are in force since the entry was appended."""
        self._on_apply(payloads)


class _CoreTransport(Transport):  # type: ignore[misc]
    """The core's way out: everything it sends goes to the guard."""

    def __init__(self, on_send: Callable[[CoreNode, FromCore], bool]) -> None:
        super().__init__(None, None, [])
        self._on_send = on_send

    def send(self, node: CoreNode, message: dict[str, Any]) -> bool:
        return self._on_send(node, from_dict(message))

    def addNode(self, node: CoreNode) -> None:  # noqa: N802 - the core's name
        """Do nothing: the guard knows the links."""

    def dropNode(self, node: CoreNode) -> None:  # noqa: N802
        """Do nothing, as above."""


def _settings(
    config: QuorumConfig, manifests: ManifestStore, on_role: Callable[[int, int], None]
) -> SyncObjConf:
    timeout = config.election_timeout_s
    return SyncObjConf(
        autoTick=False,
        raftMinTimeout=0.9 * timeout,
        raftMaxTimeout=0.95 * timeout,
        connectionTimeout=2 * timeout,
        appendEntriesPeriod=config.heartbeat_s,
        leaderFallbackTimeout=timeout,
        appendEntriesUseBatch=False,
        appendEntriesBatchSizeBytes=APPEND_BYTES_MAX,
        commandsWaitLeader=False,
        commandsQueueSize=0,
        dynamicMembershipChange=False,
        # The core takes the store for the name of its dump file (`quorum.raft.core_dump`).
        fullDumpFile=manifests,
        useFork=False,
        # It never compacts on its own: `quorum.journal.compaction` decides.
        logCompactionMinEntries=_NEVER,
        logCompactionMinTime=_NEVER,
        onStateChanged=on_role,
    )


class Core:
    """PySyncObj's SyncObj behind a narrow interface."""

    def __init__(
        self,
        config: QuorumConfig,
        *,
        world: core_world.CoreWorld,
        manifests: ManifestStore,
        self_node: CoreNode,
        others: Iterable[CoreNode],
        on_send: Callable[[CoreNode, FromCore], bool],
        on_apply: Callable[[tuple[bytes, ...]], None],
        on_role: Callable[[Role, Role], None],
        on_left: Callable[[], None],
    ) -> None:
        self._world = world
        self.self_node = self_node
        self.role = Role.FOLLOWER
        self._on_role = on_role
        self._on_left = on_left
        self._stirred = True
        """Something happened since the last tick that may have given the core work."""
        others = list(others)
        self._alone = not others
        """No acknowledgement tells this core that it may commit, so each tick looks."""
        self._transport = _CoreTransport(on_send)
        core_world.enter(world)
        self._machine = _Machine(
            on_apply,
            self_node,
            others,
            _settings(config, manifests, self._role_changed),
            self._transport,
        )

    @property
    def term(self) -> int:
        """The current term."""
        return self._machine.raftCurrentTerm  # type: ignore[no-any-return]

    @property
    def commit_index(self) -> int:
        """The highest index known to be committed."""
        return self._machine.raftCommitIndex  # type: ignore[no-any-return]

    @property
    def last_applied(self) -> int:
        """The highest index handed out; while `on_apply` runs, the index before."""
        return self._machine.raftLastApplied  # type: ignore[no-any-return]

    @property
    def leader(self) -> CoreNode | None:
        """The leader of the current term, as far as the core knows."""
        return self._machine._getLeader()  # type: ignore[no-any-return]  # noqa: SLF001

    def receive(self, node: CoreNode | None, message: ToCore) -> None:
        """Give the core a message."""
        core_world.enter(self._world)
        self._transport._onMessageReceived(node, to_dict(message))  # noqa: SLF001
        if not self._stirred:
            self._stirred = self._is_work(message)
        self._on_left()

    def _is_work(self, message: ToCore) -> bool:
        """Tell whether a message that the core has taken leaves it something to do in a tick."""
        match message:
            case AppendEntries() | Heartbeat():
                return self.commit_index > self.last_applied
            case AppendReply(next_index, success, _):
                return success and next_index - 1 > self.commit_index
            case _:
                return True

    def tick(self) -> None:
        """Let the core do what it has to do: commit, hand out, send, take what was appended."""
        if self._stirred or self._alone:
            self.on_timer()

    def on_timer(self) -> None:
        """Let the core do this, and what is due by its clock."""
        core_world.enter(self._world)
        self._stirred = False
        self._machine.doTick(0)
        self._on_left()

    def append(self, payloads: list[bytes]) -> None:
        """Queue one entry; the next `tick` writes and sends it."""
        self._stirred = True
        self._machine._applyCommand(encode_command(payloads), None)  # noqa: SLF001

    def append_voters(self, voters: bytes, payloads: list[bytes]) -> None:
        """Queue an entry that changes the voters; the next `tick` writes and sends it."""
        self._stirred = True
        self._machine._applyCommand(encode_voters_command(voters, payloads), None)  # noqa: SLF001

    def set_others(self, others: Iterable[CoreNode]) -> None:
        """Replace the nodes that this core counts beside itself; who stays keeps its index."""
        others = list(others)
        new = set(others) - self._machine.otherNodes
        core_world.enter(self._world)
        self._machine._SyncObj__updateClusterConfiguration(others)  # noqa: SLF001
        self._alone = not others
        self._stirred = True
        if self.role is Role.LEADER:
            for node in sorted(new, key=hash):
                # An answer that says nothing: since when the core waits for this node.
                nothing = to_dict(AppendReply(next_index=0, success=False, reset=False))
                self._transport._onMessageReceived(node, nothing)  # noqa: SLF001

    def raise_term(self, term: int, node: CoreNode) -> None:
        """Enter a higher term as a follower that knows no leader.

        A vote request whose last term is -1 does exactly that, and the core grants it no vote.
        """
        assert is_term(term), "terms end below 2^31"
        self.receive(node, RequestVote(term, last_index=0, last_term=-1))

    def stand(self, through: CoreNode | None) -> None:
        """Stand for election now.

        The core stands only while it is connected to a voter. `through` is the voter to connect to
        for that moment; None when there is no other.
        """
        self.receive(self.leader, TimeoutNow(self.term))
        if through is not None:
            self.connect(through, voter=True)
        self.on_timer()
        if through is not None and self.role is not Role.LEADER:
            self.disconnect(through, voter=True)

    def connect(self, node: CoreNode, *, voter: bool) -> None:
        """Let the core send appends to a node."""
        core_world.enter(self._world)
        self._stirred = True
        if voter:
            self._transport._onNodeConnected(node)  # noqa: SLF001
        else:
            self._transport._onReadonlyNodeConnected(node)  # noqa: SLF001

    def disconnect(self, node: CoreNode, *, voter: bool) -> None:
        """Stop the core from sending appends to a node."""
        core_world.enter(self._world)
        if voter:
            self._transport._onNodeDisconnected(node)  # noqa: SLF001
        else:
            self._transport._onReadonlyNodeDisconnected(node)  # noqa: SLF001

    def _role_changed(self, old: int, new: int) -> None:
        self.role = Role(new)
        self._stirred = True
        self._on_role(Role(old), self.role)
