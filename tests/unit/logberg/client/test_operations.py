"""The client's answers: typed, lists complete, and no guess about the outcome of a change."""

import inspect
import json
from collections.abc import Iterator
from typing import Any, get_type_hints

import msgspec
import pytest

from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.operations import Operations
from metadata.messages import (
    AclEntry,
    AclFilter,
    ApplyRequest,
    ConfigChange,
    ConfigResourceChange,
    DeclaredTopic,
    ElectionType,
    FeatureUpdate,
    ListTopicsReply,
    NewPartitions,
    NewTopic,
    QuotaAlteration,
    QuotaEntityPart,
    Reassignment,
    ReplyMessage,
    ScramDeletion,
    SetBridgeModeRequest,
    TopicSummary,
    VoterAction,
)
from tests.unit.logberg.commands.test_terminal import replies
from tests.unit.logberg.listener import Listener

ARGUMENTS: dict[str, tuple[Any, ...]] = {
    "topic": ("a/b",),
    "create_topics": (NewTopic("a", 1, 1),),
    "delete_topic": ("a",),
    "elect_leaders": (ElectionType.PREFERRED,),
    "broker": (7,),
    "configs": ("topic", "a/b"),
    "alter_configs": ("topic", "a", ConfigChange("retention.ms", "5")),
    "alter_configs_of": (
        ConfigResourceChange("broker", "default", (ConfigChange("min.insync.replicas", "2"),)),
    ),
    "partition": ("a/b", 0),
    "create_partitions": (NewPartitions("a", 2),),
    "alter_reassignments": (Reassignment("a", 0, (1,)),),
    "plan_reassignments": ((1, 2),),
    "explain_broker": (7,),
    "unregister_broker": (7,),
    "update_features": (FeatureUpdate("metadata.version", 23),),
    "log": (0,),
    "create_acls": (AclEntry("TOPIC", "a", "User:a", "READ"),),
    "delete_acls": (AclFilter(),),
    "check_acl": ("User:a", "READ", "TOPIC", "a"),
    "alter_quotas": (QuotaAlteration((QuotaEntityPart("user"),), ()),),
    "alter_scram": ((), (ScramDeletion("a", "SCRAM-SHA-256"),)),
    "erase": ("user:a",),
    "user": ("a/b",),
    "create_access_token": ("User:a", b"hash"),
    "rotate_access_token": ("a/b", b"hash"),
    "revoke_access_token": ("a/b",),
    "create_join_token": ("broker", 1, b"hash"),
    "revoke_join_token": ("a/b",),
    "join": (b"request",),
    "renew_token": ("a/b", b"hmac"),
    "expire_token": ("a/b", b"hmac"),
    "allocate_producer_ids": (1, 7),
    "unregister_controller": (7,),
    "transfer_leadership": (7,),
    "change_voters": (VoterAction.ADD, 7),
    "change_head_key": (7,),
    "apply": (ApplyRequest((DeclaredTopic("a"),)),),
    "import_records": ((), "zookeeper://a", 1),
    "follow_source": ("zookeeper://a", "c", -1, 1),
    "set_bridge_mode": (SetBridgeModeRequest("none", "zookeeper://a", 1),),
    "watched": ("topic:a",),
    "end_session": ("s",),
    "entries_of": ("lock",),
    "entries_of_session": ("s",),
    "break_grant": ("lock", "l"),
    "coordination_key": ("a/b",),
}
GENERAL = {"get", "change", "from_one", "watch", "watch_keys"}
METHODS = [
    name
    for name, _ in inspect.getmembers(Operations, inspect.isfunction)
    if name not in GENERAL and not name.startswith("_")
]


@pytest.fixture
def controller() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


@pytest.mark.parametrize("name", METHODS)
async def test_every_operation_reads_what_its_route_answers(
    controller: Listener, name: str
) -> None:
    controller.answer = replies("") if name != "log" else lambda _m, _t: ("200 OK", LOG)
    async with LogbergClient([controller.url]) as client:
        found = await getattr(client, name)(*ARGUMENTS.get(name, ()))
    wanted = get_type_hints(getattr(Operations, name))["return"]
    assert issubclass(wanted, ReplyMessage)
    assert isinstance(found, wanted)


LOG = json.dumps(
    {
        "offset": 4,
        "nextOffset": 6,
        "logStart": 0,
        "highWatermark": 6,
        "batches": [
            {
                "offset": 4,
                "endOffset": 6,
                "epoch": 2,
                "timestampMs": 7,
                "hash": "ab",
                "operation": "CreateTopics",
                "records": [{"type": "TOPIC_RECORD", "version": 0, "data": {"name": "a"}}],
                "comesLater": 1,
            }
        ],
    }
).encode()


async def test_a_list_comes_whole_and_has_no_next_page(controller: Listener) -> None:
    def page(_method: str, target: str) -> tuple[str, bytes]:
        last = "continuation=more" in target
        topic = TopicSummary("b" if last else "a", "id", 1, 1)
        more = None if last else "more"
        return "200 OK", msgspec.json.encode(ListTopicsReply(5, 1, (topic,), continuation=more))

    controller.answer = page
    async with LogbergClient([controller.url]) as client:
        found = await client.topics()
    assert [topic.name for topic in found.topics] == ["a", "b"]
    assert found.continuation is None


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"offset": "x"}'])
async def test_an_answer_that_is_not_the_routes_says_so(controller: Listener, body: bytes) -> None:
    controller.answer = lambda _method, _target: ("200 OK", body)
    async with LogbergClient([controller.url]) as client:
        with pytest.raises(ClientError, match="did not answer with ListTopicsReply") as read:
            await client.topics()
        with pytest.raises(ClientError, match="outcome unknown") as changed:
            await client.delete_topic("a")
    assert read.value.code == "UNKNOWN_SERVER_ERROR"
    # The change may have been made: its id must not be forgotten.
    assert changed.value.reply.request_id is not None
