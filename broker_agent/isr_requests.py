"""Asks the controller to change in-sync replica sets (ISRs) of partitions that this broker leads.

Rule (KIP-497): a request names the partition epoch that the leader knows, and the controller
applies it only at that epoch. So a repeated request does no harm. The agent sends one request at a
time. Changes that the host asks for meanwhile go into the next request.

Between a request and its outcome nobody knows which of the two ISRs holds. Until then the host
must count a write as replicated only if the members of both have it: `LedPartition.maximal` is
their union. The outcome is an answer, or a newer partition epoch or leader epoch in the metadata.
If the answer is lost, as in a failover, the outcome stays open and the agent asks again.
"""

from collections.abc import Callable, Generator, Iterable, Mapping
from typing import NamedTuple

import structlog

from broker_agent.agent import AgentCore
from broker_agent.paced_requests import TRY_LATER, PacedRequests, post, problem_of, reply_of
from broker_agent.publishers import Manifest
from metadata.errors import ErrorCode
from metadata.image import MetadataImage
from metadata.messages.partitions import (
    AlteredPartition,
    AlterPartitionReply,
    AlterPartitionRequest,
    IsrMember,
    PartitionToAlter,
    TopicToAlter,
)
from metadata.partition_key import PartitionKey
from metadata.uuids import parse_uuid, uuid_text
from runtime.clock import Clock
from runtime.http.requests import Reply, Request, Requester, Unreachable

PATH = "/v1/partitions/alter"
ISR_CHANGED = "isr_changed"
ISR_NOT_CHANGED = "isr_not_changed"
_PARTITIONS_MAX = 200
"""The most partitions in one request. With a dozen members in each ISR, such a request is within
the controllers' limits."""
_OUTCOME_UNKNOWN = frozenset({ErrorCode.NO_QUORUM, ErrorCode.REQUEST_TIMED_OUT})
_NOT_MADE = frozenset({ErrorCode.INELIGIBLE_REPLICA, ErrorCode.INVALID_REQUEST})
"""The controller refused the change at the partition epoch that we know. With any other error it
knows a newer epoch, and the metadata will show which ISR holds."""
_OK = 200
_STEP = 64
"""Partitions between two yields."""
_LOOKED_AT_MAX = 1_000
"""The most partitions that the agent looks at to make one request."""
_GO_ON_S = 0.001


class LedPartition(NamedTuple):
    """A partition that this broker leads, from the newer of the metadata and an answer."""

    leader_epoch: int
    partition_epoch: int
    isr: tuple[int, ...]
    """The ISR that is committed in the log."""
    maximal: frozenset[int]
    """The members of the ISR, and those of an ISR that was asked for and may hold already."""


class _Asked(NamedTuple):
    """A change whose outcome is open."""

    leader_epoch: int
    partition_epoch: int
    members: frozenset[int]
    lost: bool = False
    """True: a request for it got no answer, so the controller may still apply it at any time."""


class IsrRequests:
    """The ISR changes of one broker. It is a publisher: the agent calls `on_metadata`."""

    def __init__(
        self,
        broker_id: int,
        *,
        clock: Clock,
        requester: Requester,
        on_change: Callable[[PartitionKey], None],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`on_change` is called when an answer may have changed the result of `of`."""
        self._broker_id = broker_id
        self._on_change = on_change
        self._log = log.bind(broker_id=broker_id)
        self._requests = PacedRequests(clock, requester, self._compose, self._on_answer)
        self._wanted: dict[PartitionKey, dict[int, int]] = {}
        """The ISRs that the host asked for last and that are not sent: broker ids with epochs."""
        self._asked: dict[PartitionKey, _Asked] = {}
        self._answered: dict[PartitionKey, LedPartition] = {}
        """Answers that the image doesn't show yet."""
        self._sent: dict[PartitionKey, PartitionToAlter] = {}
        """The changes of the request that is under way."""

    def follow(self, agent: AgentCore) -> None:
        """Send requests as the broker of `agent`, to the controllers that it follows."""
        self._requests.follow(agent)

    def of(self, key: PartitionKey) -> LedPartition | None:
        """Return what this broker knows of a partition; None: it does not lead the partition."""
        agent = self._requests.agent
        if agent is None:
            return None
        answered = self._answered.get(key)
        shown = agent.image.topics.partitions.get(key)
        if shown is None or (
            answered is not None and answered.partition_epoch > shown.partition_epoch
        ):
            found = answered
        elif shown.leader == self._broker_id:
            found = LedPartition(
                shown.leader_epoch, shown.partition_epoch, shown.isr, frozenset(shown.isr)
            )
        else:
            found = None
        asked = self._asked.get(key)
        if found is None or asked is None or asked.leader_epoch != found.leader_epoch:
            return found
        return found._replace(maximal=frozenset(found.isr) | asked.members)

    def ask(self, key: PartitionKey, isr: Mapping[int, int]) -> bool:
        """Ask for an ISR: broker ids, each with the broker epoch in which it fetches (-1: any).

        It replaces an ISR that was asked for and not sent yet. Returns False if this broker does
        not lead the partition, or if the partition has that ISR already. `on_change` is called
        after the outcome. The controller may refuse, so the host must check from time to time.
        """
        now = self.of(key)
        if now is None or (frozenset(isr) == frozenset(now.isr) == now.maximal):
            self._wanted.pop(key, None)
            return False
        self._wanted[key] = dict(isr)
        self._requests.wake()
        return True

    def on_metadata(
        self, before: MetadataImage, after: MetadataImage, manifest: Manifest
    ) -> Generator[None, None, None]:
        """Drop answers and open changes that are older than the metadata."""
        shown = after.topics.partitions.get
        for number, key in enumerate([*self._answered, *self._asked], start=1):
            partition = shown(key)
            answered, asked = self._answered.get(key), self._asked.get(key)
            if answered is not None and (
                partition is None or partition.partition_epoch >= answered.partition_epoch
            ):
                del self._answered[key]
            if asked is not None and (
                partition is None or partition.partition_epoch > asked.partition_epoch
            ):
                del self._asked[key]
            if number % _STEP == 0:
                yield

    def end(self) -> None:
        """Stop: send no more requests."""
        self._wanted.clear()
        self._requests.end()

    def _compose(self, agent: AgentCore) -> Request | None:
        sent: dict[PartitionKey, PartitionToAlter] = {}
        self._sent = sent
        for _ in range(_LOOKED_AT_MAX):
            if not self._wanted or len(sent) == _PARTITIONS_MAX:
                break
            key = next(iter(self._wanted))
            isr = self._wanted.pop(key)
            now = self.of(key)
            if now is None or frozenset(isr) == frozenset(now.isr) == now.maximal:
                continue
            self._note_asked(key, now, isr)
            sent[key] = PartitionToAlter(
                partition_index=key.partition,
                leader_epoch=now.leader_epoch,
                partition_epoch=now.partition_epoch,
                new_isr_with_epochs=tuple(IsrMember(*member) for member in sorted(isr.items())),
            )
        if not sent and self._wanted:
            self._requests.wake(_GO_ON_S)
        return self._request(agent, sent) if sent else None

    def _note_asked(self, key: PartitionKey, now: LedPartition, isr: Mapping[int, int]) -> None:
        members, before = frozenset(isr), self._asked.get(key)
        if before is not None and before.lost and before.leader_epoch == now.leader_epoch:
            # The controller may apply either of the two.
            self._asked[key] = before._replace(members=before.members | members)
        else:
            self._asked[key] = _Asked(now.leader_epoch, now.partition_epoch, members)

    def _request(self, agent: AgentCore, sent: Mapping[PartitionKey, PartitionToAlter]) -> Request:
        topics: dict[bytes, list[PartitionToAlter]] = {}
        for key, partition in sent.items():
            topics.setdefault(key.topic_id, []).append(partition)
        message = AlterPartitionRequest(
            cluster_id=agent.config.cluster_id,
            broker_id=self._broker_id,
            broker_epoch=agent.broker_epoch,
            incarnation_id=agent.incarnation,
            topics=tuple(
                TopicToAlter(tuple(partitions), topic_id=uuid_text(topic_id))
                for topic_id, partitions in topics.items()
            ),
        )
        return post(PATH, message)

    def _on_answer(self, answer: Reply | Unreachable) -> bool:
        sent = self._sent
        reply = reply_of(AlterPartitionReply, answer)
        if reply is None:
            if _may_have_been_made(answer):
                self._note_lost(sent)
            self._want_again(sent)
            return False
        again = False
        for topic in reply.topics:
            topic_id = parse_uuid(topic.topic_id or "")
            for partition in topic.partitions:
                key = PartitionKey(topic_id, partition.partition_index)
                if key in sent:
                    again |= self._settle(key, sent[key], partition)
        return not again

    def _note_lost(self, sent: Iterable[PartitionKey]) -> None:
        for key in sent:
            if key in self._asked:
                self._asked[key] = self._asked[key]._replace(lost=True)

    def _want_again(self, sent: Mapping[PartitionKey, PartitionToAlter]) -> None:
        """Ask for these again, unless the host asked for another ISR meanwhile."""
        for key, partition in sent.items():
            members = {one.broker_id: one.broker_epoch for one in partition.new_isr_with_epochs}
            self._wanted.setdefault(key, members)

    def _settle(self, key: PartitionKey, sent: PartitionToAlter, answer: AlteredPartition) -> bool:
        """Process the outcome for one partition. Returns whether to send the same change again."""
        code = "" if answer.error is None else answer.error.code
        if code in TRY_LATER:
            self._want_again({key: sent})
            return True
        if not code:
            self._take(key, answer)
        else:
            self._log.info(
                ISR_NOT_CHANGED,
                topic_id=uuid_text(key.topic_id),
                partition=key.partition,
                wanted=[member.broker_id for member in sent.new_isr_with_epochs],
                why=code,
            )
            asked = self._asked.get(key)
            if code in _NOT_MADE and asked is not None and not asked.lost:
                del self._asked[key]
        self._on_change(key)
        return False

    def _take(self, key: PartitionKey, answer: AlteredPartition) -> None:
        self._asked.pop(key, None)
        agent = self._requests.agent
        shown = agent and agent.image.topics.partitions.get(key)
        if answer.leader_id == self._broker_id and (
            not shown or shown.partition_epoch < answer.partition_epoch
        ):
            self._answered[key] = LedPartition(
                answer.leader_epoch, answer.partition_epoch, answer.isr, frozenset(answer.isr)
            )
        self._log.info(
            ISR_CHANGED,
            topic_id=uuid_text(key.topic_id),
            partition=key.partition,
            isr=list(answer.isr),
            partition_epoch=answer.partition_epoch,
        )


def _may_have_been_made(answer: Reply | Unreachable) -> bool:
    """Tell whether a request without results may have changed something."""
    if isinstance(answer, Unreachable):
        return not answer.refused
    if answer.status == _OK:
        return True
    code, _ = problem_of(answer)
    return code in _OUTCOME_UNKNOWN
