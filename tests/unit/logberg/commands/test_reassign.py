"""`logberg reassign`: what it sends, what it refuses to send, and what it says of refusals."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from logberg.commands import reassign
from logberg.commands.reassign import _cut
from metadata.messages.reassignments import Reassignment
from tests.unit.logberg.edge import run_whole
from tests.unit.logberg.listener import Listener


class Controller:
    """Answers every request about reassignments, and counts them."""

    def __init__(self) -> None:
        self.asked: list[str] = []
        self.error: dict[str, Any] | None = None

    def __call__(self, method: str, target: str) -> tuple[str, bytes]:
        self.asked.append(f"{method} {target}")
        row: dict[str, Any] = {"topic": "t", "partition": 0}
        if self.error is not None:
            row["error"] = self.error
        body = {"partitions": [row], "offset": 9, "epoch": 1, "dryRun": False, "records": []}
        return "200 OK", json.dumps(body).encode()


@pytest.fixture
def controller() -> Iterator[tuple[Listener, Controller]]:
    listener, answers = Listener(), Controller()
    listener.answer = answers
    yield listener, answers
    listener.close()


def run(listener: Listener, *arguments: str) -> Any:
    return run_whole("reassign", *arguments, "--controllers", listener.url, "--timeout", "5")


def write(folder: Path, count: int) -> str:
    rows = [{"topic": "t", "partition": n, "replicas": [1, 2]} for n in range(count)]
    path = folder / "plan.json"
    # Kafka's tool writes more than is read here.
    path.write_text(json.dumps({"version": 1, "partitions": rows, "log_dirs": []}))
    return str(path)


def test_very_many_partitions_are_several_requests(
    controller: tuple[Listener, Controller], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(reassign, "REASSIGNMENTS_PER_REQUEST", 5)
    listener, answers = controller
    said = run(listener, "start", "--file", write(tmp_path, 11))
    assert answers.asked == ["POST /v1/reassignments"] * 3
    assert said.code == 0
    assert "(offset 9)" in said.out


@pytest.mark.parametrize(
    ("count", "name", "sizes"),
    [
        (50_000, "t", [50_000]),
        (50_001, "t", [50_000, 1]),
        (20_000, "a" * 249, [11_182, 8_818]),
        (1, "t", [1]),
    ],
)
def test_a_request_is_no_larger_than_what_a_controller_reads(
    count: int, name: str, sizes: list[int]
) -> None:
    wanted = [Reassignment(name, n, (1, 2)) for n in range(count)]
    cut = list(_cut(wanted))
    assert [len(some) for some in cut] == sizes
    assert all(len(msgspec.json.encode(some)) < 4 * 1024 * 1024 for some in cut)
    assert [each for some in cut for each in some] == wanted


def test_a_request_id_goes_with_one_request(
    controller: tuple[Listener, Controller], tmp_path: Path
) -> None:
    listener, answers = controller
    arguments = ("start", "--file", write(tmp_path, 50_001), "--request-id", "A" * 21 + "A")
    said = run(listener, *arguments)
    assert (said.code, answers.asked) == (2, [])
    assert "--request-id goes with one request" in said.err


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("start",), "name partitions"),
        (("start", "t-0"), "orders-0=1,2,3"),
        (("start", "t=1"), "such as orders-0"),
        (("start", "t-0=1,x"), "give broker ids"),
        (("cancel",), "name partitions"),
        (("cancel", "t-0", "--all"), "name partitions"),
        (("cancel", "0"), "such as orders-0"),
        (("plan", "--off", "a"), "give broker ids"),
    ],
)
def test_what_is_not_sent(
    controller: tuple[Listener, Controller], arguments: tuple[str, ...], says: str
) -> None:
    listener, answers = controller
    said = run(listener, *arguments)
    assert (said.code, answers.asked) == (2, [])
    assert says in said.err


def test_a_file_that_is_no_plan_is_refused_with_its_name(
    controller: tuple[Listener, Controller], tmp_path: Path
) -> None:
    listener, answers = controller
    path = tmp_path / "plan.json"
    path.write_text('{"partitions": [{"topic": "t"}]}')
    said = run(listener, "start", "--file", str(path))
    assert (said.code, answers.asked) == (1, [])
    assert "plan.json" in said.err
    assert "logberg reassign plan -o json" in said.err


def test_a_refused_partition_is_named_and_the_exit_code_is_1(
    controller: tuple[Listener, Controller],
) -> None:
    listener, answers = controller
    answers.error = {
        "code": "INVALID_REPLICA_ASSIGNMENT",
        "message": "broker 9 is not registered",
        "whoseFault": "client",
        "retriable": False,
    }
    said = run(listener, "start", "t-0=9")
    assert said.code == 1
    assert "t-0: broker 9 is not registered [INVALID_REPLICA_ASSIGNMENT]" in said.err
