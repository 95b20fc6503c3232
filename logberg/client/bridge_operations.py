"""The operations about the bridge to a store that is moved here.

Rule: as in `operations`: one method for each public route.
"""

from collections.abc import Sequence

import msgspec

from logberg.client.asking import Asking
from logberg.client.client_errors import ClientError
from metadata.codec import encode_records
from metadata.errors import ErrorCode
from metadata.messages.bridge import (
    BridgeFamily,
    DescribeBridgeReply,
    FollowSourceReply,
    FollowSourceRequest,
    LegacyBroker,
    SetBridgeModeReply,
    SetBridgeModeRequest,
)
from metadata.messages.imports import IMPORT_BYTES_MAX
from metadata.records import Record


class BridgeOperations(Asking):
    """Every method raises ClientError."""

    async def bridge(self) -> DescribeBridgeReply:
        """Return who leads, this cluster or the source, and the source's brokers."""
        return await self.get("/v1/bridge", DescribeBridgeReply)

    async def follow_source(
        self,
        source: str,
        source_cluster_id: str,
        from_revision: int,
        revision: int,
        records: Sequence[Record] = (),
        *,
        complete: Sequence[BridgeFamily] = (),
        topics_gone: Sequence[str] = (),
        brokers: Sequence[LegacyBroker] | None = None,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> FollowSourceReply:
        """Bring the cluster to a revision of the source; the first step begins the bridge.

        `complete`: families of which the records are everything. STALE_EXPECTED_OFFSET: the bridge
        has not reached `from_revision`. BODY_TOO_LARGE for more than 3 MiB of records.
        """
        encoded = encode_records(records)
        if len(encoded) > IMPORT_BYTES_MAX:
            raise ClientError(
                ErrorCode.BODY_TOO_LARGE.value,
                f"a step of the bridge is one change, and takes at most {IMPORT_BYTES_MAX:,} bytes "
                f"of records; here are {len(encoded):,}",
            )
        body = FollowSourceRequest(
            source,
            source_cluster_id,
            from_revision,
            revision,
            encoded,
            tuple(complete),
            tuple(topics_gone),
            None if brokers is None else tuple(brokers),
            dry_run,
        )
        return await self.change(
            "POST",
            "/v1/bridge/follow",
            FollowSourceReply,
            msgspec.to_builtins(body),
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )

    async def set_bridge_mode(
        self,
        request: SetBridgeModeRequest,
        *,
        reason: str = "",
        request_id: str | None = None,
        expect_offset: int | None = None,
        dry_run: bool = False,
    ) -> SetBridgeModeReply:
        """Let this cluster lead, end the bridge for good, or give it up."""
        body = msgspec.structs.replace(request, dry_run=dry_run)
        return await self.change(
            "POST",
            "/v1/bridge/mode",
            SetBridgeModeReply,
            msgspec.to_builtins(body),
            reason,
            request_id=request_id,
            expect_offset=expect_offset,
        )
