"""Reports to the controller in which log directories this broker's replicas lie (KIP-858).

Rule: the report that the host made last holds. The agent sends up to 2,000 replicas in a request,
one request at a time, and repeats those whose outcome is unknown. A repeated report does no harm.
An earlier request whose answer was lost may still be applied after a later one. The metadata then
shows a directory that the host did not report last, and the agent reports again.

The agent forgets a report when its partition is deleted, or has no replica here any more.
"""

from collections.abc import Generator, Iterable, Iterator, Mapping

import structlog

from broker_agent.agent import AgentCore
from broker_agent.paced_requests import TRY_LATER, PacedRequests, post, problem_of, reply_of
from broker_agent.publishers import Manifest
from metadata.image import MetadataImage
from metadata.messages.directories import (
    REPLICAS_PER_REQUEST,
    AssignReplicasReply,
    AssignReplicasRequest,
    ReplicaInDirectory,
)
from metadata.partition_key import PartitionKey, PlainPartitionKey
from metadata.uuids import parse_uuid, uuid_text
from runtime.clock import Clock
from runtime.http.requests import Reply, Request, Requester, Unreachable

DIRECTORIES_REFUSED = "directories_refused"
DIRECTORY_NOT_NOTED = "directory_not_noted"
_GATHER_S = 0.01
"""How long the agent waits for more replicas before it sends the first."""
_STEP = 64
"""Partitions between two yields."""


class DirectoryAssignments:
    """The reports of one broker. It is a publisher: the agent calls `on_metadata`."""

    def __init__(
        self,
        broker_id: int,
        log_dirs: Iterable[bytes],
        *,
        clock: Clock,
        requester: Requester,
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        self._broker_id = broker_id
        self._log_dirs = frozenset(log_dirs)
        self._log = log.bind(broker_id=broker_id)
        self._requests = PacedRequests(clock, requester, self._compose, self._on_answer)
        self._reported: dict[PartitionKey, bytes] = {}
        """What the host reported last of each replica that is here."""
        self._open: dict[PartitionKey, None] = {}
        """Replicas that must be sent, in this order."""
        self._sent: dict[PartitionKey, bytes] = {}
        """The replicas of the request that is under way."""
        self._problem = ""

    def follow(self, agent: AgentCore) -> None:
        """Report as the broker of `agent`."""
        self._requests.follow(agent)

    def assign(self, key: PartitionKey, directory: bytes) -> None:
        """Report that the replica of a partition lies in `directory`, one of the broker's log_dirs.

        Raises ValueError for any other directory: the controller would take it for a failed one.
        """
        if directory not in self._log_dirs:
            raise ValueError(
                f"directory {directory.hex()} is not one of this broker's; name one of "
                "AgentConfig.log_dirs"
            )
        self._reported[key] = directory
        agent = self._requests.agent
        shown = None if agent is None else self._shown(agent.image, key)
        if shown == directory and key not in self._sent:
            self._open.pop(key, None)
            return
        self._open[key] = None
        self._requests.wake(_GATHER_S)

    @property
    def reported(self) -> Mapping[PartitionKey, bytes]:
        """The last report of each replica that is still here."""
        return self._reported

    def waiting(self) -> int:
        """Return for how many replicas the controller has not confirmed the last report."""
        return len(self._open.keys() | self._sent.keys())

    def on_metadata(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Generator[None, None, None]:
        """Forget replicas that are gone; report again what the metadata shows otherwise."""
        if not self._reported:
            return
        for number, key in enumerate(self._touched(before, after, manifest), start=1):
            if key is not None:
                self._look(after, PartitionKey(*key))
            if number % _STEP == 0:
                yield
        self._requests.wake()

    def _touched(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Iterator[PlainPartitionKey | None]:
        """Yield partitions whose replica here may have changed, and None in between."""
        if manifest.replaced:
            yield from list(self._reported)
            return
        for change in after.topics.partitions.differences(before.topics.partitions):
            yield None if change is None else change.key

    def _look(self, image: MetadataImage, key: PartitionKey) -> None:
        directory = self._reported.get(key)
        if directory is None:
            return
        partition = image.topics.partitions.get(key)
        if partition is None or self._broker_id not in partition.replicas:
            del self._reported[key]
            self._open.pop(key, None)
        elif key not in self._sent and self._shown(image, key) == directory:
            self._open.pop(key, None)
        else:
            self._open[key] = None

    def end(self) -> None:
        """Stop: send no more reports."""
        self._requests.end()

    def _shown(self, image: MetadataImage, key: PartitionKey) -> bytes | None:
        """Return the directory of our replica in the metadata; None: it names none."""
        partition = image.topics.partitions.get(key)
        if partition is None or not partition.directories:
            return None
        return dict(zip(partition.replicas, partition.directories, strict=True)).get(
            self._broker_id
        )

    def _compose(self, agent: AgentCore) -> Request | None:
        if not self._open:
            return None
        while self._open and len(self._sent) < REPLICAS_PER_REQUEST:
            key = next(iter(self._open))
            del self._open[key]
            self._sent[key] = self._reported[key]
        message = AssignReplicasRequest(
            cluster_id=agent.config.cluster_id,
            broker_epoch=agent.broker_epoch,
            incarnation_id=agent.incarnation,
            replicas=tuple(
                ReplicaInDirectory(uuid_text(key.topic_id), key.partition, uuid_text(directory))
                for key, directory in self._sent.items()
            ),
        )
        return post(f"/v1/brokers/{self._broker_id}/directories", message)

    def _on_answer(self, answer: Reply | Unreachable) -> bool:
        sent, self._sent = self._sent, {}
        reply = reply_of(AssignReplicasReply, answer)
        if reply is None:
            code, why = problem_of(answer)
            if code != self._problem:
                self._log.warning(DIRECTORIES_REFUSED, code=code, why=why, replicas=len(sent))
            self._problem = code
            self._send_again(sent)
            return False
        self._problem = ""
        later = []
        for replica in reply.replicas:
            key = PartitionKey(parse_uuid(replica.topic_id), replica.partition)
            if key not in sent or replica.error is None:
                continue
            if replica.error.code in TRY_LATER:
                later.append(key)
            elif self._reported.get(key) == sent[key]:
                # The partition or the replica is gone, and the metadata will show it soon.
                del self._reported[key]
                self._open.pop(key, None)
                self._log.info(
                    DIRECTORY_NOT_NOTED,
                    topic_id=replica.topic_id,
                    partition=replica.partition,
                    why=replica.error.code,
                )
        self._send_again(later)
        return not later

    def _send_again(self, keys: Iterable[PartitionKey]) -> None:
        for key in keys:
            if key in self._reported:
                self._open[key] = None
