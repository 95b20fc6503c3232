"""Makes the reply to a MetadataFetch from what is committed, or from an error.

Rule: the state in a reply is the broker's committed state. But a broker is also fenced while the
controller is fencing it for its silence, though that is not committed yet: if a reply let it serve,
its lease would begin again just before its leaderships are given away (model/Leases.tla). Every
reply, also a refusal, says who leads.

A standby's reply has the state that the leader named (`standby_fetch`).
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from controller.config import ControllerConfig
from controller.http.degraded import retry_after_ms
from controller.http.fetch_content import Content
from controller.http.node_view import NodeView
from controller.http.shared_replies import FetchAnswer, SharedReply
from controller.managers.broker_states import RegisteredState, has_caught_up, state_of
from controller.replica.contact_sender import Confirmed
from controller.replica.contacts import Word
from metadata.errors import ErrorCode, LogbergError
from metadata.image import BrokerRegistration
from metadata.messages import (
    MetadataFetchReply,
    MetadataFetchRequest,
    SeenState,
    WantedState,
    error_reply,
)

_STOPPING: Final = WantedState.STOPPING
"""Python 3.11 finds a member through its class in 0.3 µs, which counts for each heartbeat."""
OnReply = Callable[[FetchAnswer], None]


class HeldFetch(NamedTuple):
    """A request that waits for news."""

    request: MetadataFetchRequest
    broker_epoch: int
    on_reply: OnReply

    def wait_s(self, longest_s: float) -> float:
        """Return how long the request may be held: as long as it asks, and `longest_s` at most."""
        return min(self.request.max_wait_ms / 1000, longest_s)


class FetchReplies:
    """The replies of one controller."""

    def __init__(self, config: ControllerConfig, node: NodeView) -> None:
        self._config = config
        self._node = node

    def may_stop(self, held: HeldFetch) -> bool:
        """Return whether a broker that wants to stop may do so: it is fenced."""
        if held.request.wanted_state is not _STOPPING:
            return False
        broker = self._node.replica.image.cluster.brokers.get(held.request.broker_id)
        return broker is not None and broker.fenced

    def reply(self, held: HeldFetch, content: Content) -> FetchAnswer:
        """Return the reply with the broker's committed state."""
        image = self._node.replica.image
        broker = image.cluster.brokers.get(held.request.broker_id)
        if broker is None or broker.broker_epoch != held.broker_epoch:
            return self.refusal(
                LogbergError(
                    ErrorCode.STALE_BROKER_EPOCH,
                    f"broker {held.request.broker_id} no longer has epoch {held.broker_epoch}; "
                    "stop this process and start a new one, which registers",
                )
            )
        may_stop = self.may_stop(held)
        if may_stop:
            # The broker may stop now, so its id is free for the next process.
            self._node.leader.heartbeats.forget(broker.broker_id)
        seen = SeenState.ONLINE
        if broker.fenced or self._node.leader.heartbeats.is_being_fenced(broker.broker_id):
            seen = SeenState.FENCED
        elif broker.in_controlled_shutdown:
            seen = SeenState.STOPPING
        session_ms = int(self._config.session_s * 1000)
        return self._shared(held, broker, content, seen, session_ms, may_stop=may_stop)

    def confirmed(self, held: HeldFetch, content: Content, said: Confirmed) -> FetchAnswer:
        """Return a standby's reply, with the leader's word; a refusal if it can't make one."""
        broker = self._node.replica.image.cluster.brokers.get(held.request.broker_id)
        if broker is None or broker.broker_epoch != held.broker_epoch:
            return self.not_leading()
        if content.reply.diverging is not None or content.reply.snapshot is not None:
            return self.not_leading()
        if said.word is Word.FENCED:
            seen = SeenState.FENCED
        elif said.word is Word.ONLINE and state_of(broker) is RegisteredState.UNFENCED:
            seen = SeenState.ONLINE
        else:
            return self.not_leading()
        return self._shared(held, broker, content, seen, said.session_ms, may_stop=False)

    def _shared(
        self,
        held: HeldFetch,
        broker: BrokerRegistration,
        content: Content,
        seen: SeenState,
        session_ms: int,
        *,
        may_stop: bool,
    ) -> FetchAnswer:
        """Return the reply that all brokers share for which the same holds."""
        caught_up = has_caught_up(broker, held.request.applied_offset)
        leader, url = self._node.leadership()
        key = (seen, may_stop, caught_up, leader.leader, leader.epoch, url, session_ms)
        shared = content.shared.get(key)
        if shared is None:
            shared = content.shared[key] = SharedReply(
                msgspec.structs.replace(
                    content.reply,
                    state=seen,
                    may_stop=may_stop,
                    caught_up=caught_up,
                    leader_id=leader.leader,
                    leader_epoch=leader.epoch,
                    leader_url=url,
                    session_timeout_ms=session_ms,
                )
            )
        return FetchAnswer(shared, broker.broker_epoch)

    def not_leading(self) -> FetchAnswer:
        """Return the refusal of a controller that doesn't lead."""
        known = self._node.leadership().leader.leader is not None
        return self.refusal(
            LogbergError(ErrorCode.NOT_CONTROLLER if known else ErrorCode.NO_QUORUM)
        )

    def refusal(self, error: LogbergError) -> FetchAnswer:
        """Return the reply that carries an error."""
        leader, url = self._node.leadership()
        explained = error_reply(
            error,
            leader_id=leader.leader,
            leader_epoch=leader.epoch,
            leader_url=url,
            retry_after_ms=retry_after_ms(error.code),
        )
        message = MetadataFetchReply(
            error=explained, leader_id=leader.leader, leader_epoch=leader.epoch, leader_url=url
        )
        return FetchAnswer(message, error=error.code, retry_after_ms=error.retry_after_ms)
