"""Runs the cases of the tables: by the managers and replay alone, and over HTTP on a controller.

A case is requests: those of `given` must succeed, the last one must be answered as `expect` says,
and must write records of the classes in `records`. A step is [method and path, body, more], where
`more` may say `as` (the principal), `query` and `keep` (names for fields of the answer, which
later steps write as `${name}`); or ["wait", seconds]; or ["broker", id], which registers a broker
and keeps its epoch as `${epoch}`; or ["level", n], which finalises metadata.version n.
"""

import json
import tomllib
from base64 import b64encode
from pathlib import Path
from random import Random
from types import SimpleNamespace
from typing import Any

import msgspec

from controller.config import ControllerConfig
from controller.http.clients.answers import CHANGES, READS, READS_IN_STEPS
from controller.http.clients.asked import Asked, ReadContext
from controller.http.node_view import View
from controller.http.pages import Pages
from controller.http.routes import find_route
from controller.leader.changes import provenance_of
from controller.leader.identity import IdentityCheck
from controller.managers.clients.managers import ClientManagers
from controller.managers.pseudonym_covering import covering_of
from metadata.errors import LogbergError
from metadata.features import METADATA_VERSION
from metadata.image import EMPTY, MetadataDelta
from metadata.messages import error_reply
from metadata.messages.parts import LongMessage
from metadata.records import FeatureLevelRecord, RegisterBrokerRecord
from metadata.sealing import ClusterKey
from metadata.steps import finished
from runtime.http.requests import Caller, Request
from tests.unit.controller.cluster import Broker, Cluster

KEY = ClusterKey(bytes(range(32)))
FOLDER = Path(__file__).parent / "cases"


def cases(name: str) -> list[dict[str, Any]]:
    """Read a table."""
    return tomllib.loads((FOLDER / f"{name}.toml").read_text())["case"]


def settings_of(case: dict[str, Any]) -> dict[str, Any]:
    """Return the settings that a case needs, as ControllerConfig has them."""
    settings = dict(case.get("settings", {}))
    if settings.pop("cluster_key", True):
        settings["cluster_key"] = KEY
    if "super_users" in settings:
        settings["super_users"] = frozenset(settings["super_users"])
    return settings


class ByManagers:
    """Decides with the managers, and replays what they decide; no controller is there."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.image = EMPTY
        self.now_ms = 1_700_000_000_000
        self.config = ControllerConfig(cluster_id="c", node_id=1, **settings_of(case))
        self.leader: Any = SimpleNamespace(
            clients=ClientManagers(
                self.config, Random(1), lambda: self.now_ms, covering_of(self.config)
            ),
            changes=SimpleNamespace(
                asks_for=lambda request: provenance_of(request, "", {}).principal
            ),
            identity=IdentityCheck("c", require_authentication=True),
            node_id=1,
            voters=lambda: frozenset((1,)),
        )
        self.written: list[str] = []

    def wait(self, seconds: float) -> None:
        self.now_ms += int(seconds * 1000)
        self._replay(self.leader.clients.tokens.sweep(self.image).records)

    def broker(self, broker_id: int) -> int:
        epoch = self.image.offset
        self._replay([RegisterBrokerRecord(broker_id, b"i" * 16, epoch, (), (), None)])
        return epoch

    def level(self, level: int) -> None:
        self._replay([FeatureLevelRecord(METADATA_VERSION, level)])

    def ask(self, request: Request) -> tuple[int, Any]:
        self.written = []
        found = find_route(request.method, request.path)
        assert found.route is not None, request.path
        try:
            read = View(self.image, None, 0), Asked(request, found.arguments)
            context = ReadContext(self.config, _pages())
            if found.route.name in READS:
                answer = READS[found.route.name](*read, context)
            elif found.route.name in READS_IN_STEPS:
                answer = finished(READS_IN_STEPS[found.route.name](*read, context))
            else:
                answer = self._change(found, request)
        except LogbergError as error:
            return error.code.status, msgspec.to_builtins(error_reply(error))
        return 200, _json(answer)

    def _change(self, found: Any, request: Request) -> Any:
        message = None
        if found.route.request is not None:
            message = msgspec.json.decode(request.body, type=found.route.request)
        change = CHANGES[found.route.name](self.leader, Asked(request, found.arguments, message))
        assert b"c2VjcmV0" not in change.meaning(), "a secret enters the digest in clear"
        decided = change.decide(self.image)
        if not isinstance(decided, tuple):
            while True:
                try:
                    next(decided)
                except StopIteration as end:
                    decided = end.value
                    break
        if not change.dry_run:
            self._replay(decided.records)
        self.written = [type(record).__name__ for record in decided.records]
        return decided.reply if change.dry_run else change.complete(decided.reply)

    def _replay(self, records: Any) -> None:
        delta = MetadataDelta(self.image)
        end = self.image.offset + len(records)
        delta.replay_all(records, self.image.offset)
        delta.finish_batch(end, 1, self.now_ms)
        self.image = delta.apply()


class OverHttp:
    """Asks a controller."""

    def __init__(self, case: dict[str, Any]) -> None:
        self.cluster = Cluster(nodes=1, require_authentication=True, **settings_of(case))
        self.written: list[str] = []

    def wait(self, seconds: float) -> None:
        self.cluster.run(seconds)

    def broker(self, broker_id: int) -> int:
        caller = Caller(f"Broker:{broker_id}", "certificate", "10.0.0.1")
        broker = Broker(self.cluster, broker_id)
        replies = broker.send("fenced", caller=caller)
        self.cluster.run_until(lambda: bool(replies))
        return broker.take(replies[0]).broker_epoch

    def level(self, level: int) -> None:
        self.cluster.write(FeatureLevelRecord(METADATA_VERSION, level))

    def ask(self, request: Request) -> tuple[int, Any]:
        end = self.cluster.image.offset
        status, reply = self.cluster.ask(
            request.method,
            request.path,
            request.body,
            query=request.query,
            caller=request.caller,
            headers={"content-type": "application/json"},
        )
        names = [type(record).__name__ for record in self.cluster.records()]
        self.written = [name for name in names[end:] if name != "RequestOutcomeRecord"]
        return status, reply


def run(runner: Any, case: dict[str, Any]) -> None:
    """Run a case, and compare."""
    kept: dict[str, Any] = {}
    for step in case.get("given", ()):
        if step[0] == "wait":
            runner.wait(step[1])
        elif step[0] == "level":
            runner.level(step[1])
        elif step[0] == "broker":
            kept["epoch"] = runner.broker(step[1])
        else:
            status, reply = _step(runner, step, kept)
            assert status == 200, (step, reply)
            _keep(step, reply, kept)
    status, reply = _step(runner, case["ask"], kept)
    expect = dict(case["expect"])
    assert status == expect.pop("status", 200), reply
    assert_part(filled(expect, kept), reply, "answer")
    if "records" in case:
        assert runner.written == case["records"]


def assert_part(wanted: Any, found: Any, where: str) -> None:
    """Check that an answer has what is wanted; it may have more."""
    if isinstance(wanted, dict):
        for name, value in wanted.items():
            assert name in found, f"{where} has no {name}: {found}"
            assert_part(value, found[name], f"{where}.{name}")
    elif isinstance(wanted, list):
        assert len(found) == len(wanted), f"{where}: {found}"
        for number, value in enumerate(wanted):
            assert_part(value, found[number], f"{where}[{number}]")
    elif wanted == "<none>":
        assert found is None, f"{where}: {found}"
    else:
        assert found == wanted, f"{where}: {found!r}, not {wanted!r}"


def _step(runner: Any, step: list[Any], kept: dict[str, Any]) -> tuple[int, Any]:
    method, path = filled(step[0], kept).split()
    more = step[2] if len(step) > 2 else {}
    body = filled(step[1], kept) if len(step) > 1 else {}
    principal = more.get("as", "User:alice")
    how = "none" if principal == "User:ANONYMOUS" else "token"
    return runner.ask(
        Request(
            method,
            path,
            json.dumps(body).encode() if body else b"",
            filled(more.get("query", {}), kept),
            {"content-type": "application/json"},
            Caller(principal, how, more.get("host", "10.0.0.7")),
        )
    )


def _keep(step: list[Any], reply: Any, kept: dict[str, Any]) -> None:
    for name, path in (step[2] if len(step) > 2 else {}).get("keep", {}).items():
        value = reply
        for part in path.split("."):
            value = value[int(part)] if isinstance(value, list) else value[part]
        kept[name] = value


def filled(value: Any, kept: dict[str, Any]) -> Any:
    """Put in what was kept, n bytes for `<bytes n>` and `<salt n>`, and null for `<null>`."""
    if isinstance(value, dict):
        return {name: filled(each, kept) for name, each in value.items()}
    if isinstance(value, list):
        return [filled(each, kept) for each in value]
    if not isinstance(value, str):
        return value
    if value == "<null>":
        return None
    if value.startswith("<salt "):
        return b64encode((b"salt" * 20)[: int(value[6:-1])]).decode()
    if value.startswith("<bytes "):
        return b64encode((b"secret" * 20)[: int(value[7:-1])]).decode()
    if value.startswith("${") and value.endswith("}") and value.count("${") == 1:
        return kept[value[2:-1]]
    for name, each in kept.items():
        value = value.replace("${" + name + "}", str(each))
    return value


def _json(answer: Any) -> Any:
    if isinstance(answer, LongMessage):
        entries = list(answer.entries)
        reply = json.loads(msgspec.json.encode(answer.head))
        return {**reply, answer.name: json.loads(msgspec.json.encode(entries))}
    return json.loads(msgspec.json.encode(answer))


def _pages() -> Pages:
    timer = SimpleNamespace(cancel=lambda: None)
    clock: Any = SimpleNamespace(call_later=lambda *_: timer)
    return Pages(clock, lambda _image: None)


__all__ = ["KEY", "ByManagers", "OverHttp", "cases", "filled", "run", "settings_of"]
