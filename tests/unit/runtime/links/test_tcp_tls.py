"""Links over real sockets with TLS: whose certificate opens a link, and how long."""

import os
from pathlib import Path

import pytest
import structlog

from runtime.sockets.tls import peer_tls
from tests.unit.runtime.certificates import Authority
from tests.unit.runtime.links.tcp_kit import Start, link, settle, tls_of


async def test_with_tls_the_handler_judges_the_certificates_uri(
    start: Start, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    one = start(1, tls=tls_of(authority, 1))
    two = start(2, tls=tls_of(authority, 2))
    seen: list[tuple[int | None, str | None]] = []

    def judge(node_id: int | None, greeting: bytes, certified: str | None) -> int | str:
        seen.append((node_id, certified))
        return int(greeting.removeprefix(b"node "))

    one.recorder.judge = judge
    await link(one, two)
    assert set(seen) <= {
        (None, "logberg://test/controller/2"),
        (2, "logberg://test/controller/2"),
    }
    frame = os.urandom(3_000_000)
    assert one.links.send(2, frame)
    assert two.links.send(1, frame)
    await settle(lambda: two.recorder.frames() == one.recorder.frames() == [frame])


async def test_a_peer_of_another_authority_is_rejected_by_both(
    start: Start, tmp_path: Path
) -> None:
    one = start(1, tls=tls_of(Authority(tmp_path / "a"), 1))
    two = start(2, tls=tls_of(Authority(tmp_path / "b", "another CA"), 2))
    for node in (one, two):
        node.links.set_peers((one.peer, two.peer))
    await settle(lambda: one.links.counters["links_rejected"] > 1)
    await settle(lambda: two.links.counters["links_rejected"] > 1)
    assert not [e for e in one.recorder.heard + two.recorder.heard if e[0] == "up"]
    await settle(lambda: one.links.near_peers.inside == two.links.near_peers.inside == 0)


async def test_a_certificate_that_the_peer_does_not_trust_is_rejected(
    start: Start, tmp_path: Path
) -> None:
    authority, other = Authority(tmp_path / "a"), Authority(tmp_path / "b", "another CA")
    foreign = other.issue("logberg://test/controller/2")._replace(ca=authority.path)
    one = start(1, tls=tls_of(authority, 1))
    two = start(2, tls=peer_tls(foreign))
    # In TLS 1.3 this dial succeeds at first: the refusal comes after our side is done.
    two.links.set_peers((one.peer,))
    await settle(lambda: two.links.counters["dials_failed"] >= 2)
    assert one.recorder.heard == []
    assert not two.recorder.is_linked(1)


async def test_a_peer_without_tls_does_not_get_in(start: Start, tmp_path: Path) -> None:
    one = start(1, tls=tls_of(Authority(tmp_path), 1))
    two = start(2)
    for node in (one, two):
        node.links.set_peers((one.peer, two.peer))
    await settle(lambda: two.links.counters["dials_failed"] >= 2)
    await settle(lambda: one.links.counters["dials_failed"] >= 2)
    assert not [e for e in one.recorder.heard + two.recorder.heard if e[0] == "up"]


async def test_a_renewed_certificate_holds_for_new_links_only(start: Start, tmp_path: Path) -> None:
    authority = Authority(tmp_path)
    one, two = start(1, tls=tls_of(authority, 1)), start(2, tls=tls_of(authority, 2))
    await link(one, two)
    one.links.set_tls(tls_of(authority, 1))
    three = start(3, tls=tls_of(authority, 3))
    for node in (one, two, three):
        node.links.set_peers((one.peer, two.peer, three.peer))
    await settle(lambda: one.recorder.is_linked(3) and two.recorder.is_linked(3))
    assert [e for e in one.recorder.heard if e[1] == 2] == [("up", 2)]


async def test_who_is_not_trusted_any_more_loses_its_link(start: Start, tmp_path: Path) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new", "new CA")
    one, two = start(1, tls=tls_of(old, 1)), start(2, tls=tls_of(old, 2))
    await link(one, two)
    one.links.set_tls(tls_of(new, 1))
    await settle(lambda: not one.recorder.is_linked(2))
    await settle(lambda: one.links.counters["handshakes_failed"] >= 2)
    assert not one.recorder.is_linked(2)
    two.links.set_tls(tls_of(new, 2))
    await settle(lambda: one.recorder.is_linked(2) and two.recorder.is_linked(1))


@pytest.mark.parametrize("who", ["listens", "dials"])
async def test_a_peers_certificate_with_several_uris_is_refused(
    start: Start, tmp_path: Path, who: str
) -> None:
    authority = Authority(tmp_path)
    uris = ("quorum://c/2", "quorum://c/3")
    one = start(1, tls=tls_of(authority, 1))
    two = start(2, tls=peer_tls(authority.issue(uris, "several")))
    with structlog.testing.capture_logs() as logs:
        if who == "dials":
            two.links.set_peers((one.peer,))
        else:
            one.links.set_peers((two.peer,))
        await settle(lambda: one.links.counters["links_rejected"] >= 1)
    [first, *_] = [entry for entry in logs if entry["event"] == "link_rejected"]
    assert "2 URIs" in first["reason"]
    assert "quorum://c/3" in first["reason"]
    assert not one.recorder.is_linked(2)
