"""A failure of a whole request stands in the response of each request and version, as bytes."""

import pytest

from kafka_listener.asking.failures import failure
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.wire.messages import (
    api_versions,
    decode_request,
    decode_response,
    encode_request,
    encode_response,
)

KEYS = (1, 3, 17, 18, 19, 20, 29, 30, 31, 32, 33, 36, 37, 38, 39, 40, 41, 43, 44, 45, 46, 48, 49)
MORE = (50, 51, 55, 56, 57, 58, 59, 60, 62, 63, 64, 67, 73, 74, 75, 80, 81)
CODE = KafkaCode.NOT_CONTROLLER
RESOURCES = [{"ResourceType": 2, "ResourceName": "a"}, {"ResourceType": 4, "ResourceName": "1"}]
ACL = {"ResourceName": "a", "Principal": "User:a", "Host": "*"}
FILTER = {"ResourceNameFilter": "a", "PrincipalFilter": None, "HostFilter": None}
USER = {"Name": "a", "Mechanism": 1}
PER_ITEM = {
    # key: the request's fields, and where the errors stand
    3: ({"Topics": [{"Name": "a"}, {"Name": "b"}]}, "Topics", 2, range(13)),
    19: ({"Topics": [{"Name": "a"}, {"Name": "b"}]}, "Topics", 2, None),
    30: ({"Creations": [ACL, ACL]}, "Results", 2, None),
    31: ({"Filters": [FILTER]}, "FilterResults", 1, None),
    32: ({"Resources": RESOURCES}, "Results", 2, None),
    33: ({"Resources": RESOURCES}, "Responses", 2, None),
    37: ({"Topics": [{"Name": "a", "Count": 1, "Assignments": None}]}, "Results", 1, None),
    44: ({"Resources": RESOURCES}, "Responses", 2, None),
    49: ({"Entries": [{"Entity": [{"EntityType": "ip", "EntityName": None}]}]}, "Entries", 1, None),
    51: ({"Deletions": [USER], "Upsertions": [{"Name": "b"}, USER]}, "Results", 2, None),
    75: ({"Topics": [{"Name": "a"}]}, "Topics", 1, None),
}


def versions(key):
    found = api_versions(key)
    return range(found.first, found.last + 1)


def only_at_items(key, version):
    """Whether this response has no error at its top."""
    if key in PER_ITEM:
        some = PER_ITEM[key][3]
        return some is None or version in some
    return key == 20 or (key, version) in ((43, 0), (1, 4), (1, 5), (1, 6))


def answered(key, version, fields, **more):
    """The response of a failure, after a trip through bytes."""
    asked = decode_request(key, version, encode_request(key, version, fields))
    return decode_response(
        key,
        version,
        encode_response(key, version, failure(key, version, asked, CODE, "why", **more)),
    )


@pytest.mark.parametrize("key", KEYS + MORE)
def test_every_version_can_say_it_of_an_empty_request(key):
    for version in versions(key):
        response = decode_response(
            key, version, encode_response(key, version, failure(key, version, {}, CODE, "why"))
        )
        if not only_at_items(key, version):
            assert response["ErrorCode"] == CODE
            assert response.get("ErrorMessage") in ("why", None, "")


@pytest.mark.parametrize("key", PER_ITEM)
def test_it_stands_at_each_item(key):
    fields, items, count, some = PER_ITEM[key]
    for version in versions(key) if some is None else some:
        found = answered(key, version, fields)[items]
        assert [each["ErrorCode"] for each in found] == [CODE] * count
        assert all(each.get("ErrorMessage", "why") == "why" for each in found)


def test_deleted_topics_by_names_and_by_ids():
    topic_id = b"x" * 16
    for version in range(1, 6):
        (found,) = answered(20, version, {"TopicNames": ["a"]})["Responses"]
        assert (found["Name"], found["ErrorCode"]) == ("a", CODE)
    wanted = [{"Name": None, "TopicId": topic_id}, {"Name": "a"}]
    found = answered(20, 6, {"Topics": wanted})["Responses"]
    assert [(each["Name"], each["TopicId"]) for each in found] == [
        (None, topic_id),
        ("a", bytes(16)),
    ]
    assert {each["ErrorMessage"] for each in found} == {"why"}


def test_an_election_in_its_first_version_says_it_at_each_partition():
    topics = [{"Topic": "a", "Partitions": [0, 3]}]
    (topic,) = answered(43, 0, {"TopicPartitions": topics})["ReplicaElectionResults"]
    assert topic["Topic"] == "a"
    assert [each["PartitionId"] for each in topic["PartitionResult"]] == [0, 3]
    assert {each["ErrorCode"] for each in topic["PartitionResult"]} == {CODE}
    assert answered(43, 0, {"TopicPartitions": None})["ReplicaElectionResults"] == []


def test_how_long_to_wait_stands_at_the_top():
    assert answered(19, 7, {"Topics": [{"Name": "a"}]}, throttle_ms=120)["ThrottleTimeMs"] == 120
