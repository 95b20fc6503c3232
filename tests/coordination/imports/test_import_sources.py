"""Cases M1 to M6 and M10 of KIP-30's suite, once for each store that keys are imported from.

M7 to M9 are about writing back, which only the bridge from ZooKeeper does; it has tests of its own.
"""

import asyncio
import contextlib
import json
import random
import sys
from asyncio.subprocess import DEVNULL
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from benchmarks.peers.tools import NoToolError
from tests.coordination.imports.sources import LABELS, ImportedStore, RealStores
from tests.coordination.servers.tier import skip_unless_run
from tests.process.running_cluster import RunningCluster, Said, running

pytestmark = [pytest.mark.process, pytest.mark.slow]

GOLDEN = {
    key: b64decode(value)
    for key, value in json.loads(Path(__file__).with_name("golden_keys.json").read_text()).items()
}


@pytest.fixture(scope="module")
def stores(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RealStores]:
    skip_unless_run()
    stores = RealStores(tmp_path_factory.mktemp("stores"))
    yield stores
    stores.stop()


@pytest.fixture(scope="module")
def cluster(stores: RealStores, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with running(tmp_path_factory.mktemp("cluster"), 1) as cluster:
        yield cluster


class Importing:
    """One test's place in a store, and its namespace in the quorum."""

    def __init__(self, cluster: RunningCluster, store: ImportedStore, place: str) -> None:
        self._cluster = cluster
        self.store = store
        self.place = place
        self.arguments = ["import", *store.arguments(place), "--into", place]

    async def command(self, *more: str) -> Said:
        return await asyncio.to_thread(
            self._cluster.command, *self.arguments, *more, "--data", ".", "--timeout", "30"
        )

    async def done(self, *more: str) -> Any:
        """Import, and return manifest and reply."""
        said = await self.command("--output", "json", *more)
        assert said.code == 0, said.err
        return json.loads(said.out)

    def here(self) -> dict[str, bytes]:
        """Return the keys of the namespace in the quorum."""
        prefix = f"{self.place}/"
        url = self._cluster.url(self._cluster.leader())
        answer = self._cluster.ask(url, "GET", f"/v1/coordination/keys?prefix={quote(prefix)}")
        assert answer.status == 200, answer.body
        return {
            each["key"].removeprefix(prefix): b64decode(each["value"])
            for each in answer.body["records"]
        }


@pytest.fixture(params=LABELS)
async def importing(request: pytest.FixtureRequest, stores: RealStores, cluster: Any) -> Importing:
    try:
        store = stores.get(request.param)
    except NoToolError as error:
        pytest.skip(f"not run: {error}")
    place = f"t{random.getrandbits(40):x}"
    await store.make(place)
    return Importing(cluster, store, place)


async def test_m1_an_empty_source_gives_nothing(importing: Importing) -> None:
    done = await importing.done()
    assert (done["reply"]["written"], done["manifest"]["malformed"]) == (0, [])
    assert importing.here() == {}


async def test_m2_m3_all_keys_come_once_with_the_revision_and_tokens_above(
    importing: Importing,
) -> None:
    await importing.store.write(importing.place, GOLDEN)
    rehearsal = await importing.done("--dry-run")
    assert rehearsal["reply"]["written"] == len(GOLDEN)
    assert importing.here() == {}
    done = await importing.done()
    assert importing.here() == GOLDEN
    manifest = done["manifest"]
    assert manifest["revision"] > 0
    assert manifest["newestToken"] >= manifest["revision"] or "zookeeper" in manifest["source"]
    assert manifest["consistency"]
    assert manifest["records"] == {"KEY_RECORD": len(GOLDEN)}
    again = await importing.done()
    assert (again["reply"]["written"], again["reply"]["same"]) == (0, len(GOLDEN))
    assert importing.here() == GOLDEN


async def test_m4_what_is_read_stood_together_at_one_moment(importing: Importing) -> None:
    """Two keys are written together, again and again; each reading has the same in both."""

    async def write() -> None:
        for number in range(1_000):
            value = b"%d" % number
            await importing.store.write(importing.place, {"pair/a": value, "pair/b": value})
            await asyncio.sleep(0.5)

    writer = asyncio.create_task(write())
    try:
        for _ in range(3):
            said = await importing.command("--dry-run", "--output", "json")
            if said.code:
                assert "changed while it was read" in said.err
                continue
            written = json.loads(said.out)["reply"]["records"]
            values = [each["data"]["value"] for each in written if "key" in each["data"]]
            assert len(set(values)) <= 1, values
    finally:
        writer.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await writer


async def test_m5_an_import_that_is_ended_half_way_shows_all_or_nothing(
    importing: Importing, cluster: Any
) -> None:
    await importing.store.write(importing.place, GOLDEN)
    command = [sys.executable, "-m", "logberg", *importing.arguments, "--data", "."]
    for wait_s in (0.3, 0.9, 1.2, 1.5, 1.8):
        child = await asyncio.create_subprocess_exec(
            *command, cwd=cluster.folder, stdout=DEVNULL, stderr=DEVNULL
        )
        await asyncio.sleep(wait_s)
        with contextlib.suppress(ProcessLookupError):
            child.kill()
        await child.wait()
        assert importing.here() in ({}, GOLDEN)
    await importing.done()
    assert importing.here() == GOLDEN


async def test_m6_what_belongs_to_a_session_stays_behind(importing: Importing) -> None:
    await importing.store.write(importing.place, {"config/limit": b"5"})
    async with importing.store.hold(importing.place):
        done = await importing.done()
    assert importing.here() == {"config/limit": b"5"}
    reasons = {each["path"]: each["why"] for each in done["manifest"]["left"]}
    assert any("mine" in path and "session" in why for path, why in reasons.items()), reasons


async def test_m10_what_cannot_be_a_key_is_named_and_stops_the_import(
    importing: Importing,
) -> None:
    await importing.store.write(importing.place, {"config/limit": b"5"})
    await importing.store.spoil(importing.place)
    refused = await importing.command()
    assert refused.code == 1
    assert "nothing is imported" in refused.err
    assert importing.here() == {}
    done = await importing.done("--skip-malformed")
    assert importing.here() == {"config/limit": b"5"}
    assert done["manifest"]["malformed"]
    await importing.store.mend(importing.place)
    assert (await importing.done())["reply"]["same"] == 1


async def test_a_key_that_differs_here_stops_the_import(importing: Importing) -> None:
    await importing.store.write(importing.place, {"config/limit": b"5"})
    await importing.done()
    await importing.store.write(importing.place, {"config/limit": b"6", "config/new": b"1"})
    refused = await importing.command()
    assert refused.code == 1
    assert "config/limit: it has another value here" in refused.err
    assert importing.here() == {"config/limit": b"5"}
