"""The bridge to a source that leads, and others who would change what it leads.

It begins a bridge, brings steps, gives it up and begins again, while faults strike the controllers.
Rules (I22):

- While the source leads, only a batch with a `BridgeRecord` changes quotas, ACLs or credentials.
  The log is judged for it.
- The revision never goes back as long as one bridge runs.
- A step that was acknowledged is in every image at or behind the answer's offset.
"""

import json
from base64 import b64encode
from collections import Counter
from typing import Any

from metadata.codec import encode_records
from metadata.image import MetadataImage
from metadata.records import (
    AccessControlEntryRecord,
    BridgeMode,
    BridgeRecord,
    ClientQuotaRecord,
    EntityData,
    Record,
    UserScramCredentialRecord,
)
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US

HOST = 907
SOURCE = "zookeeper://simulated/kafka"
_ACTS_PER_S = 4.0
_TRY_S = 2.0
_FOLLOWED = (AccessControlEntryRecord, ClientQuotaRecord, UserScramCredentialRecord)
_SILENT = (421, 429, 503, 507)
_EXPECTED = ("SOURCE_LEADS", "STALE_EXPECTED_OFFSET", "INVALID_REQUEST")


class Bridging:
    """Idle unless the shape asks for it."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._revision = -1
        """What the bridge believes that it has reached."""
        self._acknowledged: dict[int, int] = {}
        """By the offset of an answer: the revision that it acknowledged."""

    def start(self) -> None:
        """Let it begin."""
        cluster = self._cluster
        self._dice = cluster.world.random("bridging")
        self._host = SimulatedHost(cluster.world, cluster.network, HOST)
        self._process = self._host.boot()
        self._requests = self._host.requests(Caller("User:bridge", "token", "10.0.0.13"))
        self._plan()

    def _plan(self) -> None:
        delay = int(self._dice.expovariate(_ACTS_PER_S) * US)
        self._process.schedule(delay, self._act, "bridging")

    def _act(self) -> None:
        self._plan()
        if not self._cluster.busy:
            return
        drawn = self._dice.random()
        if drawn < 0.5 and not self._cluster.healed:
            self._step()
        elif (drawn < 0.55 or self._cluster.healed) and self._revision > 0:
            given_up = {"mode": "none", "source": SOURCE, "revision": self._revision}
            self._send("/v1/bridge/mode", given_up, "given up")
        else:
            operation = {"key": "producer_byte_rate", "value": float(self._dice.randint(1, 99))}
            entity = [{"entityType": "user", "entityName": "theirs"}]
            entry = {"entity": entity, "operations": [operation]}
            self._send("/v1/quotas", {"entries": [entry]}, "others' change")

    def _step(self) -> None:
        quota = ClientQuotaRecord(
            (EntityData("user", f"source-{self._dice.randrange(3)}"),),
            "producer_byte_rate",
            float(self._dice.randint(1, 99)),
            remove=False,
        )
        broker = {"brokerId": 500, "epoch": self._dice.randrange(9)}
        body = {
            "source": SOURCE,
            "sourceClusterId": "c",
            "fromRevision": self._revision,
            "revision": max(self._revision, 0) + self._dice.randint(1, 5),
            "records": b64encode(encode_records([quota])).decode(),
            # Its first step replaces nothing; so it leaves others' quotas alone.
            "complete": ["quotas"] if self._revision >= 0 else [],
            "brokers": [broker],
        }
        self._send("/v1/bridge/follow", body, "step")

    def _send(self, path: str, body: dict[str, Any], what: str) -> None:
        bits = self._dice.getrandbits(74)
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": uuid_text(uuid7(self._process.clock.wall_ms(), bits)),
        }
        request = Request("POST", path, headers=headers, body=json.dumps(body).encode())

        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 503
            if status in _SILENT:
                self.counts[f"{what}: unknown"] += 1
                return
            assert isinstance(answer, Reply)
            self._judge(what, status, json.loads(answer.body))

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    def _judge(self, what: str, status: int, reply: dict[str, Any]) -> None:
        if status == 200:
            self.counts[f"{what}: done"] += 1
            if what == "step" and not reply["conflictCount"]:
                self._revision = reply["revision"]
                self._acknowledged[reply["offset"]] = reply["revision"]
            elif what == "given up":
                self._revision = -1
            return
        code = reply["code"]
        self.counts[f"{what}: {code}"] += 1
        if what == "given up" and code == "INVALID_REQUEST":
            # It was given up already, and the answer was lost.
            self._revision = -1
        elif code == "STALE_EXPECTED_OFFSET":
            # An answer was lost: go on from where the cluster says that it is.
            self._revision = int(reply["details"]["revision"])
        elif code not in _EXPECTED and not code.startswith("REQUEST_"):
            self._cluster.world.fail(f"I22: refused with {reply}", None)

    def note(self, before: MetadataImage, records: list[Record], after: MetadataImage) -> None:
        """Judge a batch of the log by the images around it."""
        mode, state = before.bridge.mode, after.bridge.state
        bridged = any(isinstance(each, BridgeRecord) for each in records)
        followed = any(isinstance(each, _FOLLOWED) for each in records)
        if mode == BridgeMode.FOLLOWING and followed:
            self.counts["changes judged while the source leads"] += 1
            if not bridged:
                self._cluster.world.fail(f"I22: {records} while the source leads", None)
        was = before.bridge.state
        goes_on = mode == BridgeMode.FOLLOWING and state is not None and state.mode == mode
        if goes_on and was is not None and state is not None and state.revision < was.revision:
            self._cluster.world.fail(f"I22: {was.revision}, then {state.revision}", None)
        acknowledged = self._acknowledged.get(after.offset)
        if acknowledged is not None:
            self.counts["acknowledged steps in the log"] += 1
            if state is None or state.revision != acknowledged:
                self._cluster.world.fail(f"I22: {acknowledged} was acknowledged: {state}", None)
