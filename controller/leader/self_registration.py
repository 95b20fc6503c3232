"""Controllers register themselves in the log (KIP-919), and logs of release 0.1 get feature levels.

Only the active controller writes, and commands are never forwarded. So a controller that the log
doesn't know yet announces its registration to its peers, with every heartbeat. The active
controller writes it, under the principal of the controller at the other end of the link. A peer of
release 0.1 ignores the announcement.

The leader also writes where the controllers listen for Kafka, which their registrations say, into
the voters' record.

While a log has no levels, every controller keeps announcing. Levels begin when all voters are heard
at the same time. A voter that registered and was then put back to release 0.1 is silent, so levels
don't begin without it.
"""

from collections.abc import Callable
from urllib.parse import urlsplit

from structlog.typing import FilteringBoundLogger

from controller.config import ControllerConfig
from controller.leader.decisions import Decision, Outcome, Written
from controller.leader.first_levels import HEARD_S, FirstLevels
from controller.leader.proposer import Proposer
from controller.managers.features import (
    begin_levels,
    has_levels,
    register_controller,
    what_begins_later,
)
from controller.managers.voter_addresses import HTTP, addressed_voters, set_voter_addresses
from controller.result import Decide
from ledger.batch import Provenance
from metadata.codec import RecordDecodeError, decode_record, encode_record
from metadata.errors import ErrorCode, LogbergError
from metadata.features import BASE, SUPPORTED
from metadata.image import MetadataImage
from metadata.records import (
    ControllerEndpoint,
    ControllerFeature,
    RegisterControllerRecord,
    SecurityProtocol,
)
from quorum.api import Voter
from runtime.clock import Clock

ANNOUNCEMENT = b"\x02"
"""The first byte. A digest begins with 1."""
_HOST_MAX = 255
_AGAIN_S = 1.0
"""Pause after a decision was refused."""


def registration_of(config: ControllerConfig, incarnation_id: bytes) -> RegisterControllerRecord:
    """Return this controller's registration."""
    url = urlsplit(config.controller_urls.get(config.node_id, ""))
    endpoints: tuple[ControllerEndpoint, ...] = ()
    if url.hostname and len(url.hostname) <= _HOST_MAX:
        secure = url.scheme == "https"
        protocol = SecurityProtocol.SSL if secure else SecurityProtocol.PLAINTEXT
        port = url.port or (443 if secure else 80)
        # Kafka's tools would take an endpoint named CONTROLLER for one that speaks Kafka.
        name = HTTP if config.kafka_address else "CONTROLLER"
        endpoints = (ControllerEndpoint(name, url.hostname, port, int(protocol)),)
    if endpoints and config.kafka_address:
        endpoints += (ControllerEndpoint(*config.kafka_address, int(SecurityProtocol.PLAINTEXT)),)
    features = tuple(
        ControllerFeature(name, levels.low, levels.high)
        for name, levels in sorted(SUPPORTED.items())
    )
    return RegisterControllerRecord(config.node_id, incarnation_id, False, endpoints, features)


class SelfRegistration:
    """Announces this controller's registration. While it leads, it writes the others' too."""

    def __init__(
        self,
        own: RegisterControllerRecord,
        clock: Clock,
        proposer: Proposer,
        announce: Callable[[bytes], None],
        voters: Callable[[], tuple[Voter, ...]],
        image: Callable[[], MetadataImage],
        provenance: Callable[[int, str], Provenance],
        first_levels: FirstLevels,
        log: FilteringBoundLogger,
    ) -> None:
        """`image` returns the committed image. `first_levels` hears what comes before the log.

        `provenance` makes the provenance of an operation, by the id of the controller it is for.
        """
        self._own = own
        self._clock = clock
        self._proposer = proposer
        self._announce = announce
        self._voters = voters
        self._image = image
        self._provenance = provenance
        self._first_levels = first_levels
        self._log = log
        self._announcing = False
        self._leads = False
        self._under_way: set[tuple[str, int]] = set()
        self._seen: tuple[object, object] | None = None
        self._waits_for = ""
        self._refused: set[int] = set()
        """The controllers whose refusal was told."""
        self._heard: dict[int, float] = {}
        """Monotonic seconds when a registered controller last announced itself, by node id."""

    def begin(self) -> None:
        """This controller is active now."""
        self._leads = True
        self._under_way.clear()
        self._seen = None
        self.look()

    def end(self) -> None:
        """This controller leads no more."""
        self._leads = False
        self._waits_for = ""

    def look(self) -> None:
        """The committed image may have changed: announce, register or begin levels as needed."""
        image = self._image()
        seen = (image.cluster, image.features)
        if self._seen is not None and self._seen[0] is seen[0] and self._seen[1] is seen[1]:
            return
        self._seen = seen
        registered = image.cluster.controllers.get(self._own.controller_id) == self._own
        announcing = not registered or not has_levels(image)
        if self._announcing is not announcing:
            self._announcing = announcing
            self._announce(ANNOUNCEMENT + encode_record(self._own) if announcing else b"")
        if not self._leads:
            return
        if not registered:
            self._register(self._own)
        elif not has_levels(image):
            self._begin_levels(image)
        elif addressed_voters(image) != image.quorum.voters:
            self._set_voter_addresses()

    def on_announcement(self, node_id: int, data: bytes) -> None:
        """A peer announced its registration. The leader writes it if the log lacks it."""
        image = self._image()
        if not self._leads and image.offset:
            return
        try:
            record = decode_record(data[len(ANNOUNCEMENT) :])
        except RecordDecodeError as error:
            self._log.warning("announcement_refused", node=node_id, why=str(error))
            return
        if not isinstance(record, RegisterControllerRecord) or record.controller_id != node_id:
            why = "it is not a registration of the node that sent it"
            self._log.warning("announcement_refused", node=node_id, why=why)
            return
        if not image.offset:
            self._first_levels.hear(record)
        if not self._leads:
            return
        if image.cluster.controllers.get(node_id) != record:
            self._register(record)
        elif not has_levels(image):
            self._heard[node_id] = self._clock.monotonic()
            self._begin_levels(image)

    def _register(self, record: RegisterControllerRecord) -> None:
        node_id = record.controller_id

        def written(offset: int) -> None:
            self._log.info("controller_registered", controller=node_id, offset=offset)

        self._submit(
            "RegisterController",
            node_id,
            lambda image: register_controller(image, record),
            written,
        )

    def _begin_levels(self, image: MetadataImage) -> None:
        """Write the upgrade batch of an old log, or log once what it waits for."""
        voters = [voter.node_id for voter in self._voters()]
        waits_for = what_begins_later(image, voters) or self._who_is_silent(voters)
        if waits_for:
            if waits_for != self._waits_for:
                self._log.warning("feature_levels_wait", reason=waits_for)
            self._waits_for = waits_for
            return

        def written(offset: int) -> None:
            self._log.info("feature_levels_began", levels=dict(BASE), offset=offset)

        self._submit(
            "BeginFeatureLevels",
            self._own.controller_id,
            lambda pending: begin_levels(pending, voters),
            written,
        )

    def _set_voter_addresses(self) -> None:
        """Write where the controllers listen for Kafka."""

        def written(offset: int) -> None:
            self._log.info("voter_addresses_written", offset=offset)

        self._submit("SetVoterAddresses", self._own.controller_id, set_voter_addresses, written)

    def _who_is_silent(self, voters: list[int]) -> str:
        since = self._clock.monotonic() - HEARD_S
        silent = [
            voter
            for voter in sorted(voters)
            if voter != self._own.controller_id and self._heard.get(voter, since - 1) < since
        ]
        if not silent:
            return ""
        names = ", ".join(map(str, silent))
        return f"these voters are not running this release now: {names}. Start them on it"

    def _tell_refused(self, node_id: int, error: LogbergError) -> None:
        """Say once why a controller can't be registered."""
        if error.code is ErrorCode.INVALID_REGISTRATION and node_id not in self._refused:
            self._refused.add(node_id)
            why = str(error)
            self._log.warning("controller_registration_refused", controller=node_id, why=why)

    def _submit(
        self, operation: str, node_id: int, decide: Decide, on_written: Callable[[int], None]
    ) -> None:
        """Submit a decision, one at a time per operation and node; retry later if it is refused."""
        key = (operation, node_id)
        if key in self._under_way:
            return
        self._under_way.add(key)

        def again() -> None:
            self._under_way.discard(key)
            self._seen = None
            self.look()

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, Written):
                self._under_way.discard(key)
                if outcome.wrote:
                    on_written(outcome.offset)
            elif isinstance(outcome, LogbergError):
                self._tell_refused(node_id, outcome)
                self._clock.call_later(_AGAIN_S, again)

        self._proposer.submit(
            Decision(decide, self._provenance(node_id, operation), done, first=True)
        )
