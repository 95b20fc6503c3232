"""Asks every node what `doctor` wants to know: status, figures, clock, the newest common batch.

Rule: gathering never fails. A node that does not answer is part of the result, with the reason.
"""

import asyncio
import time
from collections.abc import Sequence
from typing import NamedTuple

import msgspec

from ledger.batch import parse
from ledger.errors import LedgerError
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.operating.samples import Samples
from metadata.messages.brokers import BrokerDescription, ListBrokersReply
from metadata.messages.log import ReadLogReply
from metadata.messages.quorum import StatusReply

DEADLINE_S = 5.0
CONTROLLER, AGENT = "controller", "agent"
_STALE = {"consistency": "stale"}


class ChainPoint(NamedTuple):
    """A batch in a node's log."""

    base_offset: int
    hash: str


class NodeReport(NamedTuple):
    """What one node answered."""

    kind: str
    """controller or agent."""
    url: str
    status: StatusReply | None = None
    """A controller's."""
    samples: Samples | None = None
    clock_ahead_s: float | None = None
    """By how much its wall clock is ahead of ours; exact to half of the time of the request."""
    chain: ChainPoint | None = None
    """The batch before the offset that all controllers have."""
    problem: str = ""
    """Why the node, or a part of the report, is missing."""

    @property
    def name(self) -> str:
        """How to call it."""
        return self.url if self.status is None else f"controller {self.status.node_id}"


class ClusterReport(NamedTuple):
    """What all nodes answered at one moment."""

    nodes: tuple[NodeReport, ...]
    brokers: tuple[BrokerDescription, ...]
    common_offset: int
    """Up to which every controller that answered has the log; -1: none answered."""

    @property
    def controllers(self) -> list[NodeReport]:
        """The controllers."""
        return [node for node in self.nodes if node.kind == CONTROLLER]


async def gather(
    client: LogbergClient,
    urls: Sequence[str],
    of_agents: LogbergClient | None = None,
    agents: Sequence[str] = (),
) -> ClusterReport:
    """Ask the controllers at `urls`, and the agents by `of_agents`, a client without a token."""
    controllers = list(await asyncio.gather(*(_controller(client, url) for url in urls)))
    ends = [node.status.log_end for node in controllers if node.status is not None]
    common = min(ends, default=-1)
    if common > 0:
        points = await asyncio.gather(*(_point(client, node, common) for node in controllers))
        controllers = list(points)
    brokers: tuple[BrokerDescription, ...] = ()
    active = next((node for node in controllers if node.status and node.status.active), None)
    if active is not None:
        try:
            reply = await client.from_one(
                active.url, "/v1/brokers", ListBrokersReply, _STALE, DEADLINE_S
            )
            brokers = reply.brokers
        except ClientError:
            brokers = ()
    found: list[NodeReport] = []
    if of_agents is not None:
        found = list(await asyncio.gather(*(_figures(of_agents, AGENT, url) for url in agents)))
    return ClusterReport((*controllers, *found), brokers, common)


async def _controller(client: LogbergClient, url: str) -> NodeReport:
    try:
        status = await client.from_one(url, "/v1/status", StatusReply, _STALE, DEADLINE_S)
    except ClientError as error:
        return NodeReport(CONTROLLER, url, problem=str(error))
    return (await _figures(client, CONTROLLER, url))._replace(status=status)


async def _figures(client: LogbergClient, kind: str, url: str) -> NodeReport:
    try:
        sent = time.time()
        text = await client.from_one(url, "/metrics", bytes, deadline_s=DEADLINE_S)
        came = time.time()
    except ClientError as error:
        return NodeReport(kind, url, problem=str(error))
    samples = Samples(text.decode(errors="replace"))
    clock = samples.value("logberg_wall_clock_seconds")
    ahead = None if clock is None else clock - (sent + came) / 2
    return NodeReport(kind, url, samples=samples, clock_ahead_s=ahead)


async def _point(client: LogbergClient, node: NodeReport, common: int) -> NodeReport:
    """Add the batch before the common offset."""
    if node.status is None:
        return node
    query = {"offset": str(common - 1), "maxBytes": "0"}
    try:
        reply = await client.from_one(node.url, "/v1/log", ReadLogReply, query, DEADLINE_S)
        batch = parse(reply.batches[0])
    except (ClientError, LedgerError, IndexError, msgspec.MsgspecError) as error:
        return node._replace(problem=f"the log before {common} can't be read: {error}")
    return node._replace(chain=ChainPoint(batch.header.base_offset, batch.hash.hex()))
