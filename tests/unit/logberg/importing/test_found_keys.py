"""Keys of a store become records of keys, or are named with the reason (M2, M6, M10)."""

import pytest

from logberg.importing.found_keys import OF_A_REQUEST, OF_A_SESSION, FoundKey, plan_of_keys
from logberg.importing.source_error import SourceError
from logberg.importing.store_url import KeyLayout, parse_source, refuse_path
from logberg.importing.znodes import Znode, ZnodeTree
from logberg.importing.zookeeper_keys import keys_of_nodes
from metadata.records import KeyRecord

MIB = 1 << 20
CASES = [
    (FoundKey("/a", "a", b"1"), "", "", ("a", "")),
    (FoundKey("/a", "a", b"1"), "", "app", ("app/a", "")),
    (FoundKey("/x/a", "x/a"), "x/", "app", ("app/a", "")),
    (FoundKey("/y/a", "y/a"), "x/", "", ("", "")),
    (FoundKey("/x", "x"), "x", "", ("", "its name has 0 bytes here")),
    (FoundKey("/x", "x"), "x", "app", ("app/", "")),
    (FoundKey("/k", "k" * 1024), "", "", ("k" * 1024, "")),
    (FoundKey("/k", "é" * 513), "", "", ("", "its name has 1026 bytes here")),
    (FoundKey("/k", "k" * 1024), "", "n", ("", "its name has 1026 bytes here")),
    (FoundKey("/k", "a\nb"), "", "", ("", "its name has the control character U+000A")),
    (FoundKey("/k", "k", bytes(MIB - (32 << 10))), "", "", ("k", "")),
    (FoundKey("/k", "k", bytes(MIB)), "", "", ("", "its value has 1,048,576 bytes")),
    (FoundKey("/k", "", malformed="no UTF-8"), "", "", ("", "no UTF-8")),
]


@pytest.mark.parametrize(("found", "prefix", "into", "wanted"), CASES)
def test_a_key_is_taken_or_named(
    found: FoundKey, prefix: str, into: str, wanted: tuple[str, str]
) -> None:
    key, why = wanted
    plan = plan_of_keys([found], prefix, into)
    assert plan.records == ([KeyRecord(key, found.value, 0, 0, 1)] if key else [])
    if why:
        ((path, said),) = [(each.path, each.why) for each in plan.malformed]
        assert path == found.path
        assert said.startswith(why)
    else:
        assert plan.malformed == []


def test_a_key_of_a_session_is_left_and_not_malformed() -> None:
    plan = plan_of_keys([FoundKey("/locks/a", "", left=OF_A_SESSION)])
    assert [each.path for each in plan.left] == ["/locks/a"]
    assert (plan.records, plan.malformed) == ([], [])


def test_two_keys_of_one_name_are_not_both_taken() -> None:
    plan = plan_of_keys([FoundKey("/a", "k", b"1"), FoundKey("/b", "k", b"2")])
    assert plan.records == [KeyRecord("k", b"1", 0, 0, 1)]
    assert [each.path for each in plan.malformed] == ["/b"]


NODES = ZnodeTree(
    [
        Znode("/keys"),
        Znode("/keys/app%2F"),
        Znode("/keys/app%2F/limit", b"5"),
        Znode("/keys/app%2F/empty"),
        Znode("/keys/app%2F/a b", b"raw"),
        Znode("/keys/%/top", b"1"),
        Znode("/keys/%/top/deeper", b"1"),
        Znode("/locks/l/queue/a;1;x;0000000001", b"", ephemeral=True),
        Znode("/receipts", b"4"),
        Znode("/note", b"hello"),
    ]
)


def test_nodes_of_any_program_are_keys_by_their_paths() -> None:
    found = keys_of_nodes(NODES, KeyLayout.PLAIN)
    taken = {each.key: each.value for each in found if not each.left}
    assert taken == {
        "keys/app%2F/limit": b"5",
        "keys/app%2F/empty": b"",
        "keys/app%2F/a b": b"raw",
        "keys/%/top": b"1",
        "keys/%/top/deeper": b"1",
        "receipts": b"4",
        "note": b"hello",
    }
    assert [each.path for each in found if each.left] == ["/locks/l/queue/a;1;x;0000000001"]


def test_nodes_of_this_library_are_its_keys() -> None:
    found = {each.path: each for each in keys_of_nodes(NODES, KeyLayout.LOGBERG)}
    assert found["/keys/app%2F/limit"].key == "app/limit"
    assert found["/keys/app%2F/empty"].key == "app/empty"
    assert found["/keys/%/top"].key == "top"
    assert "somebody else" in found["/keys/app%2F/a b"].malformed
    assert "somebody else" in found["/keys/%/top/deeper"].malformed
    assert found["/note"].left == OF_A_REQUEST
    assert found["/locks/l/queue/a;1;x;0000000001"].left == OF_A_SESSION
    assert "/keys/app%2F" not in found


@pytest.mark.parametrize(
    "url", ["", "etcd+http://", "etcd://a", "http://a", "etcd+http://a?x=1", "etcd+http://a,,b"]
)
def test_a_bad_url_of_a_store_is_refused(url: str) -> None:
    with pytest.raises(SourceError):
        parse_source(url, ("etcd+http", "etcd+https"), (), 1.0)


def test_the_name_of_a_store_has_no_password_and_its_hosts_have_ports() -> None:
    address = parse_source("etcd+https://root:secret@a,b:1/r", ("etcd+https",), (), 1.0)
    assert address.name == "etcd+https://a,b:1/r"
    assert address.with_port(2379) == ("https://a:2379", "https://b:1")
    with pytest.raises(SourceError, match="--prefix"):
        refuse_path(address)
