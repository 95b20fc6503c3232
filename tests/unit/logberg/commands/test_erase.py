"""`logberg erase` says what it did, also if nobody can say whether the keys are destroyed."""

import json
import re
import signal
import threading
from collections.abc import Iterator
from typing import Any

import pytest

from audit.questions.erasures import SubjectValues
from logberg.commands import erase
from tests.unit.logberg.edge import Said, run_whole
from tests.unit.logberg.listener import Listener

ERASED = {
    "subject": "user:alice",
    "credentials": 1,
    "tokens": 2,
    "accessTokens": 3,
    "offset": 7,
    "epoch": 1,
}
REFUSED = {"code": "NOT_AUTHORIZED", "message": "you may not"}


class Cluster:
    """A voter and an observer, as far as the command asks them."""

    def __init__(self) -> None:
        self.voter, self.observer = Listener(), Listener()
        self.dry_run: tuple[str, Any] = ("200 OK", {**ERASED, "dryRun": True})
        self.erased: tuple[str, Any] | None = ("200 OK", ERASED)
        self.quorum_known = True
        self.states: dict[int, dict[str, Any]] = {n: self.state(n) for n in (1, 2)}
        self.on_state = lambda: None
        self.voter.answer = lambda method, path: self.answer(1, method, path)
        self.observer.answer = lambda method, path: self.answer(2, method, path)

    @staticmethod
    def state(node_id: int, **but: Any) -> dict[str, Any]:
        usual = {"offset": 7, "keysId": "00", "held": True, "usable": True}
        return {"nodeId": node_id, **usual, "erasures": 1, "destroyed": 1, **but}

    def answer(self, node_id: int, method: str, path: str) -> tuple[str, bytes] | None:
        if path == "/v1/erasures" and method == "POST":
            dry = b'"dryRun":true' in self.heard(node_id).replace(b" ", b"")
            said = self.dry_run if dry else self.erased
            return None if said is None else (said[0], json.dumps(said[1]).encode())
        if path == "/v1/erasures":
            self.on_state()
            return "200 OK", json.dumps(self.states[node_id]).encode()
        if path == "/v1/quorum" and self.quorum_known:
            return "200 OK", json.dumps(self.quorum()).encode()
        return "403 Forbidden", json.dumps(REFUSED).encode()

    def heard(self, node_id: int) -> bytes:
        return (self.voter if node_id == 1 else self.observer).head

    def quorum(self) -> dict[str, Any]:
        counts = (
            "leaderEpoch highWatermark commitIndex appliedIndex lastIndex durableIndex journalBytes"
        )
        members = [
            {"nodeId": 1, "directoryId": "a", "url": self.voter.url},
            {"nodeId": 2, "directoryId": "b", "url": self.observer.url, "isVoter": False},
        ]
        return {
            "clusterId": "c",
            "nodeId": 1,
            "directoryId": "a",
            "role": "leader",
            "leaderId": 1,
            "leaderUrl": self.voter.url,
            **dict.fromkeys(counts.split(), 0),
            "members": members,
        }

    def erase(self, *more: str, subject: str = "user:alice") -> Said:
        reason = ("--reason", "she asked for it", "--timeout", "1")
        return run_whole("erase", subject, "--controllers", self.voter.url, *reason, *more)


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    made = Cluster()
    yield made
    made.voter.close()
    made.observer.close()


def id_of_erasure(cluster: Cluster) -> list[str]:
    """Return the id of the newest change; the dry run before it has another."""
    heard = cluster.voter.heard.decode()
    return re.findall(r"x-logberg-request-id: (\S+)", heard, re.IGNORECASE)[-1:]


def test_it_ends_well_when_every_controller_has_destroyed_the_key(cluster: Cluster) -> None:
    said = cluster.erase("--yes")
    assert (said.code, said.err) == (0, "")
    assert "1 credentials and 2 delegation tokens" in said.out
    assert "nobody counted" in said.out
    assert "erased user:alice (offset 7)" in said.out


def test_a_person_is_erased_by_the_pseudonym_that_the_dry_run_tells(cluster: Cluster) -> None:
    by_pseudonym = {**ERASED, "subject": "user:p-aaaaaaaaaaaaa"}
    cluster.dry_run = ("200 OK", {**by_pseudonym, "dryRun": True})
    cluster.erased = ("200 OK", by_pseudonym)
    said = cluster.erase("--yes", subject="user:alice@example.com")
    assert (said.code, said.err) == (0, "")
    assert "stays in the log under the pseudonym" in said.out
    asked = re.findall(r'"subject": ?"([^"]+)"', cluster.voter.heard.decode())
    assert asked == ["user:alice@example.com", "user:p-aaaaaaaaaaaaa"]


@pytest.mark.parametrize(
    ("but", "why"),
    [
        ({"destroyed": 0}, "it is writing"),
        ({"destroyed": 0, "held": False}, "it does not have the keys yet"),
        ({"offset": 6}, "it is at offset 6"),
    ],
    ids=str,
)
def test_an_observer_that_has_not_destroyed_the_key_is_named(
    cluster: Cluster, but: dict[str, Any], why: str
) -> None:
    cluster.states[2] = cluster.state(2, **but)
    said = cluster.erase("--yes")
    assert said.code == 1
    assert "erased user:alice (offset 7)" in said.out
    assert f"controller 2 ({why})" in said.err
    assert "controller 1" not in said.err
    assert re.findall(r"--request-id ([\w-]+)", said.err) == id_of_erasure(cluster)


def test_an_erasure_is_told_even_if_nobody_says_who_the_controllers_are(cluster: Cluster) -> None:
    cluster.quorum_known = False
    said = cluster.erase("--yes")
    assert said.code == 1
    assert "erased user:alice (offset 7)" in said.out
    assert "the erasure is in the log" in said.err
    assert "you may not" in said.err
    assert re.findall(r"--request-id ([\w-]+)", said.err) == id_of_erasure(cluster)


def test_an_erasure_whose_answer_is_lost_can_be_repeated(cluster: Cluster) -> None:
    cluster.erased = None
    said = cluster.erase("--yes")
    assert said.code == 1
    assert "outcome unknown" in said.err
    [request_id] = re.findall(r"--request-id ([\w-]+)", said.err)
    assert id_of_erasure(cluster) == [request_id]

    cluster.erased = ("200 OK", ERASED)
    said = cluster.erase("--yes", "--request-id", request_id)
    assert said.code == 0
    assert id_of_erasure(cluster) == [request_id]


@pytest.mark.parametrize("output", ["table", "json"])
def test_an_interrupted_wait_tells_how_to_ask_again(cluster: Cluster, output: str) -> None:
    cluster.states[2] = cluster.state(2, destroyed=0)

    def interrupt() -> None:
        cluster.on_state = lambda: None
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)

    cluster.on_state = interrupt
    said = cluster.erase("--yes", "--timeout", "30", "-o", output)
    assert said.code == 1
    if output == "json":
        assert json.loads(said.out)["offset"] == 7
    else:
        assert "erased user:alice (offset 7)" in said.out
    assert "interrupted" in said.err
    assert re.findall(r"--request-id ([\w-]+)", said.err) == id_of_erasure(cluster)


@pytest.mark.parametrize(
    ("values", "said", "not_said"),
    [
        (SubjectValues(), "no secret of user:alice: check the name", "become unreadable"),
        (SubjectValues(own_key=4), "4 sealed values that become unreadable", "from before"),
        (SubjectValues(0, 2, 2, 1, 9), "4 values in 1 batches before offset 9", "check the name"),
        (SubjectValues(addresses=3), "3 sealed addresses that become unreadable", "check the name"),
        (
            SubjectValues(batches_in_clear=2, last_in_clear=9),
            "addresses in clear in 2 batches before offset 9",
            "check the name",
        ),
    ],
    ids=["none", "own key", "out of reach", "addresses", "addresses in clear"],
)
def test_what_the_log_has_is_told(
    cluster: Cluster,
    monkeypatch: pytest.MonkeyPatch,
    values: SubjectValues,
    said: str,
    not_said: str,
) -> None:
    monkeypatch.setattr(erase, "_values", lambda *_: values)
    planned = cluster.erase("--dry-run").out
    assert said in planned
    assert not_said not in planned


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        ((), "nobody can be asked here"),
        (("-o", "json"), "nobody can be asked here"),
        (("--yes", "--reason", ""), "say why with --reason"),
    ],
    ids=str,
)
def test_nothing_is_erased_without_a_yes_and_a_reason(
    cluster: Cluster, arguments: tuple[str, ...], why: str
) -> None:
    said = cluster.erase(*arguments)
    assert said.code == 1
    assert why in said.err
    assert cluster.voter.heard.count(b"POST /v1/erasures") == 1, "only the dry run"


def test_who_is_refused_erases_nothing(cluster: Cluster) -> None:
    cluster.dry_run = ("403 Forbidden", REFUSED)
    said = cluster.erase("--yes")
    assert (said.code, said.out) == (1, "")
    assert "you may not" in said.err
    assert cluster.voter.heard.count(b"POST /v1/erasures") == 1
