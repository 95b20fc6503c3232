"""The catch-up of a follower that is too far behind for entries.

Rule: the leader's manifest is held back from the core while the owner fetches everything behind
its mark. When the owner says `caught_up`, the manifest is made durable (the commit point), then
the core gets it and clears its log; a crash in between is finished at the next opening.

Meanwhile the core sees heartbeats with our own commit index, appends beyond our log are answered
with neither success nor reset, and if ordinary appends overtake the mark it is dropped. A log
that holds the mark's entry is never cleared: what stands behind it may have been acknowledged.
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
    """What a follower does with a manifest."""

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
        """The manifest is on its way to the disk, or durable and not yet known to the core."""
        self.news: list[tuple[Mark, int] | None] = []
        """For the listener: installations to begin (mark, source), None: the last is dropped."""

    @property
    def _core(self) -> Core:
        assert self._context.core is not None
        return self._context.core

    @property
    def pending(self) -> Mark | None:
        """The mark that is waited for."""
        return None if self._pending is None else self._pending.mark

    def waits_for(self, node_id: int, term: int) -> bool:
        """Tell whether this leader's manifest is being fetched: don't ask it for entries."""
        return self._pending is not None and (self._source, self._term) == (node_id, term)

    def offered(self, replica: PeerReplica, term: int, data: bytes) -> int | None:
        """Take a leader's manifest; returns its index when our log holds it already."""
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
        """Drop what ordinary entries have overtaken."""
        if self._pending is not None and not self.is_committing and self._holds(self._pending.mark):
            self._drop()

    def caught_up(self, mark: Mark) -> None:
        """Everything behind `mark` is durable above: make the manifest ours."""
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

    def _written(self, is_ours: bool) -> None:
        self._durable = True
        assert is_ours, "a manifest was installed beside a newer one"
        self._context.wake()

    def finish(self) -> None:
        """Give a durable manifest to the core, as soon as it has a leader to get it from."""
        core, manifest = self._core, self._pending
        if not self._durable or core.leader is None or manifest is None:
            return
        self._durable = False
        self.is_committing = False
        self._pending = None
        index = manifest.mark.index
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
