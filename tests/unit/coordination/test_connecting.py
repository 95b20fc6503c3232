"""From a URL to a client: what is taken apart, found and refused."""

import importlib.metadata
from pathlib import Path

import pytest

from coordination.backend import Auth, BackendSettings
from coordination.backends.memory import make_backend
from coordination.connect import ENTRY_POINTS, connect, find_factory, parse_url
from coordination.errors import ConfigError, CoordinationError
from tests.unit.coordination.virtual_loop import client, virtual

GOOD = [
    ("memory://a", "memory", ("a",), "", None, {}),
    ("memory://", "memory", (), "", None, {}),
    ("etcd+http://h1:1,h2:2", "etcd+http", ("h1:1", "h2:2"), "", None, {}),
    ("zookeeper://[::1]:2181/kafka/a", "zookeeper", ("[::1]:2181",), "kafka/a", None, {}),
    ("x://me:p%40ss@h", "x", ("h",), "", Auth("me", "p@ss"), {}),
    ("x://me@h/?a=1&b=", "x", ("h",), "", Auth("me"), {"a": "1", "b": ""}),
]


@pytest.mark.parametrize(("url", "scheme", "hosts", "path", "auth", "options"), GOOD)
def test_a_url_is_taken_apart(url, scheme, hosts, path, auth, options) -> None:
    parsed = parse_url(url, None, {})
    assert (parsed.scheme, parsed.endpoints, parsed.path) == (scheme, hosts, path)
    assert (parsed.auth, parsed.options) == (auth, options)


BAD = {
    "": "begins with scheme://",
    "localhost:1": "begins with scheme://",
    "memory:a": "begins with scheme://",
    "etcd+http://h1,,h2": "empty host",
    "etcd+http://h1?a=1&a=2": "stands twice: a",
    "etcd+http://h1?a": "can't be read",
    "x://[::1": "can't be read",
    "x://h#f": "no #fragment",
}


@pytest.mark.parametrize("url", BAD)
def test_a_bad_url_is_refused_with_its_reason(url: str) -> None:
    with pytest.raises(ConfigError, match=BAD[url]):
        connect(url)


def test_settings_are_refused_at_once() -> None:
    for settings in ({"ttl": 0}, {"ttl": -1}, {"request_timeout": 0.0}, {"ttl": float("nan")}):
        with pytest.raises(ConfigError, match="must be more than 0"):
            connect("memory://", **settings)
    with pytest.raises(ConfigError, match="stands twice: a"):
        connect("x://h?a=1", a=2)


@virtual
async def test_an_unknown_option_or_scheme_is_named() -> None:
    with pytest.raises(ConfigError, match="no option 'colour'"):
        await client(colour="red")
    with pytest.raises(ConfigError, match=r"scheme 'nonsense'; known ones: .*memory"):
        await connect("nonsense://h").open()


def test_an_entry_point_offers_a_scheme(tmp_path: Path, monkeypatch) -> None:
    info = tmp_path / "others-1.0.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: others\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text(
        f"[{ENTRY_POINTS}]\nothers = coordination.backends.memory:make_backend\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    assert {p.name for p in importlib.metadata.entry_points(group=ENTRY_POINTS)} >= {"others"}
    assert find_factory(parse_url("others://h", None, {})) is make_backend
    assert find_factory(parse_url("others+http://h", None, {})) is make_backend


GIVEN: list[BackendSettings] = []


def make_configured(settings: BackendSettings):
    GIVEN.append(settings)
    return make_backend(BackendSettings("memory", (), "", 5.0, settings.clock, settings.dice))


def test_a_class_and_a_file_of_properties_make_a_backend(tmp_path: Path) -> None:
    path = tmp_path / "store.properties"
    path.write_text("# the store\nkeyspace = kafka\nretries:3\n")

    @virtual
    async def test() -> None:
        url = f"class://{__name__}.make_configured?properties={path}&retries=4"
        settings = client().__dict__
        async with connect(url, clock=settings["_clock"], dice=settings["_dice"]) as a:
            await a.storage.upsert("k", b"v")

    test()
    assert GIVEN[-1].options == {"keyspace": "kafka", "retries": "4"}


@virtual
async def test_a_class_or_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"'no\.such\.Class' can't be loaded"):
        await connect("class://no.such.Class").open()
    with pytest.raises(ConfigError, match="properties can't be read"):
        await connect(f"class://{__name__}.make_configured?properties={tmp_path}/none").open()


@virtual
async def test_a_namespace_goes_before_every_name() -> None:
    async with client("a", namespace="app/") as a, client("b") as b, client("c", namespace="") as c:
        await a.storage.put("k/1", b"v")
        await a.group("g").join("m")
        await a.election("s").nominate("A")
        assert [r.key async for r in b.storage.list()] == ["app/k/1"]
        assert [r.key async for r in a.storage.list("k")] == ["k/1"]
        assert (await a.storage.fetch("k/1")).key == "k/1"
        assert await c.group("app/g").membership_list() == {"m"}
        assert (await b.election("app/s").get_leader()).id == "A"
        assert await b.group("g").membership_list() == set()


@pytest.mark.parametrize("key", ["", "\ud800", "k" * 1025, "ü" * 513])
def test_a_bad_key_is_refused_before_it_is_sent(key: str) -> None:
    @virtual
    async def test() -> None:
        async with client() as a:
            for refused in (a.storage.fetch(key), a.storage.put(key, b"")):
                with pytest.raises(CoordinationError, match="key"):
                    await refused
            with pytest.raises(CoordinationError, match="name of a"):
                a.lock(key)

    test()
