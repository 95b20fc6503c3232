"""A change whose answer is lost: its request id is shown, and repeats it."""

import asyncio
import errno
import json
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from typing import Any

import click
import pytest

from logberg.cli.command_tree import cli
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from tests.unit.logberg.commands.test_terminal import (
    DECLARED_FILE,
    JOIN_FILE,
    LINE_FILE,
    NODES_FILE,
    TOKEN_FILE,
)
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener

CHANGES: dict[str, list[str]] = {
    "topics create": ["a"],
    "topics delete": ["a"],
    "brokers unregister": ["7"],
    "features upgrade": ["a=1"],
    "features downgrade": ["a=1"],
    "acls add": ["User:a", "read", "topic:a"],
    "acls remove": ["--all"],
    "acls role grant": ["viewer", "User:a"],
    "acls role revoke": ["viewer", "User:a"],
    "configs set": ["topic", "a", "retention.ms=5"],
    "configs append": ["topic", "a", "cleanup.policy=compact"],
    "configs subtract": ["topic", "a", "cleanup.policy=compact"],
    "configs delete": ["topic", "a", "retention.ms"],
    "partitions elect": ["--all"],
    "partitions add": ["a", "3"],
    "reassign start": ["a-0=1,2"],
    "reassign cancel": ["a-0"],
    "quotas set": ["producer_byte_rate=5", "--user", "a"],
    "quotas remove": ["producer_byte_rate", "--user", "a"],
    "users scram set": ["a", "--password-file", LINE_FILE],
    "users scram delete": ["a"],
    "tokens create": ["User:a", TOKEN_FILE],
    "tokens rotate": ["a", TOKEN_FILE],
    "tokens revoke": ["a"],
    "join-token create": [JOIN_FILE, "--role", "broker", "--id", "7"],
    "join-token revoke": ["a"],
    "certs revoke": ["--serial", "0A"],
    "certs reinstate": ["--serial", "0A"],
    "delegation-tokens create": [],
    "delegation-tokens renew": ["a", "--hmac-file", LINE_FILE],
    "delegation-tokens expire": ["a", "--hmac-file", LINE_FILE],
    "quorum unregister-controller": ["7"],
    "quorum add": ["7"],
    "quorum remove": ["7"],
    "quorum promote": ["7"],
    "quorum move": ["7", "--to", "a:1"],
    "quorum rotate-key": ["7"],
    "coordination sessions end": ["AAAAAAAAAAAAAAAAAAAAAA"],
    "coordination elections break": ["a"],
    "coordination locks break": ["a"],
    "coordination keys put": ["a", "b"],
    "coordination keys delete": ["a"],
    "apply": ["-f", DECLARED_FILE, "--yes"],
    "import zookeeper": [NODES_FILE, "--skip-malformed"],
}
LOCAL = {"backup restore", "quorum recover"}
"""They write folders of stopped nodes. No request is sent."""
LOOKS_FIRST = {"erase", "quorum replace", "quorum transfer"}
"""The first shows a dry run, and waits for every controller behind its change. The second makes two
changes, and each time it looks which of them is made already. The third does nothing if the node
leads already."""
NO_CHANGE = {"log archive run"}
"""A node moves its own files. Asked again, it moves what is left."""
READ_A_SERVER = {"import etcd", "import consul", "import cassandra"}
"""They read a store first. What they ask then is asked by the code of `import zookeeper`."""
DONE = json.dumps(
    {
        "brokerId": 7,
        "nodeId": 7,
        "publicKey": "a key",
        "rotates": True,
        "dryRun": False,
        "topics": [],
        "features": [],
        "acls": [],
        "filters": [],
        "resources": [],
        "partitions": [],
        "replicaElectionResults": [],
        "entries": [],
        "users": [],
        "token": {
            "tokenId": "a",
            "owner": "User:a",
            "requester": "User:a",
            "renewers": [],
            "issueTimestampMs": 0,
            "expiryTimestampMs": 0,
            "maxTimestampMs": 0,
            "principal": "User:a",
            "name": "",
            "madeBy": "User:b",
            "createdMs": 0,
            "expiresMs": 0,
            "revokedMs": -1,
            "usedMs": -1,
            "replaces": "",
            "role": "broker",
            "nodeId": 7,
            "hosts": [],
        },
        "revocation": {
            "serial": "0A",
            "principal": None,
            "beforeMs": -1,
            "revokedBy": "User:a",
            "revokedMs": 0,
        },
        "certificate": "",
        "sha256": "0" * 64,
        "tokenId": "a",
        "expiryTimestampMs": 0,
        "controllerId": 7,
        "voters": [],
        "ended": True,
        "broken": True,
        "revision": 4,
        "elected": 0,
        "failed": 0,
        "records": [],
        "offset": 5,
        "epoch": 1,
    }
).encode()
ID = r"[A-Za-z0-9_-]{22}"


def changing(group: click.Group, path: tuple[str, ...] = ()) -> Iterator[tuple[str, set[str]]]:
    """Every command that takes a reason, with its options: it changes something."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        if isinstance(command, click.Group):
            yield from changing(command, (*path, name))
        elif command is not None:
            options = {option for each in command.params for option in each.opts}
            if "--reason" in options:
                yield " ".join((*path, name)), options


def test_every_change_can_be_repeated() -> None:
    assert isinstance(cli, click.Group)
    found = dict(changing(cli))
    without_id = LOCAL | LOOKS_FIRST | NO_CHANGE
    assert set(found) == set(CHANGES) | READ_A_SERVER | without_id
    assert all("--request-id" in found[name] for name in set(found) - without_id)


@pytest.fixture
def controller() -> Iterator[Listener]:
    listener = Listener()
    yield listener
    listener.close()


def sent_ids(controller: Listener) -> set[str]:
    return set(re.findall(r"x-logberg-request-id: (\S+)", controller.heard.decode(), re.IGNORECASE))


def sent_bodies(controller: Listener) -> set[bytes]:
    return set(re.findall(rb"\r\n\r\n(\{[^\r\n]*\})", controller.heard))


@pytest.mark.parametrize("lost", ["hangs up", "timed out", "a proxy's 504", "a defect"])
@pytest.mark.parametrize("command", CHANGES)
def test_an_outcome_that_is_unknown_can_be_found_out(
    controller: Listener, command: str, lost: str
) -> None:
    timed_out = json.dumps({"code": "REQUEST_TIMED_OUT", "message": "not known"}).encode()
    defect = json.dumps({"code": "UNKNOWN_SERVER_ERROR", "message": "a defect"}).encode()
    answers: dict[str, Any] = {
        "hangs up": None,
        "timed out": ("503 Service Unavailable", timed_out),
        "a proxy's 504": ("504 Gateway Timeout", b"<html>"),
        "a defect": ("500 Internal Server Error", defect),
    }
    controller.answer = lambda _method, _path: answers[lost]
    asked = [*command.split(), *CHANGES[command], "--controllers", controller.url]
    said = run_whole(*asked, "--timeout", "0.4")
    assert said.code == 1
    assert "outcome unknown" in said.err
    found = re.search(rf"--request-id ({ID})", said.err)
    assert found is not None, said.err
    assert sent_ids(controller) == {found[1]}, "one id through all tries"
    bodies = sent_bodies(controller)

    controller.heard = b""
    controller.answer = lambda _method, _path: ("200 OK", DONE)
    said = run_whole(*asked, "--request-id", found[1])
    assert said.code == 0, said.err
    assert sent_ids(controller) == {found[1]}
    assert sent_bodies(controller) == bodies, "a controller refuses an id with another request"


@pytest.mark.parametrize("command", CHANGES)
def test_programs_are_told_the_same_in_json(controller: Listener, command: str) -> None:
    controller.answer = lambda _method, _path: None
    asked = [*command.split(), *CHANGES[command], "--controllers", controller.url, "-o", "json"]
    said = run_whole(*asked, "--timeout", "0.4")
    assert said.out == ""
    error = json.loads(said.err)
    assert {error["requestId"]} == sent_ids(controller)
    assert error["code"] == "REQUEST_TIMED_OUT"
    assert error["details"] == {"outcome": "unknown"}
    assert error["retriable"] is True


def test_an_apply_whose_plan_was_shown_can_be_repeated(controller: Listener) -> None:
    """The plan is read first; then the answer to the apply itself is lost."""
    plan = {"plan": "abc", "created": 1, "items": [], "dryRun": True}
    user = {"kind": "user", "name": "a SCRAM-SHA-512", "action": "create"}
    shown = ("200 OK", json.dumps({**plan, "items": [user]}).encode())
    asked = ["apply", "-f", DECLARED_FILE, "--yes", "--controllers", controller.url]

    def answer(_method: str, _path: str) -> tuple[str, bytes] | None:
        return shown if controller.heard.count(b"POST /v1/apply") == 1 else None

    controller.answer = answer
    said = run_whole(*asked, "--timeout", "0.4")
    assert said.code == 1
    found = re.search(rf"--request-id ({ID})", said.err)
    assert found is not None, said.err
    bodies = sent_bodies(controller)
    assert len(bodies) == 2, "the dry run and the apply"
    assert any(b'"expectedPlan":"abc"' in body and b"saltedPassword" in body for body in bodies)
    assert not any(b"dryRun" in body and b"saltedPassword" in body for body in bodies)

    controller.heard = b""
    controller.answer = lambda method, path: answer(method, path) or ("200 OK", DONE)
    said = run_whole(*asked, "--request-id", found[1])
    assert said.code == 0, said.err
    assert "applied: " in said.out
    assert sent_ids(controller) == {found[1]}
    assert sent_bodies(controller) == bodies, "a controller refuses an id with another request"


def test_what_was_never_sent_or_was_refused_is_not_called_unknown(controller: Listener) -> None:
    nobody = "http://127.0.0.1:1"
    nowhere = run_whole("topics", "create", "a", "--controllers", nobody, "--timeout", "1")
    assert "does not answer" in nowhere.err
    refusal = json.dumps({"code": "NO_QUORUM", "message": "no majority"}).encode()
    controller.answer = lambda _method, _path: ("503 Service Unavailable", refusal)
    refused = run_whole("topics", "create", "a", "--controllers", controller.url, "--timeout", "1")
    assert "no majority" in refused.err
    for said in (nowhere, refused):
        assert said.code == 1
        assert "unknown" not in said.err


async def test_a_try_whose_time_is_over_before_it_connects_sent_nothing(
    controller: Listener, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last try of a call gets what is left of its time: it may be next to nothing."""

    async def too_late(*_args: Any, **_kwargs: Any) -> None:
        await asyncio.sleep(60)

    monkeypatch.setattr("aiohttp.TCPConnector.connect", too_late)
    async with LogbergClient([controller.url], deadline_s=0.2) as client:
        with pytest.raises(ClientError) as error:
            await client.change("DELETE", "/v1/topics/a", dict)
        assert error.value.code == "NO_ANSWER"
        assert client.in_doubt == set()


def said_under(prefix: str, controller: Listener) -> dict[str, str]:
    found = re.findall(
        rf"^{prefix}([a-z-]+): (.*)\r$", controller.heard.decode(), re.MULTILINE | re.IGNORECASE
    )
    return {name.lower(): value for name, value in found}


async def test_headers_have_their_old_names_too_until_a_controller_shows_that_it_is_newer(
    controller: Listener,
) -> None:
    newer = "x-logberg-versions: 1-2\r\n"
    controller.answer = lambda _method, _path: ("200 OK", DONE)
    async with LogbergClient([controller.url]) as client:
        for more, both in ((newer, True), ("", False), (newer, True), ("", False), ("", True)):
            controller.heard, controller.more = b"", more
            await client.change("DELETE", "/v1/topics/a", dict, None, "why")
            new, old = (said_under(p, controller) for p in ("x-logberg-", "x-quorate-"))
            assert new.keys() >= {"reason", "client-id", "request-id"}
            assert old == (new if both else {}), (more, both)


@pytest.mark.parametrize("down", [False, True], ids=["no answer", "no connection"])
async def test_who_did_not_answer_may_be_of_the_old_release_next(
    controller: Listener, monkeypatch: pytest.MonkeyPatch, down: bool
) -> None:
    controller.more = "x-logberg-versions: 1-2\r\n"
    async with LogbergClient([controller.url], deadline_s=0.2) as client:
        await client.get("/v1/topics", dict)
        controller.answer = lambda _method, _path: None
        with monkeypatch.context() as patch:
            if down:
                patch.setattr("aiohttp.connector.aiohappyeyeballs.start_connection", refused)
            with pytest.raises(ClientError):
                await client.change("DELETE", "/v1/topics/a", dict, None, "why")
        controller.heard = b""
        controller.answer = lambda _method, _path: ("200 OK", DONE)
        await client.change("DELETE", "/v1/topics/a", dict, None, "why")
        assert said_under("x-quorate-", controller)["reason"] == "why"


async def refused(*_args: Any, **_kwargs: Any) -> None:
    raise ConnectionRefusedError(errno.ECONNREFUSED, "refused")


def test_a_read_has_no_outcome(controller: Listener) -> None:
    controller.answer = lambda _method, _path: None
    said = run_whole("topics", "list", "--controllers", controller.url, "--timeout", "0.4")
    assert said.code == 1
    assert "unknown" not in said.err


def test_ctrl_c_shows_the_request_id_too(controller: Listener) -> None:
    heard, over = threading.Event(), threading.Event()

    def answer(_method: str, _path: str) -> None:
        heard.set()
        over.wait(30)

    controller.answer = answer
    command = [sys.executable, "-m", "logberg", "topics", "create", "a"]
    process = subprocess.Popen(
        [*command, "--controllers", controller.url], stderr=subprocess.PIPE, text=True
    )
    try:
        assert heard.wait(30)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=30)
    finally:
        over.set()
        process.kill()
    assert process.returncode == 1
    assert "outcome unknown" in said
    assert {*re.findall(rf"--request-id ({ID})", said)} == sent_ids(controller)
