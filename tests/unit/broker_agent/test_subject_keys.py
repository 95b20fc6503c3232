"""An agent gets the keys of subjects sealed, and destroys what its image says is erased."""

from typing import Any

import pytest

from broker_agent.subject_keys import AgentSubjectKeys
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.messages import SubjectKeysReply
from metadata.messages.wire import MSGPACK, encode
from metadata.records import ClusterKeyRecord, Record, SubjectErasedRecord, SubjectKeysRecord
from metadata.sealed_places import tree_place
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys
from runtime.http.requests import Reply, Unreachable
from tests.simulation.quorum_cluster import quiet_log
from tests.unit.broker_agent.rig import Rig

SECRET = bytes(32)
TREE = SubjectKeys.of_root(bytes(range(32)))
NUMBER, OTHER = b"12345678", b"87654321"


def image_of(*records: Record, before: MetadataImage = EMPTY) -> MetadataImage:
    delta = MetadataDelta(before)
    delta.replay_all(records, before.offset)
    delta.finish_batch(before.offset + len(records), 1, 0)
    return delta.apply()


class Host(Rig):
    """A broker with the cluster key. The test plays the images and the controllers."""

    def __init__(self) -> None:
        super().__init__()
        self.key = ClusterKey(SECRET)
        self.waiting: list[Any] = []
        self.came: list[Any] = []
        """What the key had each time the keys came."""
        self.keys = AgentSubjectKeys(
            self.key,
            clock=self.clock,
            requester=self,
            log=quiet_log(),
            on_keys=lambda: self.came.append(self.key.subjects.keys),
        )
        self.keys.follow(self.agent)
        self.online()
        self.image = image_of(
            ClusterKeyRecord(self.key.id), SubjectKeysRecord(TREE.id, self.key.id)
        )

    def request(self, target: str, request: Any, on_reply: Any, deadline_s: float) -> None:
        assert request.path == "/v1/subject-keys"
        self.waiting.append(on_reply)

    def show(self, image: MetadataImage) -> None:
        before, self.image = self.image, image
        self.do(lambda: self.keys.on_metadata(before, image, None))

    def answer(self, keys: SubjectKeys, sealed_with: bytes = SECRET) -> None:
        sealed = ClusterKey(sealed_with).seal(tree_place(keys.id.hex()), keys.encode(), bytes(16))
        body = encode(SubjectKeysReply(keys.id.hex(), sealed.block), MSGPACK)
        [on_reply], self.waiting = self.waiting, []
        self.do(lambda: on_reply(Reply(200, body, {"content-type": MSGPACK})))


def test_the_keys_come_once_the_log_names_them() -> None:
    host = Host()
    host.show(EMPTY)
    assert not host.waiting
    host.show(image_of(ClusterKeyRecord(host.key.id), SubjectKeysRecord(TREE.id, host.key.id)))
    host.answer(TREE)
    assert host.came == [host.key.subjects.keys] == [TREE]
    host.show(host.image)
    assert not host.waiting


def test_what_the_image_says_is_erased_is_destroyed() -> None:
    host = Host()
    host.show(host.image)
    host.answer(TREE)
    host.show(image_of(SubjectErasedRecord("user:a", (NUMBER,)), before=host.image))
    assert host.key.subjects.key_of(NUMBER) is None
    assert host.key.subjects.key_of(OTHER) == TREE.key_of(OTHER)


def test_what_comes_late_is_without_what_is_erased_by_then() -> None:
    host = Host()
    host.show(host.image)
    host.show(image_of(SubjectErasedRecord("user:a", (NUMBER,)), before=host.image))
    host.answer(TREE)
    assert host.key.subjects.key_of(NUMBER) is None


@pytest.mark.parametrize("how", ["another key", "another tree", "no answer"])
def test_what_cannot_be_used_is_asked_for_again(how: str) -> None:
    host = Host()
    host.show(host.image)
    if how == "no answer":
        [on_reply], host.waiting = host.waiting, []
        host.do(lambda: on_reply(Unreachable("gone")))
    elif how == "another tree":
        host.answer(SubjectKeys.of_root(bytes(32)))
    else:
        host.answer(TREE, b"\x01" * 32)
    assert host.key.subjects.keys is None
    host.run(1.0)
    host.answer(TREE)
    assert host.key.subjects.keys == TREE


def test_an_agent_with_another_cluster_key_asks_nobody() -> None:
    host = Host()
    host.show(image_of(ClusterKeyRecord(b"12345678"), SubjectKeysRecord(TREE.id, b"12345678")))
    assert not host.waiting
