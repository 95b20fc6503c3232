"""The checks of `doctor`: each sees its own trouble, and none where there is none."""

import math
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from logberg.operating.check_words import CheckState, NodeCheck
from logberg.operating.checks import check_all
from logberg.operating.node_report import (
    AGENT,
    CONTROLLER,
    ChainPoint,
    ClusterReport,
    NodeReport,
)
from logberg.operating.samples import Samples
from metadata.messages.brokers import BrokerDescription, BrokerStateName
from metadata.messages.quorum import StatusReply

NOW = 1_800_000_000.0
DAY = 86_400.0
OK, LOOK, ACT = CheckState.OK, CheckState.LOOK, CheckState.ACT
HEALTHY = {
    "logberg_disk_free_bytes": 60e9,
    "logberg_disk_size_bytes": 100e9,
    "logberg_disk_full_in_days": 400.0,
    "logberg_state_diverged": 0,
    "process_open_fds": 60,
    "process_max_fds": 65_536,
    'logberg_certificate_expiry_seconds{file="cert"}': NOW + 80 * DAY,
    'logberg_build_info{version="1.0"}': 1,
    'logberg_disk_sync_seconds_bucket{le="0.002"}': 100,
    'logberg_disk_sync_seconds_bucket{le="0.25"}': 100,
    'logberg_disk_sync_seconds_bucket{le="2.0"}': 100,
    "logberg_disk_sync_seconds_count": 100,
}


def status(node_id: int, **changes: Any) -> StatusReply:
    known = StatusReply(
        *("cluster", node_id, "1.0", "follower", node_id == 1, 1, 3, None, 0, 9, 9, 3, 0),
        *("aa", "bb", "cc", {}, 1, 2, 0),
        authorization="on",
    )
    return msgspec.structs.replace(known, **changes)


def samples(**changes: float | None) -> Samples:
    figures: dict[str, float | None] = {**HEALTHY, **changes}
    return Samples("".join(f"{k} {v}\n" for k, v in figures.items() if v is not None))


def controller(node_id: int, **changes: Any) -> NodeReport:
    known = NodeReport(
        CONTROLLER,
        f"https://c{node_id}",
        status(node_id),
        samples(),
        0.01 * node_id,
        ChainPoint(8, "ab" * 32),
    )
    return known._replace(**changes)


def report(*changed: NodeReport, brokers: tuple[BrokerDescription, ...] = ()) -> ClusterReport:
    """Three controllers and an agent; those of the same URL are replaced."""
    agent = NodeReport(AGENT, "https://b1", samples=samples(), clock_ahead_s=0.0)
    known = {node.url: node for node in (*map(controller, (1, 2, 3)), agent)}
    known |= {node.url: node for node in changed}
    return ClusterReport(tuple(known.values()), brokers, 9)


def troubles(found: ClusterReport) -> list[tuple[str, str, CheckState]]:
    checks = check_all(found, NOW)
    assert all(bool(check.do) is (check.state is not OK) for check in checks), checks
    return [(c.check, c.node, c.state) for c in checks if c.state is not OK]


def test_a_sound_cluster_has_nothing_to_do_and_every_check_says_so() -> None:
    checks = check_all(report(), NOW)
    assert troubles(report()) == []
    assert {check.check for check in checks} == {
        *("nodes", "versions", "clocks", "chain", "disks", "syncs", "certificates"),
        *("descriptors", "access"),
    }


def _with(**figures: float | None) -> Callable[[], NodeReport]:
    return lambda: controller(2, samples=samples(**figures))


CERT = 'logberg_certificate_expiry_seconds{file="cert"}'
TROUBLES: dict[str, tuple[Callable[[], NodeReport], str, CheckState]] = {
    "down": (
        lambda: NodeReport(CONTROLLER, "https://c2", problem="refused"),
        "nodes",
        ACT,
    ),
    "note": (lambda: controller(2, status=status(2, note="it waits")), "nodes", ACT),
    "repair": (lambda: controller(2, status=status(2, repairs=("mended",))), "nodes", LOOK),
    "two active": (lambda: controller(2, status=status(2, active=True)), "nodes", ACT),
    "no active": (lambda: controller(1, status=status(1, active=False)), "nodes", ACT),
    "log unreadable": (
        lambda: controller(2, chain=None, problem="the log can't be read"),
        "nodes",
        LOOK,
    ),
    "rights": (lambda: controller(2, status=status(2, authorization="log-only")), "access", ACT),
    "bootstrap": (
        lambda: controller(2, status=status(2, bootstrap_admin="User:admin")),
        "access",
        LOOK,
    ),
    "forged log": (_with(logberg_signed_head_contradicted=1), "heads", ACT),
    "other history": (_with(**{'logberg_witness_contradicting{witness="w"}': 1}), "heads", ACT),
    "unwitnessed": (
        _with(logberg_signed_head_unwitnessed_seconds=61, logberg_witness_window_seconds=60),
        "heads",
        ACT,
    ),
    "witness gone": (
        _with(
            **{
                'logberg_witness_failing{witness="w"}': 1,
                "logberg_signed_head_unwitnessed_seconds": 1,
                "logberg_witness_window_seconds": 60,
            }
        ),
        "heads",
        LOOK,
    ),
    "version": (lambda: controller(2, status=status(2, version="0.9")), "versions", LOOK),
    "clock": (lambda: controller(2, clock_ahead_s=1.5), "clocks", LOOK),
    "clock far": (lambda: controller(2, clock_ahead_s=-60.0), "clocks", ACT),
    "chain": (lambda: controller(2, chain=ChainPoint(8, "cd" * 32)), "chain", ACT),
    "diverged": (_with(logberg_state_diverged=1), "chain", ACT),
    "disk": (_with(logberg_disk_free_bytes=15e9), "disks", LOOK),
    "disk full": (_with(logberg_disk_free_bytes=5e9), "disks", ACT),
    "disk soon": (_with(logberg_disk_full_in_days=3.0), "disks", LOOK),
    "disk unknown": (_with(logberg_disk_free_bytes=None), "disks", LOOK),
    "syncs": (
        _with(**{'logberg_disk_sync_seconds_bucket{le="0.002"}': 90}),
        "syncs",
        LOOK,
    ),
    "syncs bad": (
        _with(
            **{
                'logberg_disk_sync_seconds_bucket{le="0.002"}': 90,
                'logberg_disk_sync_seconds_bucket{le="0.25"}': 90,
            }
        ),
        "syncs",
        ACT,
    ),
    "syncs unknown": (_with(logberg_disk_sync_seconds_count=0), "syncs", LOOK),
    "certificate": (_with(**{CERT: NOW + 10 * DAY}), "certificates", LOOK),
    "certificate now": (_with(**{CERT: NOW + DAY}), "certificates", ACT),
    "certificate expired": (_with(**{CERT: NOW - 1}), "certificates", ACT),
    "descriptors": (_with(process_open_fds=60_000), "descriptors", LOOK),
    "descriptors few": (_with(process_max_fds=1_024), "descriptors", LOOK),
    "descriptors unknown": (_with(process_max_fds=None), "descriptors", LOOK),
}


@pytest.mark.parametrize("name", TROUBLES)
def test_each_trouble_is_seen_by_its_check_and_by_no_other(name: str) -> None:
    node, check, state = TROUBLES[name]
    found = troubles(report(node()))
    assert [(which, how) for which, _, how in found] == [(check, state)]


def test_a_disk_that_does_not_fill_and_one_that_is_not_known_yet_are_no_trouble() -> None:
    for days in (math.inf, math.nan):
        assert (
            troubles(report(controller(2, samples=samples(logberg_disk_full_in_days=days)))) == []
        )


def test_a_brokers_release_counts() -> None:
    old = BrokerDescription(7, 1, "i", BrokerStateName.ONLINE, False, False, software="0.9")
    assert troubles(report(brokers=(old,))) == [("versions", "all nodes", LOOK)]


def test_this_machines_own_clock_is_named_when_all_nodes_agree_against_it() -> None:
    nodes = [controller(n, clock_ahead_s=100.0) for n in (1, 2, 3)]
    agent = NodeReport(AGENT, "https://b1", samples=samples(), clock_ahead_s=100.1)
    assert troubles(report(*nodes, agent)) == [("clocks", "this machine", LOOK)]


def test_nobody_answers() -> None:
    down = [NodeReport(CONTROLLER, f"https://c{n}", problem="refused") for n in (1, 2, 3)]
    down.append(NodeReport(AGENT, "https://b1", problem="refused"))
    found = check_all(report(*down), NOW)
    assert len(found) == 5
    assert all(isinstance(check, NodeCheck) and check.state is ACT for check in found)


@pytest.mark.parametrize(
    ("said", "state"), [("off", LOOK), ("log-only", LOOK), ("on", OK), ("", None)]
)
def test_whether_rights_are_enforced_by_all_is_said_once(
    said: str, state: CheckState | None
) -> None:
    nodes = [controller(n, status=status(n, authorization=said)) for n in (1, 2, 3)]
    found = [check for check in check_all(report(*nodes), NOW) if check.check == "access"]
    assert [check.state for check in found] == ([] if state is None else [state])
