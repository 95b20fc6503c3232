"""`doctor` with controllers whose every text is hostile, and what it prints."""

import json
import os
from pathlib import Path

import msgspec
import pytest

from logberg.operating.folder_checks import check_folder
from metadata.messages.brokers import ListBrokersReply
from tests.unit.logberg.commands.test_terminal import EVERYTHING, check, controller, marked
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener
from tests.unit.logberg.operating.test_checks import HEALTHY, status

__all__ = ["controller"]


def answering(method: str, target: str) -> tuple[str, bytes]:
    path = target.partition("?")[0]
    if path == "/v1/status":
        said = status(
            1,
            version=marked("version", EVERYTHING),
            note=marked("note", EVERYTHING),
            repairs=(marked("repair", EVERYTHING),),
        )
        return "200 OK", msgspec.json.encode(said)
    if path == "/metrics":
        escaped = EVERYTHING.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
        figures = {**HEALTHY, f'logberg_certificate_expiry_seconds{{file="«f»{escaped}«end»"}}': 5}
        return "200 OK", "".join(f"{k} {v}\n" for k, v in figures.items()).encode()
    if path == "/v1/brokers":
        return "200 OK", msgspec.json.encode(ListBrokersReply(brokers=(), offset=1, epoch=1))
    body = {"code": "NOT_FOUND", "message": marked("message", EVERYTHING)}
    return "404 Not Found", json.dumps(body).encode()


@pytest.mark.parametrize("output", ["table", "json"])
def test_what_controllers_answer_does_not_control_the_terminal(
    controller: Listener,
    output: str,
) -> None:
    controller.answer = answering
    said = run_whole("doctor", "--controllers", controller.url, "-o", output, "--timeout", "2")
    assert said.code == 1
    for field in ("version", "note", "repair", "message"):
        assert f"«{field}»" in said.out, said.out
    check(said.both, "all")


def test_nobody_answers() -> None:
    said = run_whole("doctor", "--controllers", "http://127.0.0.1:9", "--timeout", "1")
    assert said.code == 1
    assert "no controller is active" in said.out
    assert "have to be done" in said.err or "has to be done" in said.err


def test_a_file_that_a_killed_doctor_left_is_in_nobodys_way(tmp_path: Path) -> None:
    (tmp_path / f".doctor-probe-{os.getpid()}").write_bytes(b"left")
    (tmp_path / ".doctor-probe").write_bytes(b"left by an older release")
    (syncs,) = (one for one in check_folder(tmp_path) if one.check == "syncs")
    assert "20 syncs of 4096 bytes" in syncs.found
    assert [path.name for path in tmp_path.iterdir()] == [".doctor-probe"]
