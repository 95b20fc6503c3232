"""One controller that follows a source, asked over HTTP."""

from base64 import b64encode
from collections.abc import Sequence
from typing import Any, Final

from metadata.codec import encode_records
from metadata.records import Record
from metadata.sealing import ClusterKey
from tests.unit.controller.cluster import Cluster

KEY: Final = ClusterKey(bytes(range(32)))
SOURCE: Final = "zookeeper://zk:2181/kafka"
FAMILIES: Final = (
    "topics",
    "brokerConfigs",
    "quotas",
    "users",
    "acls",
    "tokens",
    "producerIds",
)


class BridgedCluster:
    """The cluster, and how far its bridge has come."""

    def __init__(self, **settings: Any) -> None:
        chosen = {"cluster_key": KEY} | settings
        self.cluster: Any = Cluster(**({"nodes": 1} | chosen))
        self.cluster.run(2)
        self.revision = -1

    def step(self, records: Sequence[Record] = (), **more: Any) -> tuple[int, dict[str, Any]]:
        """Bring records as everything that the source has; `more` changes the request."""
        body = {
            "source": SOURCE,
            "sourceClusterId": "c1",
            "fromRevision": self.revision,
            "revision": self.revision + 10,
            "records": b64encode(encode_records(records)).decode(),
            "complete": FAMILIES,
        }
        return self.cluster.ask("POST", "/v1/bridge/follow", body | more)

    def followed(self, records: Sequence[Record] = (), **more: Any) -> dict[str, Any]:
        """Make a step that succeeds."""
        status, reply = self.step(records, **more)
        assert status == 200, reply
        assert reply["conflicts"] == [], reply
        if not reply["dryRun"]:
            self.revision = reply["revision"]
        return reply

    def mode(self, mode: str, claim_epoch: int = -1, **more: Any) -> tuple[int, dict[str, Any]]:
        body = {"mode": mode, "source": SOURCE, "revision": self.revision}
        if claim_epoch >= 0:
            body["claimEpoch"] = claim_epoch
        return self.cluster.ask("POST", "/v1/bridge/mode", body | more)

    def described(self) -> dict[str, Any]:
        status, reply = self.cluster.ask("GET", "/v1/bridge")
        assert status == 200, reply
        return reply

    @property
    def image(self) -> Any:
        self.cluster.run(0.05)
        return self.cluster.image
