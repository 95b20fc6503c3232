"""One request for each route, which changes as little as possible, for the matrix of rights."""

from base64 import b64encode
from typing import Any

import msgspec

from controller.http.route import Route
from metadata.acl_roles import ROLES
from metadata.codec import encode_records
from metadata.messages.wire import MSGPACK
from metadata.records import ClientQuotaRecord, EntityData
from metadata.uuids import uuid_text
from runtime.http.requests import Caller, Request
from tests.unit.controller.cluster import CLUSTER_ID, Broker, Cluster

ROOT = Caller("User:root", "token", "10.0.0.9")
"""A super user."""
BROKER = 7
"""The broker that the routes between brokers and controllers are asked for."""
_SESSION = uuid_text(bytes(15) + b"\x09")
_SHA256 = b64encode(bytes(range(32))).decode()
_RECORDS = b64encode(
    encode_records([ClientQuotaRecord((EntityData("user", "i"),), "request_percentage", 1, False)])
).decode()
_CONFIG = {"configs": [{"name": "retention.ms", "value": "50000"}]}
_TOPIC = {"name": "new", "numPartitions": 1, "replicationFactor": 1}
_LOCK = {"kind": "lock", "name": "l"}
_ENTRY = {"resourceType": "TOPIC", "resourceName": "t", "operation": "READ"}

BODIES: dict[str, dict[str, Any]] = {
    "make_changes": {
        "changes": [
            {"method": "POST", "path": "/v1/topics", "body": {"topics": [_TOPIC], "dryRun": True}}
        ]
    },
    "create_topics": {"topics": [_TOPIC]},
    "delete_topics": {"names": ["t"]},
    "create_partitions": {"topics": [{"name": "t", "count": 2}]},
    "alter_reassignments": {"partitions": [{"topic": "t", "partition": 0, "replicas": [7]}]},
    "elect_leaders": {
        "electionType": "PREFERRED",
        "topicPartitions": [{"topic": "t", "partitions": [0]}],
    },
    "alter_configs": {"resources": [{"resourceType": "topic", "resourceName": "t", **_CONFIG}]},
    "alter_config": _CONFIG,
    "update_features": {"updates": [{"feature": "metadata.version", "maxVersionLevel": 29}]},
    "follow_source": {
        "source": "a test",
        "sourceClusterId": "",
        "fromRevision": 5,
        "revision": 6,
    },
    "set_bridge_mode": {"mode": "leading", "source": "a test", "revision": 1, "claimEpoch": 2},
    "create_acls": {"acls": [_ENTRY | {"principal": "User:a"}]},
    "delete_acls": {"filters": [{"principal": "User:nobody"}]},
    "alter_quotas": {
        "entries": [
            {
                "entity": [{"entityType": "user", "entityName": "a"}],
                "operations": [{"key": "producer_byte_rate", "value": 1.0}],
            }
        ]
    },
    "alter_scram": {"deletions": [{"name": "t", "mechanism": "SCRAM-SHA-256"}]},
    "erase_subject": {"subject": "user:t"},
    "create_token": {},
    "create_access_token": {"principal": "User:a", "sha256": _SHA256},
    "rotate_access_token": {"sha256": _SHA256},
    "revoke_access_token": {},
    "create_join_token": {"role": "broker", "nodeId": 7, "sha256": _SHA256},
    "revoke_join_token": {},
    "join": {"csr": "AAAA"},
    "revoke_certificates": {"serial": "0A"},
    "reinstate_certificates": {"serial": "0A"},
    "renew_token": {"hmac": "AAAA"},
    "expire_token": {"hmac": "AAAA", "expiryTimePeriodMs": 50_000},
    "change_voters": {"action": "add", "nodeId": 1},
    "transfer_leadership": {"nodeId": 1},
    "change_head_key": {"nodeId": 1},
    "open_session": {"ttlMs": 5_000},
    "renew_session": {"sessionId": _SESSION},
    "end_session": {"sessionId": _SESSION},
    "enter": _LOCK | {"id": "1", "sessionId": _SESSION},
    "change_entry": _LOCK | {"id": "1", "sessionId": _SESSION, "data": "AAAA"},
    "leave": _LOCK | {"id": "1", "sessionId": _SESSION},
    "break_grant": _LOCK,
    "commit_keys": {"operations": [{"op": "upsert", "key": "k"}]},
    "watch_coordination": {"scopes": [{"key": "k"}]},
    "apply": {"topics": [{"name": "t", "partitions": 1}]},
    "import_records": {"records": _RECORDS, "source": "a test", "revision": 1},
    "keep_import_part": {"digest": "0" * 64, "number": 0, "records": _RECORDS},
}
QUERIES: dict[str, dict[str, str]] = {
    "watch_resource": {"resource": "broker:7", "from": "0"},
    "list_entries": {"kind": "lock", "name": "l"},
    "get_key": {"key": "k"},
    "list_keys": {"prefix": "k"},
    "resolve_quotas": {"user": "a"},
    "check_acl": {
        "principal": "User:zoe",
        "operation": "READ",
        "resourceType": "TOPIC",
        "resourceName": "t",
    },
    "plan_reassignments": {"brokers": "7"},
    "lose_brokers": {"brokers": "7"},
    "unregister_broker": {"force": "true"},
    "read_snapshot": {"brokerId": "7", "brokerEpoch": "0"},
}
_ARGUMENTS = {
    "id": "7",
    "name": "t",
    "topic": "t",
    "partition": "0",
    "base": "0",
    "type": "topic",
    "offset": "0",
    "path": "0/000.p/1",
}
_NO_DRY_RUN = (
    "watch_coordination",
    "transfer_leadership",
    "renew_session",
    "keep_import_part",
    "join",
)


def granted(cluster: Any) -> None:
    """Let the super user give the roles."""
    for role, entries in ROLES.items():
        acls = [
            {
                "resourceType": entry.resource_type,
                "resourceName": entry.name,
                "patternType": entry.pattern_type,
                "operation": entry.operation,
                "principal": f"User:{role}",
            }
            for entry in entries
        ]
        status, reply = cluster.ask("POST", "/v1/acls", {"acls": acls}, caller=ROOT)
        assert status == 200, reply
        assert all(entry.get("error") is None for entry in reply["acls"]), reply


def request_of(cluster: Cluster, broker: Broker, route: Route, caller: Caller) -> Request:
    """Return the route's request, as the caller sends it."""
    path = route.path.format_map(_ARGUMENTS)
    query = dict(QUERIES.get(route.name, {}))
    epoch = cluster.broker(BROKER).broker_epoch
    if route.name == "metadata_fetch":
        body = msgspec.msgpack.encode(broker.request(max_wait_ms=0))
        return Request(route.method, path, body, query, {"content-type": MSGPACK}, caller)
    message: dict[str, Any] | None = None
    if route.name == "alter_partition":
        wanted = {
            "partitionIndex": 0,
            "leaderEpoch": 9,
            "partitionEpoch": 9,
            "newIsrWithEpochs": [{"brokerId": 7}],
        }
        message = {
            "clusterId": CLUSTER_ID,
            "brokerId": BROKER,
            "brokerEpoch": epoch,
            "topics": [{"topicName": "t", "partitions": [wanted]}],
        }
    elif route.name == "assign_replicas":
        replica = {"topicId": _SESSION, "partition": 0, "directory": _SESSION}
        message = {"clusterId": CLUSTER_ID, "brokerEpoch": epoch, "replicas": [replica]}
    elif route.name == "allocate_producer_ids":
        message = {"brokerId": BROKER, "brokerEpoch": epoch, "dryRun": True}
    elif route.request is not None:
        message = dict(BODIES[route.name])
        if route.changes and route.name not in _NO_DRY_RUN:
            message["dryRun"] = True
    elif route.changes:
        query["dryRun"] = "true"
    body = b"" if message is None else msgspec.json.encode(message)
    return Request(route.method, path, body, query, {}, caller)
