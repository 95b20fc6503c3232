"""Gives out producer ids, from blocks that the controller allocates to this broker (KIP-730).

Rule: no id is given out twice. The controller allocates a block to one request only. If its answer
is lost, nobody uses that block, and the agent asks for another one. A block that begins below the
end of an earlier one is refused: the controller never allocates such a block, so the answer is an
old one.

The agent asks for the first block when the host takes the first id. It asks for the next block
when nine tenths of the current one are used, so that a host need not wait.
"""

from collections.abc import Callable

import structlog

from broker_agent.agent import AgentCore
from broker_agent.paced_requests import PacedRequests, post, problem_of, reply_of
from broker_agent.publishers import Manifest
from metadata.image import MetadataImage
from metadata.messages.producer_ids import AllocateProducerIdsReply, AllocateProducerIdsRequest
from runtime.clock import Clock
from runtime.http.requests import Reply, Request, Requester, Unreachable

PATH = "/v1/producer-ids"
PRODUCER_IDS_ALLOCATED = "producer_ids_allocated"
PRODUCER_IDS_REFUSED = "producer_ids_refused"
_PREFETCH_SHARE = 0.1
"""The agent asks for the next block when so much of the current one is left."""


class ProducerIds:
    """The producer ids of one broker. It is a publisher: the agent calls `on_metadata`."""

    def __init__(
        self,
        broker_id: int,
        *,
        clock: Clock,
        requester: Requester,
        on_ready: Callable[[], None],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`on_ready` is called when ids have come after `take` returned None."""
        self._broker_id = broker_id
        self._on_ready = on_ready
        self._log = log.bind(broker_id=broker_id)
        self._requests = PacedRequests(clock, requester, self._compose, self._on_answer)
        self._waits = False
        """The host found no id."""
        self._current = range(0)
        """The ids that are left of the current block."""
        self._next = range(0)
        """The block after the current one; empty: not allocated yet."""
        self._low = 0
        """With so many ids left, the agent asks for the next block."""
        self._end = 0
        """The end of the highest block so far."""
        self.problem = ""
        """Why the last request for a block failed; empty: it did not."""

    def follow(self, agent: AgentCore) -> None:
        """Ask as the broker of `agent`."""
        self._requests.follow(agent)

    def take(self) -> int | None:
        """Return an id that nobody got before; None: none is here yet, and the agent asks."""
        if not self._current:
            self._current, self._next = self._next, range(0)
        taken = self._current[0] if self._current else None
        self._current = self._current[1:]
        self._waits = taken is None
        self._requests.wake()
        return taken

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        """Ask if the host waits: the broker may just have been registered."""
        if self._waits:
            self._requests.wake()

    def end(self) -> None:
        """Stop: ask for no more blocks."""
        self._requests.end()

    def _compose(self, agent: AgentCore) -> Request | None:
        if self._next or len(self._current) > self._low:
            return None
        message = AllocateProducerIdsRequest(self._broker_id, agent.broker_epoch)
        return post(PATH, message)

    def _on_answer(self, answer: Reply | Unreachable) -> bool:
        reply = reply_of(AllocateProducerIdsReply, answer)
        if reply is None:
            self._refused(*problem_of(answer))
            return False
        block = range(reply.producer_id_start, reply.producer_id_start + reply.producer_id_len)
        if not block or block.start < self._end:
            self._refused("NO_ANSWER", f"the answer has an old block, {block.start}")
            return False
        self._next, self._end, self._low = block, block.stop, int(len(block) * _PREFETCH_SHARE)
        self.problem = ""
        self._log.info(PRODUCER_IDS_ALLOCATED, first=block.start, count=len(block))
        if self._waits:
            self._waits = False
            self._on_ready()
        return True

    def _refused(self, code: str, why: str) -> None:
        problem = f"{code}: {why}"
        if problem != self.problem:
            self._log.warning(PRODUCER_IDS_REFUSED, code=code, why=why)
        self.problem = problem
