"""The cluster as every controller describes itself, and its brokers.

Rule: `observe` never fails. A controller that is down or slow is part of the result.
"""

import asyncio
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from metadata.messages.brokers import BrokerDescription, ListBrokersReply
from metadata.messages.quorum import QuorumMember, QuorumReply, StatusReply

DOWN = "down"
_STALE = {"consistency": "stale"}


class ControllerView(msgspec.Struct, frozen=True):
    """One controller."""

    url: str
    status: StatusReply | None
    """What it answered; None: it is down."""
    problem: str = ""
    """Why it counts as down."""

    @property
    def node_id(self) -> int | None:
        """Its id; None while it is down."""
        return None if self.status is None else self.status.node_id

    @property
    def name(self) -> int | str:
        """Its id, or its URL while it is down."""
        return self.url if self.status is None else self.status.node_id

    @property
    def role(self) -> str:
        """As in its status, or `down`."""
        return DOWN if self.status is None else self.status.role

    @property
    def active(self) -> bool:
        """Whether it is the active controller."""
        return self.status is not None and self.status.active

    @property
    def log_end(self) -> int:
        """Of its ledger; -1 while it is down."""
        return -1 if self.status is None else self.status.log_end

    @property
    def note(self) -> str:
        """What is wrong with the controller; empty if nothing is."""
        return self.problem if self.status is None else self.status.note

    def to_json(self) -> dict[str, Any]:
        """Return it as `logberg status --output json` shows it."""
        if self.status is None:
            return {"url": self.url, "role": DOWN, "active": False, "note": self.problem}
        return {"url": self.url, **msgspec.to_builtins(self.status)}


class ClusterView(msgspec.Struct, frozen=True):
    """What was seen at one moment."""

    controllers: tuple[ControllerView, ...]
    known_brokers: tuple[BrokerDescription, ...] | None
    """None: no active controller said which there are."""

    @property
    def leader(self) -> StatusReply | None:
        """The active controller's status; None: no controller is active."""
        return next((seen.status for seen in self.controllers if seen.active), None)

    @property
    def active(self) -> int | None:
        """The active controller's id."""
        return None if self.leader is None else self.leader.node_id

    @property
    def epoch(self) -> int | None:
        """The active controller's epoch."""
        return None if self.leader is None else self.leader.leader_epoch

    @property
    def cluster_id(self) -> str | None:
        """As the first controller says that answered."""
        return next((c.status.cluster_id for c in self.controllers if c.status is not None), None)

    @property
    def brokers(self) -> tuple[BrokerDescription, ...]:
        """The brokers that are known."""
        return self.known_brokers or ()

    @property
    def all_answer(self) -> bool:
        """Whether no controller is down."""
        return all(seen.status is not None for seen in self.controllers)

    def state_of(self, broker_id: int) -> str | None:
        """Return a broker's state; None if it is not known."""
        return next((b.state.value for b in self.brokers if b.broker_id == broker_id), None)

    def is_ready(self, brokers: int) -> bool:
        """Whether every controller answers, one is active, and so many brokers are online."""
        online = [broker for broker in self.brokers if broker.state == "online"]
        return self.active is not None and self.all_answer and len(online) >= brokers

    def to_json(self) -> dict[str, Any]:
        """Return it as `logberg status --output json` shows it."""
        return {
            "clusterId": self.cluster_id,
            "active": self.active,
            "epoch": self.epoch,
            "controllers": [seen.to_json() for seen in self.controllers],
            "brokers": msgspec.to_builtins(self.brokers),
            "brokersKnown": self.known_brokers is not None,
        }


def member_role(member: QuorumMember, leader: int | None) -> str:
    """Return what a controller is to the quorum, for people."""
    if not member.is_voter:
        return "standing observer" if member.is_standing else "observer"
    return "leader" if member.node_id == leader else "follower"


def is_leaders(reply: QuorumReply) -> bool:
    """Whether a reply is the leader's own."""
    return reply.leader_id is not None and reply.node_id == reply.leader_id


def member_progress(member: QuorumMember, reply: QuorumReply) -> tuple[int, int]:
    """Return how far a member's journal is durable, and how many entries it lacks.

    Of others than itself only the leader knows that.
    """
    own = member.node_id == reply.node_id
    durable = reply.durable_index if own else member.match_index
    return durable, max(0, reply.last_index - durable)


async def observe(client: LogbergClient, urls: Sequence[str]) -> ClusterView:
    """Ask every controller for itself, and the active one for brokers."""
    views = tuple(await asyncio.gather(*(_view_of(client, url) for url in urls)))
    active = next((view for view in views if view.active), None)
    brokers: tuple[BrokerDescription, ...] | None = None
    if active is not None:
        # A controller that is slow to answer is part of the picture, not the end of it.
        with suppress(ClientError):
            reply = await client.from_one(active.url, "/v1/brokers", ListBrokersReply, _STALE)
            brokers = reply.brokers
    return ClusterView(views, brokers)


async def _view_of(client: LogbergClient, url: str) -> ControllerView:
    try:
        return ControllerView(url, await client.from_one(url, "/v1/status", StatusReply, _STALE))
    except ClientError as error:
        return ControllerView(url, None, str(error))
