"""Answers questions about one node: its health, its metrics, its quorum, who calls it.

A node answers most of them whether it leads or not.
"""

import msgspec

from controller.access.guard import AccessGuard
from controller.http.call import Answers, Call
from controller.http.clients.asked import ReadContext
from controller.http.clients.erasures import erasures_of
from controller.http.metrics import ControllerMetrics
from controller.http.node_view import NodeView
from controller.http.openapi import openapi_document
from controller.http.transferring import Transferring
from metadata.errors import ErrorCode, LogbergError
from metadata.messages import (
    AuthorityReply,
    CallerReply,
    HealthReply,
    TransferLeadershipRequest,
)
from metadata.messages.wire import JSON
from runtime.http.requests import Caller, Reply
from runtime.metrics import CONTENT_TYPE


class NodeAnswers:
    """Answers such questions. `_status` answers the route named status, and so on."""

    def __init__(
        self,
        node: NodeView,
        context: ReadContext,
        guard: AccessGuard,
        metrics: ControllerMetrics,
        transferring: Transferring,
    ) -> None:
        self._node = node
        self._context = context
        self._guard = guard
        self._own_metrics = metrics
        self._transferring = transferring
        self._openapi = b""

    def table(self) -> Answers:
        """Return the answers by the names of their routes."""
        return {
            "live": self._live,
            "ready": self._ready,
            "metrics": self._metrics,
            "openapi_document": self._openapi_document,
            "status": self._status,
            "describe_caller": self._describe_caller,
            "describe_quorum": self._describe_quorum,
            "transfer_leadership": self._transfer_leadership,
            "authority": self._authority,
            "describe_erasures": self._describe_erasures,
        }

    def _live(self, call: Call) -> None:
        call.answer(HealthReply(healthy=True, reason="the process runs"))

    def _ready(self, call: Call) -> None:
        health = self._node.ready()
        call.reply(200 if health.healthy else 503, health)

    def _metrics(self, call: Call) -> None:
        call.on_reply(Reply(200, self._own_metrics.render(), {"content-type": CONTENT_TYPE}))

    def _openapi_document(self, call: Call) -> None:
        if not self._openapi:
            self._openapi = msgspec.json.encode(openapi_document(self._node.version))
        call.on_reply(Reply(200, self._openapi, {"content-type": JSON}))

    def _status(self, call: Call) -> None:
        call.answer(self._node.status())

    def _describe_caller(self, call: Call) -> None:
        caller, principal = call.request.caller, self._node.leader.changes.asks_for(call.request)
        call.answer(
            CallerReply(
                principal=principal,
                method=caller.method,
                address=caller.address,
                super_user=principal in self._guard.super_users,
                name=self._own_name(caller, principal),
            )
        )

    def _own_name(self, caller: Caller, principal: str) -> str | None:
        """Return the caller's own name; whoever asks for somebody else learns no name."""
        opener = self._context.opener
        return opener.name_of(principal) if principal == caller.principal else None

    def _describe_quorum(self, call: Call) -> None:
        call.answer(self._node.quorum_state())

    def _transfer_leadership(self, call: Call) -> None:
        message: TransferLeadershipRequest = call.message
        self._transferring.handle(call.request, message, call.access, call.answer)

    def _authority(self, call: Call) -> None:
        authority = self._context.config.authority
        if authority is None:
            raise LogbergError(
                ErrorCode.SECURITY_DISABLED, "this controller lets no node join by a token ([join])"
            )
        call.answer(AuthorityReply(authority.pem, authority.fingerprint))

    def _describe_erasures(self, call: Call) -> None:
        image = self._node.replica.image
        call.answer(erasures_of(self._node.leader.node_id, image, self._node.subject_keys))
