"""Contacts of brokers and their confirmations on the links between controllers."""

import pytest

from quorum.wire.formats import CONTACTS_FORMAT, NEWEST_FORMAT
from quorum.wire.frames import CONTACTS_BYTES_MAX, FrameKind
from tests.unit.quorum.bench import Bench

KINDS = {"contacts": FrameKind.CONTACTS, "confirmed": FrameKind.CONFIRMED}


def agreed(bench: Bench, number: int, newest: int) -> None:
    """The peer asks for a format, and so tells its own."""
    bench.say(number, FrameKind.LIST, 0, 1, f"wire-formats/1-{newest}")
    bench.taken()


@pytest.fixture
def bench() -> Bench:
    bench = Bench()
    bench.settle(0.01)
    agreed(bench, 2, NEWEST_FORMAT)
    return bench


@pytest.mark.parametrize("name", KINDS)
def test_a_frame_goes_to_a_voter_that_knows_it(bench: Bench, name: str) -> None:
    assert bench.call(getattr(bench.node, f"send_{name}"), 2, b"bytes")
    assert bench.taken(KINDS[name]) == [(2, (b"bytes",))]


@pytest.mark.parametrize("newest", range(1, CONTACTS_FORMAT))
@pytest.mark.parametrize("name", KINDS)
def test_an_older_release_gets_none(bench: Bench, name: str, newest: int) -> None:
    agreed(bench, 3, newest)
    assert not bench.call(getattr(bench.node, f"send_{name}"), 3, b"bytes")
    assert bench.taken(KINDS[name]) == []


@pytest.mark.parametrize("name", KINDS)
def test_without_a_link_nothing_is_sent(bench: Bench, name: str) -> None:
    bench.unlink(2)
    for number in (1, 2, 9):
        assert not bench.call(getattr(bench.node, f"send_{name}"), number, b"bytes")
    assert bench.taken(KINDS[name]) == []


@pytest.mark.parametrize("name", KINDS)
def test_too_many_bytes_are_a_defect_of_the_owner(bench: Bench, name: str) -> None:
    with pytest.raises(ValueError, match="at most"):
        getattr(bench.node, f"send_{name}")(2, bytes(CONTACTS_BYTES_MAX + 1))


@pytest.mark.parametrize("name", KINDS)
def test_the_owner_hears_of_a_voters_frame(bench: Bench, name: str) -> None:
    bench.say(2, KINDS[name], 0, b"bytes")
    assert (name, 2, b"bytes") in bench.heard.events


@pytest.mark.parametrize("name", KINDS)
def test_an_observers_frame_is_refused(bench: Bench, name: str) -> None:
    bench.node.context.replicas.get(2).is_voter = False
    bench.say(2, KINDS[name], 0, b"bytes")
    assert (name, 2, b"bytes") not in bench.heard.events
    assert not bench.call(getattr(bench.node, f"send_{name}"), 2, b"bytes")
