"""A frame of `top`: who is behind, and the worst first where there is little room."""

import msgspec

from logberg.cli.output import Sheet
from logberg.client.cluster_view import ClusterView, ControllerView
from logberg.operating.top_frame import TopView, frame
from metadata.messages.brokers import BrokerDescription, BrokerStateName
from metadata.messages.log import BatchInWords, RecordInWords
from metadata.messages.quorum import QuorumMember, QuorumReply
from tests.unit.logberg.operating.test_checks import status

QUORUM = QuorumReply(
    *("cluster", 1, "d", "leader", 1, 3, "https://c1", 100, 50, 50, 50, 49, 4096),
    (
        QuorumMember(1, "d1"),
        QuorumMember(2, "d2", match_index=50, last_contact_ms=120),
        QuorumMember(3, "d3", match_index=10, last_contact_ms=9_000),
    ),
)


def broker(
    number: int, state: BrokerStateName = BrokerStateName.ONLINE, applied: int = 100
) -> BrokerDescription:
    return BrokerDescription(
        number, 1, "i", state, False, False, leaders=5, applied_offset=applied, last_contact_ms=250
    )


def change(offset: int, *kinds: str, **who: str) -> BatchInWords:
    records = tuple(RecordInWords(kind, 0, {}) for kind in kinds)
    said = {"principal": "User:alice", "operation": "apply", **who}
    return BatchInWords(offset, offset + len(kinds), 3, 0, "ab", records, **said)


def moment(*brokers: BrokerDescription, quorum: QuorumReply | None = QUORUM) -> TopView:
    seen = [
        ControllerView("https://c1", status(1, log_end=100)),
        ControllerView("https://c2", status(2, log_end=100)),
        ControllerView("https://c3", status(3, log_end=60, note="it loads")),
        ControllerView("https://c4", None, "refused"),
    ]
    changes = [change(n, "TOPIC_RECORD", "PARTITION_RECORD", "PARTITION_RECORD") for n in range(50)]
    return TopView(ClusterView(tuple(seen), brokers), quorum, changes, 12.34)


def lines(found: TopView, height: int = 40) -> list[str]:
    printed: list[str] = []
    for part in frame(found, height):
        printed += part.lines() if isinstance(part, Sheet) else [part]
    return printed


def words(text: list[str], start: str) -> list[str]:
    return next(line.split() for line in text if line.split()[:1] == [start])


def test_a_frame_says_who_leads_and_who_is_behind() -> None:
    shown = lines(moment(broker(7, applied=90)))
    assert shown[0] == "cluster cluster   active: controller 1, epoch 3   12.3 records/s"
    assert words(shown, "1")[:5] == ["1", "active", "100", "1", "itself"]
    assert words(shown, "2")[:6] == ["2", "follower", "100", "0", "0.1", "s"]
    third = words(shown, "3")
    assert third[3:6] == ["40", "9.0", "s"]
    assert third[-2:] == ["it", "loads"]
    assert words(shown, "https://c4")[1] == "down"
    assert words(shown, "7")[:6] == ["7", "online", "5", "0", "90", "10"]
    assert words(shown, "00:00:00")[-5:] == [
        *("User:alice", "apply", "TOPIC_RECORD,", "2", "PARTITION_RECORD")
    ]


def test_without_the_leaders_knowledge_no_lag_is_made_up() -> None:
    other = msgspec.structs.replace(QUORUM, node_id=2)
    for quorum in (None, other):
        assert words(lines(moment(quorum=quorum)), "3")[3:5] == ["-", "-"]


def test_observers_are_shown_also_those_that_nobody_asked() -> None:
    members = (
        *QUORUM.members[:2],
        QuorumMember(3, "d3", is_voter=False, is_standing=True, match_index=10),
        QuorumMember(5, "d5", is_voter=False, match_index=49, last_contact_ms=2_000),
        QuorumMember(6, "d6", url="https://c4"),
    )
    shown = lines(moment(quorum=msgspec.structs.replace(QUORUM, members=members)))
    assert words(shown, "3")[1:5] == ["standing", "observer", "60", "40"]
    assert words(shown, "5")[:6] == ["5", "observer", "-", "1", "2.0", "s"]
    assert not any(line.split()[:1] == ["6"] for line in shown), "it is asked, and down"


def test_a_frame_fits_the_terminal_and_shows_the_worst_brokers() -> None:
    many = [broker(n) for n in range(100)]
    many[42] = broker(42, BrokerStateName.FENCED)
    many[77] = broker(77, applied=3)
    for height in (20, 24, 50):
        shown = lines(moment(*many), height)
        assert len(shown) <= max(height, 21), height
        at = next(i for i, line in enumerate(shown) if line.startswith("broker"))
        assert [line.split()[0] for line in shown[at + 1 : at + 3]] == ["42", "77"]
        assert any(line.endswith("more brokers") for line in shown)
        # The newest changes are kept.
        assert shown[-1].split()[1] == "49"
