"""What every answer says of the quorum: who leads which epoch, and where it listens for Kafka.

Rule: the addresses are those of the voters' record in the log, by the listener's name. A broker
learns only from these answers who leads, so they stand in those with an error, too (KIP-853).
"""

from typing import Final, Protocol

from controller.config import ControllerConfig
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.wire.schema import Fields
from ledger.ledger import Ledger
from metadata.image import MetadataImage
from metadata.records import Voter, VoterEndpoint
from quorum.api import Mark, Quorum
from runtime.http.requests import Caller

TOPIC: Final = "__cluster_metadata"
TOPIC_ID: Final = bytes(15) + b"\x01"
NOBODY: Final = -1


class QuorumSource(Protocol):
    """What is read of a controller."""

    @property
    def quorum(self) -> Quorum:
        """The quorum."""

    @property
    def image(self) -> MetadataImage:
        """The committed image."""

    @property
    def ledger(self) -> Ledger | None:
        """The ledger; None until it is open."""

    @property
    def active(self) -> bool:
        """The controller leads, and the begin of its epoch is committed."""

    @property
    def place(self) -> Mark:
        """The last entry of the quorum's that is applied as a whole."""


class LeaderView:
    """The quorum as answers to Kafka say it."""

    def __init__(self, source: QuorumSource, config: ControllerConfig) -> None:
        self._source = source
        self._config = config

    @property
    def cluster_id(self) -> str:
        """The cluster's id."""
        return self._config.cluster_id

    @property
    def leader(self) -> int:
        """The leader's id; -1: none is known."""
        leader = self._source.quorum.leader_and_epoch().leader
        return NOBODY if leader is None else leader

    @property
    def epoch(self) -> int:
        """The newest epoch that this controller knows."""
        return self._source.quorum.leader_and_epoch().epoch

    @property
    def leads(self) -> bool:
        """This controller leads."""
        return self.leader == self._config.node_id

    @property
    def voters(self) -> tuple[Voter, ...]:
        """The voters, as the log has them."""
        return self._source.image.quorum.voters

    def objection(self, epoch: int) -> KafkaCode:
        """Return why a request of a replica in `epoch` is not for this controller; NONE: it is.

        A replica in our epoch takes NOT_LEADER_OR_FOLLOWER without a leader for an answer, and asks
        again at once, for ever: a controller that was cut off from the others keeps its brokers so.
        BROKER_NOT_AVAILABLE lets it pause, and ask another controller.
        """
        if epoch < self.epoch:
            return KafkaCode.FENCED_LEADER_EPOCH
        if epoch > self.epoch:
            return KafkaCode.UNKNOWN_LEADER_EPOCH
        if self.leader == NOBODY:
            return KafkaCode.BROKER_NOT_AVAILABLE
        return KafkaCode.NONE if self.leads else KafkaCode.NOT_LEADER_OR_FOLLOWER

    def current_leader(self) -> Fields:
        """Return the struct LeaderIdAndEpoch."""
        return {"LeaderId": self.leader, "LeaderEpoch": self.epoch}

    def node_endpoints(self, listener: str) -> list[Fields]:
        """Return the leader's address at the listener of this name; empty: it isn't known."""
        leader = self.leader
        for voter in self.voters:
            if voter.voter_id == leader:
                return [
                    {"NodeId": leader, "Host": point.host, "Port": point.port}
                    for point in self.endpoints_of(voter, listener)[:1]
                ]
        return []

    def endpoints_of(self, voter: Voter, listener: str) -> list[VoterEndpoint]:
        """Return where a voter listens for Kafka, under this name or under that of our setting."""
        own = self._config.kafka_address
        name = (listener or (own[0] if own is not None else "")).upper()
        return [point for point in voter.endpoints if point.name.upper() == name]

    def wrong_cluster(self, cluster_id: str | None) -> bool:
        """Return whether a request names another cluster."""
        return cluster_id is not None and cluster_id != self._config.cluster_id

    def may_read_log(self, caller: Caller) -> bool:
        """Return whether the caller may read the log, which holds SCRAM credentials in clear.

        Where authentication is on, brokers' own credentials and super users may.
        """
        if not self._config.brokers_prove_themselves:
            return True
        return caller.principal.startswith("Broker:") or (
            caller.principal in self._config.super_users
        )
