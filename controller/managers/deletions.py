"""Decides about the deletion of topics: many in one request, some in each round.

Kafka promises atomicity for each topic only. A round deletes some topics, and other decisions come
in between. A topic is never deleted in part.

What a round answered is in the log, with its records. So the request continues behind that round
when it is sent again to the next leader, and gets the answer that it would have got.
"""

from collections import Counter
from collections.abc import Generator, Sequence
from contextlib import suppress

import msgspec

from controller.config import ControllerConfig
from controller.managers.topic_names import check_once, known_topic
from controller.result import ControllerResult, RoundAnswer
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import DeletedTopic, DeleteTopicsReply, DeleteTopicsRequest, error_reply
from metadata.records import RemoveTopicRecord, TopicRecord
from metadata.uuids import uuid_text

ROUND_TOPICS = 256
"""The most topics that a round looks at."""
ROUND_PARTITIONS = 4_096
"""A round ends with the topic that brings it to so many partitions. Their replay takes some
20 ms."""
_STEP = 32
"""Topics between two yields, in some milliseconds."""
_COUNT_STEP = 256
"""Topics whose partitions are counted between two yields."""
_REPLAY_STEP = 256
"""Partitions that are removed in one step."""
_encode = msgspec.msgpack.Encoder().encode
_decode = msgspec.msgpack.Decoder(tuple[DeletedTopic, ...]).decode


class TopicDeletion:
    """One request, and how far it is."""

    def __init__(
        self, config: ControllerConfig, request: DeleteTopicsRequest, *, at_once: bool = False
    ) -> None:
        """`at_once`: only one round, as a dry run shows it."""
        self._config = config
        self._request = request
        self._at_once = at_once
        self._by_id = not request.names
        self._wanted: Sequence[str] = request.names or request.topic_ids
        self._times = Counter(self._wanted)
        self._done: list[DeletedTopic] = []
        self.number = 0
        """How many rounds are in the log."""

    @property
    def progress(self) -> tuple[int, int]:
        """How many topics the rounds in the log decided about, of how many."""
        return len(self._done), len(self._wanted)

    def resume(self, answer: bytes) -> None:
        """Take over what the next round answered, from the log."""
        self._done += _decode(answer)
        self.number += 1

    def complete(self, reply: DeleteTopicsReply) -> DeleteTopicsReply:
        """Return the answer of all rounds. `reply` is that of the last one."""
        return msgspec.structs.replace(reply, topics=(*self._done, *reply.topics))

    def partitions(self, image: MetadataImage) -> Generator[None, None, int]:
        """Count the partitions that are still to be deleted. Raises LogbergError POLICY_VIOLATION.

        A single topic can always be deleted, however large it is.
        """
        total = 0
        for number, text in enumerate(self._wanted[len(self._done) :], 1):
            with suppress(LogbergError):
                topic = known_topic(image, text, by_id=self._by_id)
                total += len(image.topics.ids_of(topic.topic_id))
            if number % _COUNT_STEP == 0:
                yield
        limit = self._config.partitions_per_request_max
        if len(self._wanted) > 1 and total > limit:
            raise LogbergError(
                ErrorCode.POLICY_VIOLATION,
                f"the topics have {total} partitions; a request deletes at most {limit} "
                "(partitions_per_request_max), or one topic: send several requests",
            )
        return total

    def decide(self, image: MetadataImage) -> Generator[None, None, ControllerResult]:
        """Decide about the next round. If the request names only one topic, its error is raised.

        This changes nothing here: the next round is known from the log (`resume`). So the proposer
        may decide a round again.
        """
        if bool(self._request.names) == bool(self._request.topic_ids):
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, "name the topics either by `names` or by `topicIds`"
            )
        removed: list[bytes] = []
        results: list[DeletedTopic] = []
        partitions = 0
        start = len(self._done)
        for number, text in enumerate(self._wanted[start:], 1):
            if number % _STEP == 0:
                yield
            try:
                topic = self._deletable(image, text)
            except LogbergError as error:
                if len(self._wanted) == 1:
                    raise
                results.append(self._refused(text, error))
            else:
                removed.append(topic.topic_id)
                results.append(DeletedTopic(name=topic.name, topic_id=uuid_text(topic.topic_id)))
                partitions += len(image.topics.ids_of(topic.topic_id))
            if not self._at_once and (number == ROUND_TOPICS or partitions >= ROUND_PARTITIONS):
                break
        if partitions > _REPLAY_STEP:
            # There are few records, but their replay takes long.
            yield
        unfinished = start + len(results) < len(self._wanted)
        answers = tuple(results)
        return ControllerResult(
            [RemoveTopicRecord(topic_id) for topic_id in removed],
            DeleteTopicsReply(topics=answers, dry_run=self._request.dry_run),
            rests_on=_always if removed else None,
            touches=frozenset(removed),
            unfinished=unfinished,
            round_answer=RoundAnswer(self.number, _encode(answers)) if unfinished else None,
        )

    def _deletable(self, image: MetadataImage, text: str) -> TopicRecord:
        check_once(self._times, text)
        if not self._config.topic_deletion:
            raise LogbergError(ErrorCode.TOPIC_DELETION_DISABLED)
        return known_topic(image, text, by_id=self._by_id)

    def _refused(self, text: str, error: LogbergError) -> DeletedTopic:
        return DeletedTopic(
            name=None if self._by_id else text,
            topic_id=text if self._by_id else None,
            error=error_reply(error),
        )


def _always(_later: MetadataImage) -> bool:
    """A deletion depends on its topics alone, and `touches` says that nobody changed them."""
    return True
