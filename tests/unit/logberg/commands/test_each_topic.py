"""`topics create --each`: every topic is a change of its own, and the command can be repeated."""

import asyncio
import re
from pathlib import Path

import pytest

from logberg.client.request_ids import derived_request_id, new_request_id
from metadata.uuids import parse_uuid, uuid7_time_ms
from tests.unit.logberg.client.changing_controller import ChangingController, RunningControllers
from tests.unit.logberg.edge import Said, run_whole


async def create(controller: ChangingController, *arguments: str) -> Said:
    async with RunningControllers(controller) as urls:
        command = ("topics", "create", "--each", "--controllers", urls[0], *arguments)
        return await asyncio.to_thread(run_whole, *command)


async def test_each_is_a_change_and_they_share_requests(tmp_path: Path) -> None:
    controller = ChangingController()
    names = [f"t{number}" for number in range(600)]
    (tmp_path / "names").write_text("\n".join([*names[1:], "", ""]))
    said = await create(controller, names[0], "--from", str(tmp_path / "names"))
    assert said.code == 0, said.err
    assert said.out.splitlines()[-1].startswith("created t599: 1 partitions")
    assert controller.made == dict.fromkeys(names, 1)
    assert len(set.union(*controller.ids.values())) == len(names)
    assert len(controller.requests) < len(names) / 20


async def test_one_that_is_refused_leaves_the_others() -> None:
    controller = ChangingController()
    said = await create(controller, "a", "refused", "b")
    assert (said.code, set(controller.made)) == (1, {"a", "b"})
    assert "refused: refused [TOPIC_ALREADY_EXISTS]" in said.err


async def test_the_command_is_repeated_by_its_request_id_and_makes_each_once() -> None:
    controller = ChangingController()
    controller.first["b"] = 500, {"code": "UNKNOWN_SERVER_ERROR", "message": "a defect"}
    said = await create(controller, "a", "b", "c")
    assert said.code == 1
    found = re.search(r"--request-id (\S{22})", said.err)
    assert found is not None
    assert "1 of 3 topics were not answered" in said.err
    assert set(controller.made) == {"a", "c"}
    said = await create(controller, "a", "b", "c", "--request-id", found[1])
    assert (said.code, dict(controller.made)) == (0, {"a": 1, "b": 1, "c": 1})
    assert all(len(ids) == 1 for ids in controller.ids.values())


@pytest.mark.parametrize(
    ("arguments", "code", "says"),
    [
        (["a", "--dry-run"], 2, "--dry-run shows only one"),
        (["a", "a"], 2, "named twice"),
        ([], 2, "name at least one topic"),
        (["a", "--request-id", "x"], 1, "must be a UUIDv7"),
    ],
)
async def test_what_makes_no_sense_is_refused(arguments: list[str], code: int, says: str) -> None:
    controller = ChangingController()
    said = await create(controller, *arguments)
    assert (said.code, controller.requests) == (code, [])
    assert says in said.err


def test_ids_of_parts_differ_and_have_the_time_of_the_whole() -> None:
    whole = new_request_id()
    parts = [derived_request_id(whole, name) for name in ("a", "b", "a")]
    assert parts[0] == parts[2] != parts[1]
    times = {uuid7_time_ms(parse_uuid(each)) for each in (whole, *parts)}
    assert len(times) == 1
