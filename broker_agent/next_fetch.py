"""What the agent says in its next fetch: the registration, the state that it wants, its image.

Rule: the agent asks to be online only while its host is ready, its image has the record of its own
registration, and no difference from the controller's history is known. Only a process without a
broker epoch sends a registration.
"""

from broker_agent.catching_up import CatchingUp
from broker_agent.config import AgentConfig
from broker_agent.controller_session import ControllerSession
from broker_agent.registration import LogDirectories, registration_of
from broker_agent.states import AgentStatus, BrokerState
from broker_agent.view import MetadataView
from metadata.messages.fetch import MetadataFetchRequest, WantedState
from metadata.messages.versions import TOLERANT
from metadata.messages.wire import MSGPACK, encode

_REGISTRATION_PATIENCE = (4, 8, 16, 32)
"""How long the agent waits for the answer to a registration: multiples of `answer_slack_ms`, by
attempt. The controller answers after a commit, and each repetition costs another commit."""


class NextFetch:
    """Composes fetches from the state of one agent."""

    def __init__(
        self,
        config: AgentConfig,
        incarnation: str,
        status: AgentStatus,
        view: MetadataView,
        catching_up: CatchingUp,
        session: ControllerSession,
    ) -> None:
        self._config = config
        self._incarnation = incarnation
        self._status = status
        self._view = view
        self._catching_up = catching_up
        self._session = session
        self._registrations = 0
        self.broker_epoch = -1
        """The epoch of this process's registration; -1: it is not registered yet."""
        self.directories = LogDirectories()
        self.host_ready = True
        self.asked = WantedState.FENCED
        """The state that the last fetch asked for."""

    def compose(self, max_wait_ms: int, version: int) -> bytes:
        """Encode the body of the next fetch as MessagePack, in the given version."""
        self.asked = self._wanted()
        registering = self.broker_epoch < 0
        self._registrations += registering
        # While a snapshot is being loaded, a fetch is only a heartbeat and asks for no batches.
        following = self._catching_up.pause_s() == 0
        return encode(
            MetadataFetchRequest(
                cluster_id=self._config.cluster_id,
                broker_id=self._config.broker_id,
                incarnation_id=self._incarnation,
                broker_epoch=self.broker_epoch,
                registration=(
                    registration_of(self._config, self.directories, version)
                    if registering
                    else None
                ),
                fetched_offset=self._view.fetched_offset,
                fetched_epoch=self._view.fetched_epoch,
                applied_offset=self._view.applied_offset,
                wanted_state=self.asked,
                max_bytes=self._config.fetch_bytes_max if following else 0,
                max_wait_ms=max_wait_ms,
                offline_log_dirs=self.directories.failed_texts(version),
                cordoned_log_dirs=self.directories.cordoned_texts(version),
                software=self._config.software if version >= TOLERANT else None,
            ),
            MSGPACK,
        )

    def _wanted(self) -> WantedState:
        """Return the state that the agent wants now."""
        if self._status.state is BrokerState.STOPPING:
            return WantedState.STOPPING
        registered = 0 <= self.broker_epoch < self._view.applied_offset
        if self.host_ready and registered and not self._catching_up.differs:
            return WantedState.ONLINE
        return WantedState.FENCED

    def wants_other(self) -> bool:
        """Tell whether the agent wants another state than its last fetch asked for."""
        return self._wanted() is not self.asked

    def only_renews(self) -> bool:
        """Tell whether the next fetch is a heartbeat of a broker in service that wants no more."""
        online = self._status.state is BrokerState.ONLINE
        return self.broker_epoch >= 0 and online and self._wanted() is WantedState.ONLINE

    def needs_version(self) -> bool:
        """Tell whether the next fetch says what version 1 can't: the previous broker epoch."""
        return self.broker_epoch < 0 and self._config.previous_broker_epoch >= 0

    def held_ms(self) -> int:
        """Return for how many ms the controller may hold the next fetch; 0: answer at once."""
        return 0 if self._catching_up.pause_s() > 0 else self._session.held_ms()

    def patience_ms(self) -> int:
        """Return for how many ms past its max wait the agent waits for an answer."""
        # The controller answers a registration only after a commit, and anything else at once.
        if self.broker_epoch >= 0:
            return self._config.answer_slack_ms
        attempt = min(self._registrations, len(_REGISTRATION_PATIENCE) - 1)
        return self._config.answer_slack_ms * _REGISTRATION_PATIENCE[attempt]
