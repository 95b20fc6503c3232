"""A long reply that is decoded in steps is the reply that is decoded at once."""

import msgspec
import pytest

from metadata.errors import ErrorCode, LogbergError
from metadata.messages import AlteredReassignment, AlterReassignmentsReply, error_reply
from metadata.messages.long_lists import _LARGE, PIECE, decode_long_reply
from metadata.messages.wire import JSON, MSGPACK, decode, encode

REFUSED = error_reply(LogbergError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "there is none"))


def reply(count):
    return AlterReassignmentsReply(
        partitions=tuple(
            AlteredReassignment(topic=f"topic-{n}", partition=n, error=REFUSED if n % 3 else None)
            for n in range(count)
        ),
        dry_run=True,
    )


def in_steps(body, content_type):
    """Return the message, and in how many steps it was decoded."""
    steps = decode_long_reply(AlterReassignmentsReply, body, content_type)
    taken = 0
    while True:
        try:
            next(steps)
        except StopIteration as done:
            return done.value, taken
        taken += 1


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
@pytest.mark.parametrize("count", [0, 1, 3, 5_000])
def test_it_is_the_same_message(content_type, count):
    body = encode(reply(count), content_type)
    found, taken = in_steps(body, content_type)
    assert found == decode(AlterReassignmentsReply, body, content_type) == reply(count)
    assert taken == (0 if len(body) <= _LARGE else 1 + count // PIECE)


@pytest.mark.parametrize("content_type", [JSON, MSGPACK])
def test_what_is_wrong_is_said(content_type):
    """Wrong are: its end, an entry, and a field beside the list."""
    sound = msgspec.to_builtins(reply(5_000))
    entries = list(sound["partitions"])
    entries[4_000] = {"topic": 7, "partition": 1}
    bodies = [
        encode(sound, content_type)[:-1],
        encode({**sound, "partitions": entries}, content_type),
        encode({**sound, "dryRun": "perhaps"}, content_type),
        encode({**sound, "partitions": "x" * _LARGE}, content_type),
    ]
    for body in bodies:
        with pytest.raises(LogbergError) as at_once:
            decode(AlterReassignmentsReply, body, content_type)
        with pytest.raises(LogbergError) as said:
            in_steps(body, content_type)
        assert said.value.code == at_once.value.code
        assert said.value.details == at_once.value.details
