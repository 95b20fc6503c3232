"""An invalid configuration is refused with a sentence for each problem."""

import msgspec
import pytest

from broker_agent.config import AgentConfig, Endpoint, longest_wait_ms, problems

GOOD = AgentConfig(cluster_id="c", broker_id=1, controllers=("https://one:9191",))


def test_the_defaults_and_the_demo_s_times_are_good():
    assert problems(GOOD) == []
    assert problems(msgspec.structs.replace(GOOD, session_ms=3_000, heartbeat_ms=500)) == []


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({"cluster_id": ""}, "cluster_id is empty"),
        ({"broker_id": -1}, "broker_id is -1"),
        ({"broker_id": 2**31}, "below 2^31"),
        ({"controllers": ()}, "controllers is empty"),
        ({"controllers": ("one:9191",)}, "a URL such as"),
        ({"heartbeat_ms": 4_500}, "10 to 3475"),
        ({"heartbeat_ms": 5}, "heartbeat_ms is 5"),
        ({"session_ms": 300}, "with session_ms 300"),
        ({"answer_slack_ms": 0}, "answer_slack_ms"),
        ({"endpoints": (Endpoint("a", "h", 1), Endpoint("a", "h", 2))}, "a name twice"),
        ({"endpoints": (Endpoint("a", "", 1),)}, "without a name or a host"),
        ({"endpoints": (Endpoint("a", "h", 0),)}, "port 0"),
    ],
)
def test_what_cannot_be_is_said(changed, says):
    assert any(says in sentence for sentence in problems(msgspec.structs.replace(GOOD, **changed)))


def test_a_held_fetch_never_ends_a_lease_in_ordinary_life():
    for session_ms in (1_000, 3_000, 9_000, 60_000):
        wait_ms = longest_wait_ms(session_ms, 250)
        assert 2 * wait_ms + 250 <= 0.8 * session_ms
