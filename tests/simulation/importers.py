"""An administrator who imports keys, in one request or in parts, and gives some imports up.

Leaders fail between the parts, and between the import and its answer. Rule: an import has one
request id through all its tries, and sends again what a leader says that it lacks.

What must hold (M5 of KIP-30's cases):

- an import shows all of its keys or none, in every committed image;
- one that was given up before its end shows none, for ever; one that was acknowledged shows all;
- the answer of one import is that of one execution, and no import differs from what is here;
- tokens of later grants are above the newest one that an import has named.
"""

import json
from base64 import b64encode
from collections import Counter
from hashlib import sha256
from random import Random
from typing import Any, Final, NamedTuple

from metadata.codec import encode_records
from metadata.image import MetadataImage
from metadata.records import KeyRecord
from metadata.uuids import uuid7, uuid_text
from runtime.http.requests import JSON, Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US

IMPORTER_HOST: Final = 950
_PAUSE_S = 0.4
_TRY_S = 1.5
_TRIES = 20
_AGAIN_S = 0.3


class SimulatedImport(NamedTuple):
    """One import: its keys, and its parts; no part: its records are in the import's request."""

    names: tuple[str, ...]
    records: bytes
    parts: tuple[bytes, ...]
    newest_token: int

    @property
    def digest(self) -> str:
        return sha256(b"".join(sha256(part).digest() for part in self.parts)).hexdigest()


class Importer:
    """One client, with one import at a time."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self._number = 0
        self._given_up: list[SimulatedImport] = []
        self._done: list[SimulatedImport] = []
        self._now: SimulatedImport | None = None
        """The import that has begun and whose end isn't known."""

    def start(self) -> None:
        """Let it begin."""
        cluster = self._cluster
        self._dice: Random = cluster.world.random("importer")
        host = SimulatedHost(cluster.world, cluster.network, IMPORTER_HOST)
        self._process = host.boot()
        self._requests = host.requests(Caller("User:admin", "token", "10.0.0.9"))
        self._soon()

    def check(self, image: MetadataImage, node_id: int) -> None:
        """Judge a committed image of a node."""
        keys = image.coordination.keys
        if self._now is not None:
            here = sum(name in keys for name in self._now.names)
            if here not in (0, len(self._now.names)):
                self._fail(f"{here} of {len(self._now.names)} keys are shown", node_id)
        for each in self._given_up[-3:]:
            if any(name in keys for name in each.names):
                self._fail("an import that was given up is shown", node_id)

    def judge(self, image: MetadataImage) -> None:
        """Judge the state at the end."""
        keys = image.coordination.keys
        for each in self._done:
            if not all(name in keys for name in each.names):
                self._fail("an import that was acknowledged isn't here", None)
            if image.coordination.token_base + image.offset <= each.newest_token:
                self._fail("a later grant could have a token of the source", None)
        for each in self._given_up:
            if any(name in keys for name in each.names):
                self._fail("an import that was given up is here", None)

    # -- one import ---------------------------------------------------------------------------

    def _soon(self) -> None:
        delay = int(self._dice.uniform(0, 2 * _PAUSE_S) * US)
        self._process.schedule(delay, self._begin, "importer")

    def _begin(self) -> None:
        if not self._cluster.busy:
            self._soon()
            return
        self._now = made = self._draw()
        gives_up = bool(made.parts) and self._dice.random() < 0.2
        wall = self._process.clock.wall_ms()
        request_id = uuid_text(uuid7(wall, self._dice.getrandbits(74)))
        self._go_on(made, list(range(len(made.parts))), request_id, _TRIES, gives_up=gives_up)

    def _draw(self) -> SimulatedImport:
        self._number += 1
        count = self._dice.randint(1, 40)
        records = [
            KeyRecord(f"imported/{self._number}/{n}", self._dice.randbytes(60), 0, 0, 1)
            for n in range(count)
        ]
        parts: list[bytes] = []
        if self._dice.random() < 0.7:
            each = self._dice.randint(1, count)
            cuts = [records[first : first + each] for first in range(0, count, each)]
            parts = [encode_records(cut) for cut in cuts[:60]]
            records = [record for cut in cuts[:60] for record in cut]
        return SimulatedImport(
            tuple(record.key for record in records),
            encode_records([] if parts else records),
            tuple(parts),
            self._number * 10_000,
        )

    def _go_on(
        self,
        made: SimulatedImport,
        missing: list[int],
        request_id: str,
        tries: int,
        *,
        gives_up: bool,
    ) -> None:
        """Send the next part that is missing, or else the import."""
        if not tries:
            # Nobody knows what came of it: it may still be written.
            self.counts["imports unknown"] += 1
            self._now = None
            self._soon()
            return
        if missing:
            path, body = "/v1/import/parts", self._part(made, missing[0])
        elif gives_up:
            self.counts["imports given up"] += 1
            self._given_up.append(made)
            self._now = None
            self._soon()
            return
        else:
            path, body = "/v1/import", self._whole(made)
        headers = {"content-type": JSON}
        if not missing:
            headers["x-logberg-request-id"] = request_id
        request = Request("POST", path, json.dumps(body).encode(), headers=headers)

        def answered(answer: Reply | Unreachable) -> None:
            said = json.loads(answer.body) if isinstance(answer, Reply) else {"code": "none"}
            if not isinstance(answer, Reply) or answer.status != 200:
                self._refused(made, missing, request_id, tries, said, gives_up=gives_up)
            elif missing:
                self.counts["parts kept"] += 1
                left = [n for n in missing if n not in said["kept"]]
                self._later(made, left, request_id, tries, gives_up=gives_up)
            else:
                self._acknowledged(made, said)

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    def _refused(
        self,
        made: SimulatedImport,
        missing: list[int],
        request_id: str,
        tries: int,
        said: dict[str, Any],
        *,
        gives_up: bool,
    ) -> None:
        if said["code"] == "IMPORT_INCOMPLETE":
            self.counts["imports whose parts were lost"] += 1
            missing = [int(number) for number in said["details"]["missing"].split(",")]
        elif said["code"] in ("INVALID_REQUEST", "MALFORMED_BODY", "BODY_TOO_LARGE"):
            self._fail(f"a sound import was told {said}", None)
        elif said["code"] in ("REQUEST_EXPIRED", "REQUEST_FROM_FUTURE"):
            tries = 1
        self._later(made, missing, request_id, tries - 1, gives_up=gives_up)

    def _later(
        self,
        made: SimulatedImport,
        missing: list[int],
        request_id: str,
        tries: int,
        *,
        gives_up: bool,
    ) -> None:
        """Go on after a moment, in which the leader may change."""
        self._process.schedule(
            int(self._dice.uniform(0, 2 * _AGAIN_S) * US),
            lambda: self._go_on(made, missing, request_id, tries, gives_up=gives_up),
            "importer",
        )

    def _acknowledged(self, made: SimulatedImport, said: dict[str, Any]) -> None:
        if (said["written"], said["conflictCount"]) != (len(made.names), 0):
            self._fail(f"an import of {len(made.names)} keys was told {said}", None)
        self.counts["imports in parts" if made.parts else "imports"] += 1
        self._done.append(made)
        self._now = None
        self._soon()

    def _part(self, made: SimulatedImport, number: int) -> dict[str, Any]:
        records = b64encode(made.parts[number]).decode()
        return {"digest": made.digest, "number": number, "records": records}

    def _whole(self, made: SimulatedImport) -> dict[str, Any]:
        body: dict[str, Any] = {
            "records": b64encode(made.records).decode(),
            "source": "etcd+http://a:2379",
            "revision": made.newest_token,
            "tokensAbove": made.newest_token,
        }
        if made.parts:
            body |= {"parts": len(made.parts), "digest": made.digest}
        return body

    def _fail(self, why: str, node_id: int | None) -> None:
        self._cluster.world.fail(f"M5: {why}", node_id)
