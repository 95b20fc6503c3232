"""`logberg watch` goes on from each answer, and Ctrl-C ends it cleanly."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from urllib.parse import parse_qs, urlsplit

import msgspec
import pytest
from click.testing import CliRunner

from logberg.cli.command_tree import cli
from logberg.client.client import LogbergClient
from metadata.messages.watch import WatchReply
from tests.unit.logberg.listener import Listener


def answer(next_place: str, high_watermark: int, *names: str) -> tuple[str, bytes]:
    records = [
        {
            "offset": number,
            "epoch": 1,
            "timestampMs": 0,
            "principal": "User:a",
            "record": {"type": "TOPIC_RECORD", "version": 0, "data": {"name": name}},
        }
        for number, name in enumerate(names)
    ]
    reply = {"resource": "topic:a", "nextFrom": next_place, "logStart": 0, "records": records}
    return "200 OK", json.dumps(reply | {"highWatermark": high_watermark}).encode()


def test_it_goes_on_from_each_answer_up_to_the_logs_end() -> None:
    listener, asked = Listener(), []

    def reply(_method: str, target: str) -> tuple[str, bytes]:
        asked.append(parse_qs(urlsplit(target).query)["from"][0])
        return {
            "0": answer("5.", 9, "a", "b"),
            "5.": answer("7.", 9),
            "7.": answer("9.", 9, "c"),
        }[asked[-1]]

    listener.answer = reply
    arguments = ["watch", "topic:a", "--from", "0", "--once", "--controllers", listener.url]
    done = CliRunner().invoke(cli, arguments)
    listener.close()
    assert done.exit_code == 0, done.output
    assert asked == ["0", "5.", "7."]
    assert [line.split('"')[3] for line in done.output.splitlines()] == ["a", "b", "c"]


def test_ctrl_c_ends_it_cleanly() -> None:
    listener = Listener()
    listener.answer = lambda _method, _target: answer("5.", 9, "a")
    command = [sys.executable, "-m", "logberg", "watch", "topic:a", "--controllers", listener.url]
    watching = subprocess.Popen(
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert watching.stdout is not None
        assert "TOPIC_RECORD" in watching.stdout.readline()
        watching.send_signal(signal.SIGINT)
        _, errors = watching.communicate(timeout=20)
    finally:
        watching.kill()
        listener.close()
    assert (watching.returncode, errors) == (0, "")


def test_a_watch_ends_though_a_library_swallows_its_cancellation(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked = 0

    async def swallowing(*_: object, **__: object) -> WatchReply:
        nonlocal asked
        asked += 1
        with suppress(asyncio.CancelledError):
            await asyncio.sleep(0.05)
        return msgspec.json.decode(answer("5.", 9, "a")[1], type=WatchReply)

    async def watch() -> None:
        client = LogbergClient(["http://127.0.0.1:1"])
        monkeypatch.setattr(client, "watched", swallowing)
        async for _ in client.watch("topic:a"):
            assert asked < 3

    async def cancelled() -> None:
        task = asyncio.create_task(watch())
        await asyncio.sleep(0)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert asked == 1
