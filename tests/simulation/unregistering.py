"""An administrator who forgets brokers, with and without `force`.

A broker whose registration is forgotten ends, as its agent is told, and its next process registers
anew. Rules (I18):

- What was acknowledged holds: no image at or behind the answer's offset has the old registration.
- Without `force` no broker is forgotten while it is online, nor while it is the last in-sync
  replica of a partition. The log is judged for it at the end, by rules of its own.
- Nothing is refused but for these reasons.
"""

import json
from collections import Counter
from typing import Any

from metadata.image import MetadataImage
from metadata.records import Record, UnregisterBrokerRecord
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US

HOST = 904
OPERATION = "UnregisterBroker"
FORCED = "by force"
"""The reason in the envelope: it tells the judge what was asked for."""
_ACTS_PER_S = 0.8
_TRY_S = 2.0
_TRIES = 8
_SILENT = (421, 429, 503, 507)
_EXPECTED = ("BROKER_ID_NOT_REGISTERED", "POLICY_VIOLATION")


class Unregistering:
    """Idle unless the shape asks for it."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._forgotten: dict[int, int] = {}
        """By broker: the offset of the newest answer that it is forgotten."""

    def start(self) -> None:
        """Let it begin."""
        cluster = self._cluster
        self._dice = cluster.world.random("unregistering")
        self._host = SimulatedHost(cluster.world, cluster.network, HOST)
        self._process = self._host.boot()
        self._requests = self._host.requests(Caller("User:forgetting", "token", "10.0.0.12"))
        self._plan()

    def _plan(self) -> None:
        delay = int(self._dice.expovariate(_ACTS_PER_S) * US)
        self._process.schedule(delay, self._act, "unregistering")

    def _act(self) -> None:
        self._plan()
        if self._cluster.healed or not self._cluster.busy:
            return
        force = self._dice.random() < 0.4
        broker_id = self._dice.choice(self._fenced() or list(self._cluster.broker_hosts))
        if force or self._dice.random() < 0.2:
            broker_id = self._dice.choice(list(self._cluster.broker_hosts))
        bits = self._dice.getrandbits(74)
        headers = {
            "x-logberg-request-id": uuid_text(uuid7(self._process.clock.wall_ms(), bits)),
            "x-logberg-reason": FORCED if force else "gone",
        }
        query = {"force": "true"} if force else {}
        request = Request("DELETE", f"/v1/brokers/{broker_id}", query=query, headers=headers)
        self._try(request, broker_id, force, 1)

    def _fenced(self) -> list[int]:
        """Return the brokers that may be forgotten without force, if nothing is lost with them."""
        leader = self._cluster.leader()
        if leader is None:
            return []
        brokers = self._cluster.controllers[leader].image.cluster.brokers
        return [broker_id for broker_id, broker in brokers.items() if broker.fenced]

    def _try(self, request: Request, broker_id: int, force: bool, tries: int) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 503
            if status in _SILENT:
                if tries < _TRIES:
                    again = int(self._dice.uniform(0.05, 0.5) * US)
                    self._process.schedule(
                        again, lambda: self._try(request, broker_id, force, tries + 1), "forget"
                    )
                return
            assert isinstance(answer, Reply)
            reply = json.loads(answer.body)
            if status == 200:
                self._done(broker_id, force, reply["offset"])
                return
            code = reply["code"]
            self.counts[f"not forgotten: {code}"] += 1
            expected = code in _EXPECTED or code.startswith("REQUEST_")
            if not expected or (force and code == "POLICY_VIOLATION"):
                self._cluster.world.fail(f"I18: refused with {reply}", None)

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    def _done(self, broker_id: int, force: bool, offset: int) -> None:
        self.counts["forgotten by force" if force else "forgotten"] += 1
        self._forgotten[broker_id] = max(offset, self._forgotten.get(broker_id, 0))
        # Its agent ends when it is told.
        for delay_s in (1.0, 4.0, 8.0):
            self._cluster.later(delay_s, lambda: self._cluster.broker_faults.bring_back(broker_id))

    def check(self, image: MetadataImage, node_id: int | None) -> None:
        """Check an image: an acknowledged end of a registration is the end of it."""
        for broker_id, offset in self._forgotten.items():
            broker = image.cluster.brokers.get(broker_id)
            if broker is not None and image.offset >= offset > broker.broker_epoch:
                self._cluster.world.fail(
                    f"I18: broker {broker_id} was forgotten below offset {offset}, and has its "
                    f"registration of {broker.broker_epoch} at {image.offset}",
                    node_id,
                )

    def note(self, before: MetadataImage, reason: str, records: list[Record]) -> None:
        """Judge a batch of the log by the image before it."""
        for record in records:
            if not isinstance(record, UnregisterBrokerRecord):
                continue
            self.counts["unregistrations judged"] += 1
            why = _lost(before, record.broker_id)
            if why and reason != FORCED:
                self._cluster.world.fail(
                    f"I18: broker {record.broker_id} was forgotten without force: {why}", None
                )
            self.counts["forced against a rule"] += bool(why)


def _lost(image: MetadataImage, broker_id: int) -> str:
    """Return why forgetting a broker needs force; empty: it doesn't."""
    if not image.cluster.brokers[broker_id].fenced:
        return "it was online"
    for key, partition in image.topics.partitions.items():
        safe = {*partition.isr, *partition.elr}
        if broker_id in safe and len(safe) == 1:
            return f"it was the last in-sync replica of {key}"
    return ""
