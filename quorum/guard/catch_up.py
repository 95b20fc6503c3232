"""The catch-up of a follower for which the leader no longer has the entries.

Rule: the leader sends its manifest instead. The guard keeps the manifest from the core while the
owner fetches everything that its mark covers. When the owner says `caught_up`, the manifest is made
durable. That is the commit point: a crash after it is completed at the next start. Then the core
gets the manifest and clears its log.

Until then the core sees heartbeats with our own commit index. Appends beyond our log are answered
with neither success nor reset, so the leader does not go back. If ordinary appends reach the mark
first, the catch-up is dropped. A log that holds the mark's entry is never cleared, because the node
may have acknowledged the entries behind it.

After the owner has said `out_of_reach`, the next append is answered with a reset. So the leader
sends its present manifest, whose mark replaces ours if it is another one.
"""

from collections.abc import Callable

import msgspec

from quorum.api import Mark
from quorum.guard.context import NodeContext
from quorum.guard.replicas import PeerReplica
from quorum.journal import DamagedError
from quorum.journal.manifest import JournalManifest, decode_manifest, encode_manifest
from quorum.journal.manifest_store import ManifestStore
from quorum.raft.core import Core
from quorum.raft.messages import InstallSnapshot


class FollowerCatchUp:
    """One catch-up of this follower, at most."""

    def __init__(
        self, context: NodeContext, manifests: ManifestStore, on_caught_up: Callable[[Mark], None]
    ) -> None:
        self._context = context
        self._manifests = manifests
        self._on_caught_up = on_caught_up
        self._pending: JournalManifest | None = None
        self._source = -1
        self._term = -1
        self._durable = False
        self.is_committing = False
        """The manifest is being written, or is durable and the core does not have it yet."""
        self.news: list[tuple[Mark, int] | None] = []
        """For the listener: catch-ups to begin (mark, source); None: the last one is dropped."""

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    @property
    def pending(self) -> Mark | None:
        """The mark that the owner is fetching; None: there is none."""
        return None if self._pending is None else self._pending.mark

    def waits_for(self, node_id: int, term: int) -> bool:
        """Tell whether we are fetching for this leader's manifest, and so ask it for no entries."""
        return self._pending is not None and (self._source, self._term) == (node_id, term)

    def offered(self, replica: PeerReplica, term: int, data: bytes) -> int | None:
        """Take a leader's manifest. Returns its index if our log already holds that entry."""
        context = self._context
        try:
            manifest = decode_manifest(data, f"manifest of node {replica.node_id}")
        except DamagedError as error:
            context.count("bad_manifest")
            context.log.warning("manifest_refused", node=replica.node_id, why=str(error))
            return None
        mark = manifest.mark
        if manifest.cluster_id != context.config.cluster_id or self.is_committing:
            return None
        if mark.epoch > term:
            context.count("bad_manifest")
            return None
        if self._holds(mark):
            return mark.index
        self._source, self._term = replica.node_id, term
        if self.pending != mark:
            self.news.append((mark, replica.node_id))
            context.log.info("jump_begun", index=mark.index, source=replica.node_id)
        self._pending = manifest
        return None

    def on_progress(self) -> None:
        """Drop the catch-up if ordinary entries have reached its mark."""
        if self._pending is not None and not self.is_committing and self._holds(self._pending.mark):
            self._drop()

    def caught_up(self, mark: Mark) -> None:
        """The owner holds everything that `mark` covers: make the manifest durable."""
        if self._pending is None or self._pending.mark != mark or self.is_committing:
            return
        if self._holds(mark):
            self._drop()
            return
        journal = self._context.journal
        self.is_committing = True
        self._pending = msgspec.structs.replace(
            self._pending,
            directory_id=journal.directory_id,
            journal_position=journal.durable_position,
        )
        self._manifests.install(self._pending, self._written)

    def out_of_reach(self, mark: Mark) -> None:
        """A peer lacks the files for `mark`: let the leader send its present manifest."""
        if self.pending == mark:
            self._source = -1

    def _written(self, is_ours: bool) -> None:
        self._durable = True
        assert is_ours, "a manifest was installed beside a newer one"
        self._context.wake()

    def finish(self) -> None:
        """Give a durable manifest to the core, once the core knows a leader to have it from."""
        core, manifest = self._core, self._pending
        if not self._durable or core.leader is None or manifest is None:
            return
        self._durable = False
        self.is_committing = False
        self._pending = None
        index = manifest.mark.index
        self._context.voters.begins_next_at(manifest)
        core.receive(core.leader, InstallSnapshot(core.term, index, encode_manifest(manifest)))
        assert self._context.view.last == manifest.mark.index
        self._context.log.info("jump_done", index=manifest.mark.index)
        self._on_caught_up(manifest.mark)

    def _holds(self, mark: Mark) -> bool:
        return (
            mark.index <= self._core.commit_index
            or self._context.view.term_at(mark.index) == mark.epoch
        )

    def _drop(self) -> None:
        self._context.log.info("jump_overtaken", index=self.pending.index if self.pending else 0)
        self._pending = None
        self.news.append(None)
