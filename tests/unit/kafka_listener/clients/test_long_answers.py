"""Long responses in steps: the same bytes as the codec's, in steps that are short."""

import pytest

from kafka_listener.clients.long_answers import AT_ONCE, LongElement, encode_in_steps
from kafka_listener.wire.messages import encode_response
from tests.unit.image.replaying import stepped

METADATA = 3
SIZES = [
    (),
    (0,),
    (1,),
    (AT_ONCE - 1, 1, 1),
    (AT_ONCE, AT_ONCE),
    (AT_ONCE + 1,),
    (3, 5 * AT_ONCE + 7, 0, 2),
    (1,) * (3 * AT_ONCE + 1),
    (2 * AT_ONCE, 1, 3 * AT_ONCE + 1),
]
BROKERS = [{"NodeId": n, "Host": f"host-{n}", "Port": 9092} for n in range(300)]


def partitions(count: int) -> list[dict]:
    return [
        {
            "PartitionIndex": number,
            "LeaderId": number % 7,
            "ReplicaNodes": [number % 7, 8],
            "IsrNodes": [8],
        }
        for number in range(count)
    ]


@pytest.mark.parametrize("sizes", SIZES, ids=str)
@pytest.mark.parametrize("version", [0, 1, 8, 9, 12, 13])
def test_the_bytes_are_those_of_the_codec(version, sizes):
    head = {"Brokers": BROKERS}
    topics = [(f"topic-{n}", size) for n, size in enumerate(sizes)]
    elements = [
        LongElement({"Name": name}, "Partitions", size, iter(partitions(size)))
        for name, size in topics
    ]
    body, _ = stepped(encode_in_steps(METADATA, version, head, "Topics", elements))
    whole = [{"Name": name, "Partitions": partitions(size)} for name, size in topics]
    assert body == encode_response(METADATA, version, {**head, "Topics": whole})


def test_a_step_takes_about_a_hundred_partitions():
    taken = 0

    def counted():
        nonlocal taken
        for one in partitions(10 * AT_ONCE):
            taken += 1
            yield one

    elements = [LongElement({"Name": "large"}, "Partitions", 10 * AT_ONCE, counted())]
    before = 0
    for _ in encode_in_steps(METADATA, 12, {}, "Topics", elements):
        assert taken - before <= AT_ONCE + 1
        before = taken
    assert before == 10 * AT_ONCE
