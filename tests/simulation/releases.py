"""A log that release 0.1 began: nodes are upgraded one by one and levels change, under faults.

Rule: a node of 0.1 is this build without its registration and its levels: it announces nothing,
begins no levels, and its agent supports only the lowest. A node that was upgraded has them from its
next start on, and never goes back. The clients that change levels trust only answers. The judge
reads the log of each controller from its first record.
"""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any

import controller.leader.activation
from broker_agent.config import FeatureRange
from controller.leader.first_levels import FirstLevels
from controller.managers.features import objections
from metadata.codec import decode_records
from metadata.features import BASE, ELR_VERSION, LOGBERG_VERSION, METADATA_VERSION
from metadata.image import EMPTY, MetadataDelta, MetadataImage
from metadata.record_levels import missing_level, needs_above
from metadata.records import FeatureLevelRecord, Record, RegisterControllerRecord
from runtime.http.requests import Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US
from tests.simulation.patches import Patch

RELEASES_HOST = 60
ASKS_PER_S = 2.0
OLD_AGENT = (
    *(FeatureRange(name, level, level) for name, level in sorted(BASE.items())),
    FeatureRange(ELR_VERSION, 0, 0),
)
"""What counts for an agent that declares nothing."""
LEVELS = (
    (METADATA_VERSION, (21, 22, 23, 25, 30, 33)),
    (LOGBERG_VERSION, (1, 2, 3)),
    (ELR_VERSION, (0, 1)),
)
REFUSALS = ("INVALID_UPDATE_VERSION", "FEATURE_UPDATE_FAILED")


def old_release() -> Iterator[Patch]:
    """Yield what makes the first leader one of 0.1."""
    yield controller.leader.activation, "level_records", lambda *_: ()
    yield FirstLevels, "when_known", lambda _self, then: then({})


class Releases:
    """Who upgrades the cluster, and asks for levels."""

    def __init__(self, cluster: Any) -> None:
        self.cluster = cluster
        self.old = set(cluster.hosts)
        """Controllers whose next start is still one of 0.1."""
        self.old_agents = set(cluster.broker_hosts)
        self.counts: Counter[str] = Counter()
        self.told: list[tuple[int, dict[str, int]]] = []
        """Offset and levels of each change that was acknowledged."""

    def begin_controller(self, node_id: int, made: Any) -> None:
        """A controller was made: take out what 0.1 doesn't have."""
        if node_id in self.old:
            registering = made._leader.self_registration
            registering.begin = registering.look = lambda: None
            registering.on_announcement = lambda *_: None

    def features_of(self, broker_id: int) -> tuple[FeatureRange, ...]:
        """What an agent's configuration says."""
        return OLD_AGENT if broker_id in self.old_agents else ()

    def start(self) -> None:
        """Upgrade node by node within the fault schedule, and ask for levels all the time."""
        cluster = self.cluster
        self.dice = cluster.world.random("releases")
        host = SimulatedHost(cluster.world, cluster.network, RELEASES_HOST)
        self.process = host.boot()
        self.requests = host.requests()
        for node_id in cluster.hosts:
            cluster.later(self._moment(), lambda n=node_id: self._upgrade_controller(n))
        for broker_id in cluster.broker_hosts:
            cluster.later(self._moment(), lambda b=broker_id: self._upgrade_broker(b))
        self._ask_later()

    def _moment(self) -> float:
        return float(self.dice.uniform(0.5, self.cluster.shape.faults_s))

    def _upgrade_controller(self, node_id: int) -> None:
        self.old.discard(node_id)
        host = self.cluster.hosts[node_id]
        if host.running:
            host.kill()
            self.cluster.later(0.2, lambda: host.running or self.cluster.start(node_id))

    def _upgrade_broker(self, broker_id: int) -> None:
        self.old_agents.discard(broker_id)
        host = self.cluster.broker_hosts[broker_id]
        if host.running:
            host.kill()
            self.cluster.later(0.2, lambda: self.cluster.start_broker(broker_id))

    # -- levels -------------------------------------------------------------------------------

    def _ask_later(self) -> None:
        def go() -> None:
            if self.cluster.busy:
                self._ask()
                self._ask_later()

        self.process.schedule(int(self.dice.expovariate(ASKS_PER_S) * US), go, "releases")

    def _ask(self) -> None:
        name, levels = self.dice.choice(LEVELS)
        wanted = {name: self.dice.choice(levels)}
        kind = self.dice.choice(("upgrade", "upgrade", "safe_downgrade"))
        body = {
            "updates": [
                {"feature": name, "maxVersionLevel": level, "upgradeType": kind}
                for name, level in wanted.items()
            ],
            "dryRun": self.dice.random() < 0.1,
        }
        leader = self.cluster.leader() or self.dice.choice(list(self.cluster.hosts))
        request = Request(
            "POST",
            "/v1/features",
            json.dumps(body).encode(),
            headers={"content-type": "application/json"},
        )
        self.requests.request(
            f"http://controller-{leader}",
            request,
            lambda answer: self._answered(wanted, answer),
            2.0,
        )

    def _answered(self, wanted: dict[str, int], answer: Reply | Unreachable) -> None:
        if not isinstance(answer, Reply):
            return
        reply = json.loads(answer.body)
        if answer.status == 200:
            self.counts["dry runs" if reply["dryRun"] else "changes"] += 1
            if not reply["dryRun"]:
                self.told.append((reply["offset"], wanted))
        elif answer.status in (400, 409) and reply["code"] in REFUSALS:
            self.counts["refusals"] += 1
        elif answer.status not in (421, 429, 503, 507):
            self.cluster.world.fail(f"levels were answered {answer.status}: {reply}", None)

    # -- the judge ----------------------------------------------------------------------------

    def settled(self) -> bool:
        """The log has levels, and every controller is registered as the process it is."""
        leader = self.cluster.leader()
        if leader is None:
            return False
        image = self.cluster.controllers[leader].image
        return image.features.levels.get(METADATA_VERSION) is not None and all(
            image.cluster.controllers.get(n) == made._leader.self_registration._own
            for n, made in self.cluster.running().items()
        )

    def at_the_end(self) -> Counter[str]:
        """Read each log from its first record; count what was met."""
        cluster = self.cluster
        met = Counter({f"levels: {name}": n for name, n in self.counts.items()})
        for node_id, made in cluster.running().items():
            if made.ledger.log_start:
                continue
            image, at = EMPTY, {}
            for batch in made.ledger.batches(0):
                records = decode_records(batch.records)
                self._judge(node_id, image, records)
                image = _next(image, batch, records)
                at[batch.header.end_offset] = dict(image.features.levels.items())
            self._judge_told(node_id, at)
            met["levels: logs read"] += 1
        return met

    def _judge(self, node_id: int, image: MetadataImage, records: list[Record]) -> None:
        fail = self.cluster.world.fail
        levels = dict(image.features.levels.items())
        changed = {r.name: r.feature_level for r in records if isinstance(r, FeatureLevelRecord)}
        if changed:
            missing = [n for n in self.cluster.hosts if n not in image.cluster.controllers]
            if missing:
                fail(f"levels {changed} before {missing} registered", node_id)
            for objection in objections(image, changed):
                fail(f"levels {changed} at {image.offset}: {objection}", node_id)
        closed = needs_above({**levels, **changed})
        for record in records:
            why = missing_level(record, closed.get(type(record), ()))
            if why:
                fail(f"a record below its level at {image.offset}: {why}", node_id)
            if (
                isinstance(record, RegisterControllerRecord)
                and image.cluster.controllers.get(record.controller_id) == record
            ):
                fail(f"controller {record.controller_id} is registered twice", node_id)

    def _judge_told(self, node_id: int, at: dict[int, dict[str, int]]) -> None:
        for offset, wanted in self.told:
            found = at.get(offset)
            if found is None:
                self.cluster.world.fail(f"a change told to end at {offset} does not", node_id)
            for name, level in wanted.items():
                if found.get(name, 0) != level:
                    self.cluster.world.fail(
                        f"{name} {level} was told at {offset}: {found}", node_id
                    )


def _next(image: MetadataImage, batch: Any, records: list[Record]) -> MetadataImage:
    delta, header = MetadataDelta(image), batch.header
    delta.replay_all(records, header.base_offset)
    delta.finish_batch(header.end_offset, header.epoch, header.timestamp_ms)
    return delta.apply()
