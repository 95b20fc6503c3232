"""Fetches the keys of subjects, for an agent that has the cluster key (ADR 0093).

Rule: the keys are in memory only, and come sealed under the cluster key. What the agent's image
says is erased is destroyed here when the image comes. So an agent that is cut off opens what its
old image has, and nothing of an erased subject once it is back.
"""

from collections.abc import Callable

import structlog

from broker_agent.agent import AgentCore
from broker_agent.paced_requests import PacedRequests, problem_of, reply_of
from broker_agent.publishers import Manifest
from metadata.image import MetadataImage
from metadata.messages import SubjectKeysReply
from metadata.messages.wire import MSGPACK
from metadata.sealed_blocks import SealingError
from metadata.sealed_places import opened_tree
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys, SubjectKeysError
from runtime.clock import Clock
from runtime.http.requests import Reply, Request, Requester, Unreachable

PATH = "/v1/subject-keys"
SUBJECT_KEYS_REFUSED = "subject_keys_refused"


class AgentSubjectKeys:
    """The keys of subjects on one agent. It is a publisher: the agent calls `on_metadata`."""

    def __init__(
        self,
        key: ClusterKey,
        *,
        clock: Clock,
        requester: Requester,
        log: structlog.typing.FilteringBoundLogger,
        on_keys: Callable[[], None] = lambda: None,
    ) -> None:
        """`key`: what the secrets of this agent are opened with. `on_keys`: the keys have come."""
        self._key = key
        self._on_keys = on_keys
        self._log = log
        self._requests = PacedRequests(clock, requester, self._compose, self._on_answer)
        self._image: MetadataImage | None = None
        self._problem = ""

    def follow(self, agent: AgentCore) -> None:
        """Ask the controllers that `agent` follows."""
        self._requests.follow(agent)

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        """Destroy what is erased now, and ask for the keys if the log names others."""
        changed = self._image is None or after.erasures is not self._image.erasures
        self._image = after
        keys = self._key.subjects.keys
        if keys is not None and keys.id != after.quorum.subject_keys_id:
            keys = self._key.subjects.keys = None
        if keys is not None and changed:
            self._key.subjects.keys = keys.without(_erased(after))
        self._requests.wake()

    def end(self) -> None:
        """Stop, and use no key any more."""
        self._requests.end()
        self._key.subjects.keys = None

    def _compose(self, _agent: AgentCore) -> Request | None:
        image = self._image
        if image is None or image.quorum.subject_keys_id is None:
            return None
        if self._key.subjects.keys is not None or image.quorum.cluster_key_id != self._key.id:
            return None
        return Request("GET", PATH, headers={"accept": MSGPACK})

    def _on_answer(self, answer: Reply | Unreachable) -> bool:
        reply = reply_of(SubjectKeysReply, answer)
        if reply is None:
            self._refused(*problem_of(answer))
            return False
        image = self._image
        if image is None or image.quorum.subject_keys_id is None:
            return True
        try:
            keys: SubjectKeys = opened_tree(self._key, reply.keys_id, reply.sealed)
        except (SealingError, SubjectKeysError) as error:
            self._refused("NO_ANSWER", str(error))
            return False
        if keys.id != image.quorum.subject_keys_id:
            return False
        self._problem = ""
        self._key.subjects.keys = keys.without(_erased(image))
        self._on_keys()
        return True

    def _refused(self, code: str, why: str) -> None:
        problem = f"{code}: {why}"
        if problem != self._problem:
            self._log.warning(SUBJECT_KEYS_REFUSED, code=code, why=why)
        self._problem = problem


def _erased(image: MetadataImage) -> list[bytes]:
    return [number for each in image.erasures.erased.values() for number in each.numbers]
