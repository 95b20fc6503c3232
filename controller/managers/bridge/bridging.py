"""Decides about the bridge: its steps, and who leads.

Modes follow each other so: none, following, leading, finalised. From following and leading one may
go back to none. Nothing leads away from finalised.
"""

from collections.abc import Callable, Generator
from typing import Final

import msgspec

from controller.managers.bridge.mirroring import SourceMirror
from controller.managers.clients.managers import ClientManagers
from controller.managers.configs import ConfigManager
from controller.managers.imports.importing import read_contents
from controller.result import ControllerResult
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import (
    FollowSourceReply,
    FollowSourceRequest,
    LegacyBroker,
    SetBridgeModeReply,
    SetBridgeModeRequest,
)
from metadata.messages.wire import canonical
from metadata.plain_text import check_plain
from metadata.records import BridgeMode, BridgeRecord, LegacyBrokerRecord, Record

_NEXT: Final = {
    BridgeMode.FOLLOWING: (BridgeMode.LEADING, BridgeMode.NONE),
    BridgeMode.LEADING: (BridgeMode.FINALISED, BridgeMode.NONE),
}
_NO_RECORDS: Final = b"\x90"


def mode_name(mode: int) -> str:
    """Return a mode as messages have it."""
    return BridgeMode(mode).name.lower()


class BridgeManager:
    """Each public method reads an image and returns records."""

    def __init__(
        self, configs: ConfigManager, clients: ClientManagers, wall_ms: Callable[[], int]
    ) -> None:
        """`wall_ms` says since when a mode holds, and which tokens have expired."""
        self._configs = configs
        self._clients = clients
        self._wall_ms = wall_ms

    def follow(
        self, image: MetadataImage, request: FollowSourceRequest, principal: str
    ) -> Generator[None, None, ControllerResult]:
        """Bring what is followed to a revision of the source. Raises LogbergError.

        STALE_EXPECTED_OFFSET: another step was made since the one that the request names.
        """
        check_plain("source", request.source)
        state = image.bridge.state
        leads = state is not None and state.mode == BridgeMode.LEADING
        self._check_step(state, request, leads=leads)
        following = state is not None and state.mode == BridgeMode.FOLLOWING
        mirror = SourceMirror(
            image, self._configs, self._clients, self._wall_ms(), begins=not following
        )
        if not leads:
            contents = yield from read_contents((request.records,))
            if contents.keys:
                raise _invalid("records", "keys of coordination aren't followed")
            yield from mirror.compare(contents, frozenset(request.complete), request.topics_gone)
        brokers = () if request.brokers is None else request.brokers
        if not leads:
            mirror.refuse_registered(brokers)
        reply = FollowSourceReply(
            mode=mode_name(BridgeMode.LEADING if leads else BridgeMode.FOLLOWING),
            revision=request.revision,
            changed=len(mirror.records),
            conflicts=tuple(mirror.conflicts),
            conflict_count=mirror.conflict_count,
            dry_run=request.dry_run,
        )
        if mirror.conflict_count:
            refused = msgspec.structs.replace(reply, changed=0, revision=request.from_revision)
            return ControllerResult((), refused)
        legacy = [] if request.brokers is None else _legacy_changes(image, brokers)
        if state is not None and (following or leads):
            if not mirror.records and not legacy and state.revision == request.revision:
                return ControllerResult((), reply)
            step = msgspec.structs.replace(state, revision=request.revision)
        else:
            step = BridgeRecord(
                int(BridgeMode.FOLLOWING),
                request.source,
                request.source_cluster_id,
                request.revision,
                -1,
                self._wall_ms(),
                principal,
            )
        return ControllerResult(
            [step, *legacy, *mirror.records],
            reply,
            reason=f"bridge from {request.source} at revision {request.revision}",
            salted_hashes=tuple(mirror.salted_hashes),
        )

    def _check_step(
        self, state: BridgeRecord | None, request: FollowSourceRequest, *, leads: bool
    ) -> None:
        if state is not None and state.mode == BridgeMode.FINALISED:
            raise _invalid(
                "source", f"the bridge to {state.source} is finalised: there is no way back"
            )
        running = state is not None and state.mode != BridgeMode.NONE
        reached = state.revision if state is not None and running else -1
        if request.from_revision != reached:
            raise LogbergError(
                ErrorCode.STALE_EXPECTED_OFFSET,
                f"the bridge has reached revision {reached}, and the step begins at "
                f"{request.from_revision}: another bridge runs, or an answer was lost",
                {"revision": str(reached)},
            )
        if state is not None and running:
            if state.source_cluster_id != request.source_cluster_id:
                raise _invalid(
                    "sourceClusterId",
                    f"the bridge follows cluster {state.source_cluster_id!r} of {state.source}",
                )
            if request.revision < state.revision:
                raise _invalid("revision", f"the bridge has reached {state.revision} already")
        if leads and (request.records != _NO_RECORDS or request.complete or request.topics_gone):
            raise _invalid("records", "this cluster leads: the bridge brings brokers only")

    def set_mode(
        self, image: MetadataImage, request: SetBridgeModeRequest, principal: str
    ) -> ControllerResult:
        """Let the quorum lead, end the bridge, or give it up. Raises LogbergError."""
        state = image.bridge.state
        wanted = BridgeMode[request.mode.upper()]
        reply = SetBridgeModeReply(mode=request.mode, dry_run=request.dry_run)
        asked = (wanted, request.claim_epoch)
        if state is not None and (state.mode, state.claim_epoch) == asked:
            return ControllerResult((), reply)
        if state is None or state.mode == BridgeMode.NONE:
            raise _invalid(
                "mode", "there is no bridge: begin with logberg import zookeeper --follow"
            )
        # A claim that was lost and made again is a new epoch of the same mode.
        again = state.mode == wanted == BridgeMode.LEADING
        if not again and wanted not in _NEXT.get(BridgeMode(state.mode), ()):
            raise _invalid(
                "mode", f"the bridge is {mode_name(state.mode)}, so it can't be {request.mode}"
            )
        if request.revision != state.revision or request.source != state.source:
            raise LogbergError(
                ErrorCode.STALE_EXPECTED_OFFSET,
                f"the bridge has reached revision {state.revision} of {state.source}",
                {"revision": str(state.revision)},
            )
        if (wanted == BridgeMode.LEADING) != (request.claim_epoch >= 0):
            raise _invalid("claimEpoch", "it belongs to the mode leading, and to no other")
        changed = BridgeRecord(
            int(wanted),
            state.source,
            state.source_cluster_id,
            state.revision,
            request.claim_epoch,
            state.since_ms if again else self._wall_ms(),
            state.begun_by if again else principal,
        )
        records: list[Record] = [changed]
        if wanted in (BridgeMode.NONE, BridgeMode.FINALISED):
            records += _legacy_changes(image, ())
        return ControllerResult(records, reply, reason=f"bridge to {state.source}: {request.mode}")

    def meaning(self, request: FollowSourceRequest) -> bytes:
        """Return what stands for a step where the log keeps its digest: never a secret."""
        if self._clients.scram.has_key:
            return self._clients.scram.secret_meaning(canonical(request))
        length = len(request.records).to_bytes(8, "big")
        return canonical(msgspec.structs.replace(request, records=length))


def _legacy_changes(image: MetadataImage, brokers: tuple[LegacyBroker, ...]) -> list[Record]:
    """Return the records that make these the legacy brokers."""
    here = image.bridge.legacy_brokers
    wanted = {
        each.broker_id: LegacyBrokerRecord(
            each.broker_id, each.epoch, each.endpoints, each.rack, remove=False
        )
        for each in brokers
    }
    gone = [
        msgspec.structs.replace(here[broker], remove=True)
        for broker in sorted(here)
        if broker not in wanted
    ]
    return [*gone, *(wanted[id_] for id_ in sorted(wanted) if here.get(id_) != wanted[id_])]


def _invalid(field: str, why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, f"{field}: {why}", {"field": field})
