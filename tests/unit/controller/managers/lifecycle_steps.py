"""Runs the cases of `cases/lifecycle.toml` and `cases/features.toml` on controllers, over HTTP.

A case is a list of steps, in words; `step -> answer` expects an answer. A process is named by its
broker id and perhaps a letter: `1` and `1b` are two processes with broker id 1. `name=value` words
are options. Each step is a method of `LifecycleCase`. `log` answers with the records since the last
`log`, in words.
"""

import json
from typing import Any

import msgspec

from metadata.features import BASE, ELR_VERSION, METADATA_VERSION
from metadata.messages import SupportedFeature, WantedState
from metadata.messages.wire import JSON, decode_fetch_reply
from metadata.records import (
    BrokerRegistrationChangeRecord,
    FeatureLevelRecord,
    NoOpRecord,
    PartitionChangeRecord,
    RegisterBrokerRecord,
    RegisterControllerRecord,
    RequestOutcomeRecord,
    TopicRecord,
    UnregisterBrokerRecord,
)
from metadata.uuids import uuid_text
from runtime.http.requests import ANONYMOUS, Caller, Request
from tests.unit.controller.cluster import CLUSTER_ID, DECLARED, Broker, Cluster
from tests.unit.controller.managers.case_steps import directory
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    fill,
    forget_journal,
    wipe,
)

_FEATURES = {"metadata": METADATA_VERSION, "elr": ELR_VERSION, "logberg": "logberg.version"}


class LifecycleCase:
    """Controllers, broker processes, and what was shown of the log."""

    def __init__(self, case: dict[str, Any]) -> None:
        config = {"min_insync_replicas": 2, **SMALL, **case.get("config", {})}
        if case.get("low"):
            config["initial_features"] = BASE
        self.cluster: Any = Cluster(nodes=case.get("controllers", 1), **config)
        self.processes: dict[str, Broker] = {}
        self.held: list[Any] = []
        self.shown = self.cluster.image.offset

    def run(self, steps: list[str]) -> None:
        for step in steps:
            words, expects, wanted = step.partition(" ->")
            name, *rest = words.split()
            arguments = [word for word in rest if "=" not in word]
            options = dict(word.split("=", 1) for word in rest if "=" in word)
            said = getattr(self, name)(*arguments, **options)
            if expects:
                assert said == wanted.strip(), f"{words}: {said}"

    # -- broker processes --------------------------------------------------------------------

    def online(self, *names: str, **options: str) -> None:
        for name in names:
            assert self.register(name, **options) == "fenced, new epoch"
            self.processes[name].bring_online()

    def register(self, name: str, **options: str) -> str:
        """Start a process, which registers; `same=1`: it is the process 1 itself, once more."""
        same = self.processes.get(options.get("same", ""))
        dirs = [directory(n) for n in options.get("dirs", "").split(",") if n]
        broker = Broker(
            self.cluster,
            _broker_id(name),
            rack=options.get("rack"),
            incarnation=same.incarnation if same else None,
            log_dirs=dirs,
            features=_features(options.get("features")),
        )
        before = self.cluster.image.cluster.brokers.get(broker.broker_id)
        reply = self._fetch(broker, WantedState.FENCED, options)
        if reply.error is not None:
            return str(reply.error.code)
        broker.take(reply)
        self.processes[name] = broker
        kept = before is not None and before.broker_epoch == broker.epoch
        return f"{reply.state}, {'same' if kept else 'new'} epoch"

    def beat(self, name: str, wanted: str, **options: str) -> str:
        """Send one heartbeat and apply what it brings; `applied=-1`: one less than its epoch."""
        broker = self.processes.get(name) or Broker(self.cluster, _broker_id(name))
        reply = self._fetch(broker, WantedState(wanted), options)
        busy = ", others wait" if "busy" in options and not self._decided() else ""
        self.cluster.run(0.1)
        if reply.error is not None:
            return str(reply.error.code)
        broker.take(reply, apply="applied" not in options)
        caught_up = "" if reply.caught_up else ", behind"
        return f"{reply.state}{caught_up}{', may stop' if reply.may_stop else ''}{busy}"

    def _fetch(self, broker: Broker, wanted: WantedState, options: dict[str, str]) -> Any:
        changes: dict[str, Any] = {}
        if "epoch" in options:
            changes = {"broker_epoch": broker.epoch + int(options["epoch"]), "registration": None}
        if "applied" in options:
            changes["applied_offset"] = broker.epoch + 1 + int(options["applied"])
        if "cluster" in options:
            changes["cluster_id"] = options["cluster"]
        if "offline" in options:
            failed = options["offline"].split(",")
            changes["offline_log_dirs"] = tuple(uuid_text(directory(n)) for n in failed)
        caller = Caller(options["by"], "certificate", "10.0.0.9") if "by" in options else ANONYMOUS
        node = int(options.get("node", self.cluster.shared.leader))
        if "more" in options:
            return self._with_field(broker.request(wanted, **changes), options["more"], node)
        replies = broker.send(wanted, node=node, caller=caller, **changes)
        self.cluster.run_until(lambda: bool(replies))
        return replies[0]

    def _with_field(self, request: Any, field: str, node: int) -> Any:
        """Send a registration that has a field more than ours."""
        body = json.loads(msgspec.json.encode(request))
        body["registration"][field] = True
        asked = Request(
            "POST", "/v1/metadata/fetch", json.dumps(body).encode(), {}, {"content-type": JSON}
        )
        replies: list[Any] = []
        self.cluster.processes[node].run(
            lambda: self.cluster.controllers[node].handle(asked, replies.append)
        )
        self.cluster.run_until(lambda: bool(replies))
        return decode_fetch_reply(replies[0].status, replies[0].body, JSON)

    def silence(self, seconds: str, alive: str = "", stopping: str = "") -> None:
        """Time passes. Only these processes send heartbeats."""
        until = self.cluster.world.now + float(seconds)
        while self.cluster.world.now < until:
            for names, wanted in ((alive, "online"), (stopping, "stopping")):
                for name in filter(None, names.split(",")):
                    self.processes[name].fetch(WantedState(wanted))
            self.cluster.run(min(1.0, max(until - self.cluster.world.now, 0.001)))

    def unregister(self, broker_id: str, *force: str) -> str:
        query = {"force": "true"} if force else {}
        status, reply = self.cluster.ask("DELETE", f"/v1/brokers/{broker_id}", query=query)
        return "done" if status == 200 else str(reply["code"])

    # -- controllers, topics, levels ---------------------------------------------------------

    def lead(self, node: str) -> None:
        self.cluster.lead(int(node))

    def cut(self, node: str) -> None:
        self.cluster.shared.cut(int(node))

    def busy(self) -> None:
        """One decision keeps all others waiting, for some time."""
        self.cluster.hold_the_turn(10_000)

    def _decided(self) -> bool:
        return any(isinstance(r, NoOpRecord) for r in self.cluster.records(self.shown))

    def topic(self, name: str, *rows: str) -> None:
        self.cluster.assign(name, *[[int(b) for b in row.split(",")] for row in rows])

    def write(self, name: str, **fields: str) -> None:
        """Write a change of a partition as it stands, whatever the rules say."""
        values: dict[str, Any] = {
            field: int(text) if field == "leader" else tuple(map(int, text.split(",")))
            for field, text in fields.items()
        }
        topic, _, number = name.rpartition("-")
        topic_id = self.cluster.image.topics.named(topic).topic_id
        self.cluster.write(PartitionChangeRecord(int(number), topic_id, **values))
        self.log()

    def levels(self, **levels: str) -> None:
        """Finalise levels, whoever supports them."""
        named = {_FEATURES.get(name, name): int(level) for name, level in levels.items()}
        self.cluster.write(*(FeatureLevelRecord(*pair) for pair in sorted(named.items())))
        self.log()

    def feature(self, kind: str, *flags: str, **levels: str) -> str:
        """Ask to raise or lower levels: `upgrade`, `safe_downgrade` or `unsafe_downgrade`."""
        updates = [
            {"feature": _FEATURES.get(n, n), "maxVersionLevel": int(v), "upgradeType": kind}
            for n, v in levels.items()
        ] * (2 if "twice" in flags else 1)
        body = {"updates": updates, "dryRun": "dry" in flags}
        status, reply = self.cluster.ask("POST", "/v1/features", body)
        if status != 200:
            return str(reply["code"])
        return "; ".join(
            f"{f['name']} {f['levelBefore']} to {f['level']}" for f in reply["features"]
        )

    def controller(self, node: str, highest: str) -> None:
        """A controller's registration says that it supports metadata.version up to a level."""
        known = self.cluster.image.cluster.controllers[int(node)]
        features = tuple(
            msgspec.structs.replace(f, max_supported_version=int(highest))
            if f.name == METADATA_VERSION
            else f
            for f in known.features
        )
        self.cluster.write(msgspec.structs.replace(known, features=features))
        self.log()

    # -- what is seen ------------------------------------------------------------------------

    def log(self) -> str:
        """Return the records since the last look, but for outcomes of requests."""
        self.cluster.run(0.1)
        since, self.shown = self.shown, self.cluster.image.offset
        said = [self._in_words(record) for record in self.cluster.records(since)]
        return "; ".join(filter(None, said))

    def batches(self) -> str:
        """Return how many batches were written since the last `log`."""
        new = [b for b in self.cluster.batches() if b.header.base_offset >= self.shown]
        return str(len(new))

    def partition(self, name: str) -> str:
        topic, _, number = name.rpartition("-")
        p = self.cluster.partition(topic, int(number))
        elr = f" elr {_ids(p.elr)}" if p.elr else ""
        return f"leader {p.leader} isr {_ids(p.isr)}{elr}"

    def broker(self, broker_id: str) -> str:
        broker = self.cluster.image.cluster.brokers.get(int(broker_id))
        if broker is None:
            return "unknown"
        state = "fenced" if broker.fenced else "online"
        return f"{state}, leaving" if broker.in_controlled_shutdown else state

    def _in_words(self, record: Any) -> str:
        match record:
            case RegisterBrokerRecord():
                return f"register {record.broker_id}{' fenced' if record.fenced else ''}"
            case UnregisterBrokerRecord():
                return f"unregister {record.broker_id}"
            case BrokerRegistrationChangeRecord():
                flags = {1: "fence", -1: "unfence", 0: "leaving"}[record.fenced]
                return f"{flags} {record.broker_id}"
            case PartitionChangeRecord():
                name = self.cluster.image.topics.by_id[record.topic_id].name
                leader = f" leader {record.leader}" if record.leader != -2 else ""
                isr = "" if record.isr is None else f" isr {_ids(record.isr)}"
                elr = record.eligible_leader_replicas
                eligible = "" if elr is None else f" elr {_ids(elr)}"
                return f"change {name}-{record.partition_id}{leader}{isr}{eligible}"
            case FeatureLevelRecord():
                return f"{record.name} {record.feature_level}"
            case RequestOutcomeRecord() | RegisterControllerRecord() | TopicRecord():
                return ""
            case _:
                return type(record).__name__

    # -- fetches (section 8) -----------------------------------------------------------------

    def fill(self, topics: str, start: str = "0") -> None:
        fill(self.cluster, int(topics), start=int(start))

    def snapshot(self, node: str = "1") -> None:
        """Create and delete a topic 60 times, so that a snapshot is smaller; then write one."""
        for _ in range(60):
            self.cluster.create_topic("again", factor=1)
            self.cluster.ask("DELETE", "/v1/topics/again")
        self.log()
        checkpoint(self.cluster, int(node))

    def young(self, node: str) -> None:
        """A controller loses its disk, loads a snapshot, and leads before it has the old log."""
        number = int(node)
        forget_journal(self.cluster)
        self.cluster.kill(number)
        wipe(self.cluster, number)
        self.cluster.start(number)
        ready = self.cluster.controllers[number]
        self.cluster.run_until(
            lambda: ready.ledger is not None and ready.ledger.log_start > 0 and ready.image.offset
        )
        self.cluster.lead(number)
        assert self.cluster.leader.ledger.log_start > 0

    def fetch(self, name: str, **options: str) -> str:
        """Fetch without applying: `at=end+10`, `at=start`, `epoch=2`, `wait=1500`, `seen=9`."""
        broker = self.processes[name]
        ledger = self.cluster.leader.ledger
        places = {"end": ledger.log_end, "start": ledger.log_start, "zero": 0}
        changes: dict[str, Any] = {}
        if "at" in options:
            place, _, more = options["at"].replace("-", "+-").partition("+")
            changes["fetched_offset"] = places[place] + int(more or 0)
            changes["fetched_epoch"] = self.cluster.shared.epoch
        if "epoch" in options:
            changes["fetched_epoch"] = int(options["epoch"])
        changes["applied_offset"] = min(broker.applied, changes.get("fetched_offset", 2**62))
        changes["cluster_id"] = options.get("cluster", CLUSTER_ID)
        node = int(options.get("node", self.cluster.shared.leader))
        at = self.cluster.world.now
        self.held = broker.send(node=node, max_wait_ms=int(options.get("wait", 0)), **changes)
        if "hold" in options:
            return ""
        self.cluster.run_until(lambda: bool(self.held))
        waited = self.cluster.world.now - at >= 0.4
        return f"{self.answer()}{', waited' if waited else ''}"

    def answer(self) -> str:
        """Return the answer to the last fetch, in words."""
        self.cluster.run_until(lambda: bool(self.held))
        reply = self.held[0]
        if reply.error is not None:
            return str(reply.error.code)
        if reply.diverging is not None:
            end = self.cluster.leader.ledger.log_end
            place = "the end" if reply.diverging.end_offset == end else "before"
            return f"diverges from epoch {reply.diverging.epoch} at {place}"
        if reply.snapshot is not None:
            return "a snapshot"
        behind = reply.high_watermark - self.processes["1"].offset
        return "records" if reply.batches else f"nothing, {behind} behind"

    def piece(self, place: str) -> str:
        """Load the first byte of a snapshot, of one that is unknown, or beyond its end."""
        self.cluster.run_until(lambda: bool(self.held))
        known = self.held[0].snapshot
        path = "00000000000000000007-0000000001" if place == "unknown" else known.id
        begin = known.size + 1 if place == "beyond" else 0
        (reply,) = self.cluster.send(
            "GET", f"/v1/snapshots/{path}", headers={"range": f"bytes={begin}-{begin}"}
        )
        return str(reply.status) if reply.status < 400 else str(json.loads(reply.body)["code"])


def _broker_id(name: str) -> int:
    return int(name.rstrip("bcd"))


def _ids(ids: Any) -> str:
    return ",".join(map(str, ids)) or "none"


def _features(text: str | None) -> tuple[SupportedFeature, ...]:
    """Read `metadata:21:22`; `none` declares nothing; without text all that this build has."""
    if text is None:
        return DECLARED
    parts = [part.split(":") for part in text.split(",") if part != "none"]
    return tuple(
        SupportedFeature(
            name=_FEATURES.get(n, n), min_supported_version=int(low), max_supported_version=int(h)
        )
        for n, low, h in parts
    )
