"""The examples of coordination, run as they stand, over the store in memory."""

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from coordination.connect import connect
from coordination.errors import Fenced
from tests.unit.logberg.test_public import IMPORT

EXAMPLES = Path(__file__).resolve().parents[3] / "examples" / "coordination"


def load(name: str) -> ModuleType:
    spec = importlib.util.spec_from_file_location(f"example_{name}", EXAMPLES / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def until(look: Callable[[], bool]) -> None:
    async with asyncio.timeout(20.0):
        while not look():  # noqa: ASYNC110 - the examples report by callbacks and by printing
            await asyncio.sleep(0.01)


@pytest.mark.parametrize("path", sorted(EXAMPLES.glob("*.py")), ids=lambda path: path.stem)
def test_an_example_imports_public_names_only(path: Path) -> None:
    assert set(IMPORT.findall(path.read_text())) == {"logberg"}


async def test_the_second_worker_goes_on_where_the_first_one_ended(capsys) -> None:
    example, url = load("leader_worker"), "memory://leader-worker"
    async with connect(url) as c:
        first = asyncio.create_task(example.work(url, "one", ttl=1.0, pause_s=0.01))
        said = ""

        def shown() -> str:
            nonlocal said
            said += capsys.readouterr().out
            return said

        await until(lambda: "one leads" in shown())
        second = asyncio.create_task(example.work(url, "two", ttl=1.0, pause_s=0.01))
        await asyncio.sleep(0.1)
        assert "two leads" not in shown()
        first.cancel()
        await asyncio.gather(first, return_exceptions=True)
        before = int((await c.storage.fetch("reports/made")).value)
        await until(lambda: "two leads" in shown())
        await asyncio.sleep(0.1)
        assert int((await c.storage.fetch("reports/made")).value) > before > 0
        second.cancel()
        await asyncio.gather(second, return_exceptions=True)


async def test_a_paused_holder_cannot_write_over_its_successor(tmp_path: Path) -> None:
    example = load("fenced_write")
    accounts = example.Accounts(tmp_path / "accounts.db")
    try:
        async with connect("memory://fenced-write"):
            first = await example.deposit("memory://fenced-write", accounts, 100)
            second = await example.deposit("memory://fenced-write", accounts, 50)
            assert second > first
            assert accounts.balance() == 150
            with pytest.raises(Fenced):
                accounts.set_balance(100, "account", first)
            assert accounts.balance() == 150
    finally:
        accounts.close()


async def test_each_shard_has_one_owner_as_instances_come_and_go() -> None:
    example, url = load("sharded_service"), "memory://sharded-service"
    shards: dict[str, frozenset[int]] = {}

    def start(name: str) -> asyncio.Task:
        return asyncio.create_task(
            example.serve(url, name, f"http://{name}", lambda s: shards.update({name: s}), ttl=1.0)
        )

    def covered(*names: str) -> bool:
        owned = [shard for name in names for shard in shards.get(name, ())]
        return sorted(owned) == list(range(example.SHARDS))

    one = start("one")
    await until(lambda: covered("one"))
    two = start("two")
    await until(lambda: covered("one", "two") and bool(shards.get("two")))
    one.cancel()
    await until(lambda: covered("two"))
    two.cancel()
    await asyncio.gather(one, two, return_exceptions=True)


async def test_settings_follow_the_store() -> None:
    example, url = load("config_watcher"), "memory://config-watcher"
    seen: list[dict[str, str]] = []
    async with connect(url) as c:
        await c.storage.put("config/a", "1")
        following = asyncio.create_task(example.follow(url, lambda s: seen.append(dict(s))))
        await until(lambda: seen == [{"a": "1"}])
        await c.storage.put("config/b", "2")
        await c.storage.delete("config/a")
        await until(lambda: seen[-1] == {"b": "2"})
        assert seen == [{"a": "1"}, {"a": "1", "b": "2"}, {"b": "2"}]
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
