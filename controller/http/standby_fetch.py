"""A standby answers heartbeats of brokers that are in service, once the leader has confirmed them.

Rules (ADR 0048, model/Leases.tla):

- A standby takes a MetadataFetch only of a broker that, in its own image, is online as that process
  and asks for nothing else. Everything else is sent to the leader by NOT_CONTROLLER, as always.
- It answers when the leader has confirmed the contact in the epoch that the standby knows. If the
  epoch changes while the request is held, the contact is forwarded again.
- The reply's state is the one that the leader named, and its session is the leader's. If this
  node's image contradicts it, or if the broker's history differs from ours, the leader answers.

The deltas come from this node's log. It has only what is committed, and perhaps not yet all of it.
"""

from collections.abc import Callable

from controller.config import ControllerConfig
from controller.http.fetch_content import FetchContent
from controller.http.fetch_replies import FetchReplies, HeldFetch
from controller.http.held_requests import HeldRequests
from controller.replica.contact_sender import Confirmed, ContactSender
from controller.replica.contacts import ForwardedContact
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.messages import MetadataFetchRequest
from runtime.clock import Clock

InService = Callable[[MetadataImage], bool]


class StandbyFetch:
    """Answers on a standby what needs no decision."""

    def __init__(
        self,
        config: ControllerConfig,
        clock: Clock,
        image: Callable[[], MetadataImage],
        content: FetchContent,
        replies: FetchReplies,
        held_requests: HeldRequests,
        sender: ContactSender,
    ) -> None:
        self._config = config
        self._clock = clock
        self._image = image
        self._content = content
        self._replies = replies
        self._held_requests = held_requests
        self._sender = sender

    def takes(self, request: MetadataFetchRequest, in_service: InService) -> bool:
        """Return whether this standby can answer a request of a caller that was checked.

        `in_service` tells whether an image says that the broker is online, as that process, and
        that it asks for nothing else. It may raise LogbergError, which means no.
        """
        if request.broker_epoch < 0 or request.registration is not None:
            return False
        if not self._sender.can_forward(request.fetched_epoch):
            return False
        if max(request.fetched_offset, request.applied_offset) > self._content.log_end:
            return False  # This node is late, or the broker has another history.
        try:
            return in_service(self._image())
        except LogbergError:
            return False

    def handle(self, held: HeldFetch) -> None:
        """Answer exactly once, later."""
        until = self._clock.monotonic() + held.wait_s(self._config.heartbeat_s)
        self._forward(held, lambda said: self._answer_or_hold(held, said, until))

    def _forward(self, held: HeldFetch, on_said: Callable[[Confirmed], None]) -> None:
        request = held.request
        software = request.software
        if software is not None and not software.isascii():
            software = None  # The leader would not note it. Without it a bulk is small enough.
        contact = ForwardedContact(
            request.broker_id, request.broker_epoch, request.applied_offset, software
        )

        def on_word(said: Confirmed | None) -> None:
            if said is None:
                held.on_reply(self._replies.not_leading())
            else:
                on_said(said)

        self._sender.take(contact, on_word)

    def _answer_or_hold(self, held: HeldFetch, said: Confirmed, until: float) -> None:
        left_s = until - self._clock.monotonic()
        try:
            something = self._content.find(held.request).something
        except LogbergError:
            something = True  # `_answer` refuses.
        if something or left_s <= 0:
            self._answer(held, said)
        else:
            self._held_requests.park(left_s, lambda: self._answer(held, said))

    def _answer(self, held: HeldFetch, said: Confirmed) -> None:
        if not self._sender.is_current(said.epoch):
            # Another leader counts the sessions now: it must have heard of the broker, too.
            self._forward(held, lambda again: self._answer(held, again))
            return
        try:
            content = self._content.find(held.request)
        except LogbergError:
            held.on_reply(self._replies.not_leading())
            return
        held.on_reply(self._replies.confirmed(held, content, said))
