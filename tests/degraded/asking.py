"""Sends every request of the routes to a controller at once, and notes the answers and their times.

Rule: the list comes from the routes, so a new route is covered too. Times are simulated.
"""

import json
from base64 import b64encode
from typing import Any, NamedTuple

import msgspec

from controller.http.route import Route
from controller.http.routes import ROUTES
from controller.leader.changes import REASON
from ledger.merkle.notes import NoteKey
from metadata.codec import encode_records
from metadata.features import ELR_VERSION
from metadata.messages.wire import MSGPACK, decode_fetch_reply
from metadata.records import ClientQuotaRecord, EntityData
from metadata.uuids import uuid_text
from runtime.http.requests import Caller, Reply, Request, whole
from tests.degraded.table import Column, columns_of
from tests.unit.controller.node_authority import signing_request

PATIENCE_S = 40.0
SHOWN_S = 0.01
"""A healthy cluster has answered what only shows by then."""
CALLER = Caller("User:alice", "token", "10.0.0.7")
_ENTRY = {"resourceType": "TOPIC", "resourceName": "t", "operation": "READ"}
_RECORDS = b64encode(
    encode_records(
        [ClientQuotaRecord((EntityData("user", "imported"),), "request_percentage", 1.0, False)]
    )
).decode()
CLIENTS: dict[str, dict[str, Any]] = {
    "create_acls": {"acls": [_ENTRY | {"principal": "User:a"}]},
    "delete_acls": {"filters": [{}]},
    "alter_quotas": {
        "entries": [
            {
                "entity": [{"entityType": "user", "entityName": "a"}],
                "operations": [{"key": "producer_byte_rate", "value": 1.0}],
            }
        ]
    },
    "alter_scram": {"deletions": [{"name": "t", "mechanism": "SCRAM-SHA-256"}]},
    "erase_subject": {"subject": "user:nobody"},
    "create_token": {},
    "revoke_access_token": {},
    "revoke_join_token": {},
    "reinstate_certificates": {"serial": "0B"},
    "follow_source": {
        "source": "a test",
        "sourceClusterId": "",
        "fromRevision": 1,
        "revision": 1,
        "brokers": [{"brokerId": 9_000, "epoch": 1}],
    },
    "set_bridge_mode": {"mode": "leading", "source": "a test", "revision": 1, "claimEpoch": 2},
    "import_records": {"records": _RECORDS, "source": "a test", "revision": 1},
    "apply": {
        "quotas": [
            {
                "entity": [{"entityType": "user", "entityName": "declared"}],
                "quotas": {"producer_byte_rate": 1.0},
            }
        ]
    },
}
"""Bodies of changes of the routes about clients, of declared state and of the bridge. The bridge
leads: one that follows would refuse the other changes."""
DRAWN: dict[str, dict[str, Any]] = {
    "create_access_token": {"principal": "User:a"},
    "rotate_access_token": {},
    "create_join_token": {"role": "broker", "nodeId": 5},
    "revoke_certificates": {},
}
"""Bodies of changes that need another hash or number each time."""
COORDINATION: dict[str, dict[str, Any]] = {
    "open_session": {"ttlMs": 600_000},
    "end_session": {},
    "renew_session": {},
    "enter": {"kind": "lock", "name": "new", "id": "1"},
    "change_entry": {"kind": "lock", "name": "held", "id": "1", "data": "AAAA"},
    "leave": {"kind": "lock", "name": "left", "id": "1"},
    "break_grant": {"kind": "lock", "name": "broken"},
    "commit_keys": {"operations": [{"op": "upsert", "key": "k"}]},
    "watch_coordination": {"scopes": [{"key": "k"}]},
}
"""Bodies of the routes of coordination, but for the session."""
OF_A_SESSION = ("renew_session", "end_session", "enter", "change_entry", "leave")
CLIENTS["make_changes"] = {
    "entries": [
        {
            "entity": [{"entityType": "user", "entityName": "joined"}],
            "operations": [{"key": "producer_byte_rate", "value": 1.0}],
        }
    ]
}
"""Of the one change that stands in the request."""


class Answer(NamedTuple):
    """What a request came to."""

    status: int
    code: str
    body: Any
    headers: dict[str, str]
    took_s: float


class Asked:
    """One request under way."""

    def __init__(self, cluster: Any, route: Route, column: Column) -> None:
        self.route, self.column = route, column
        self.cluster = cluster
        self.began = cluster.world.now
        self.reply: Reply | None = None
        self.took_s = 0.0

    def __call__(self, reply: Reply) -> None:
        assert self.reply is None, "answered twice"
        self.reply, self.took_s = whole(reply), self.cluster.world.now - self.began

    @property
    def answer(self) -> Answer:
        assert self.reply is not None, f"{self.route.name} was never answered"
        body: Any = self.reply.body
        if self.route.name == "metadata_fetch":
            reply = decode_fetch_reply(self.reply.status, body, MSGPACK)
            body = msgspec.to_builtins(reply.error) if reply.error is not None else {}
        elif self.reply.headers["content-type"].startswith("application/json"):
            body = json.loads(body)
        status, headers = self.reply.status, dict(self.reply.headers)
        if self.route.joins_changes and status == self.route.status:
            # What the one change in it came to.
            (outcome,) = body["outcomes"]
            status, body, after = outcome["status"], outcome["body"], outcome["retryAfterS"]
            headers = {} if after is None else {"retry-after": str(after)}
        code = str(body.get("code", "")) if isinstance(body, dict) else ""
        return Answer(status, code, body, headers, self.took_s)


def ask_everything(cluster: Any, node: int, broker: Any, *, changes_are_made: bool) -> list[Asked]:
    """Send one request of every kind to a node, and wait for all answers.

    What only shows is asked first. If changes are made, they wait for its answers: a read that asks
    a majority could else see what they did.
    """
    wanted = [(route, each) for route in ROUTES for each in columns_of(route)]
    acts = (Column.ISR, Column.CHANGE)
    sent = [send(cluster, node, *each, broker) for each in wanted if each[1] not in acts]
    if changes_are_made:
        cluster.world.run_for(SHOWN_S, lambda: all(each.reply is not None for each in sent))
    sent += [send(cluster, node, *each, broker) for each in wanted if each[1] in acts]
    cluster.world.run_for(PATIENCE_S, lambda: all(each.reply is not None for each in sent))
    return sent


def send(cluster: Any, node: int, route: Route, column: Column, broker: Any) -> Asked:
    """Send one."""
    asked = Asked(cluster, route, column)
    request = _request(cluster, node, route, column, broker)
    cluster.processes[node].run(lambda: cluster.controllers[node].handle(request, asked))
    return asked


def _request(cluster: Any, node: int, route: Route, column: Column, broker: Any) -> Request:
    token_id, token_hmac = getattr(cluster, "token", ("none", ""))
    named = {"unregister_controller": "99", "renew_token": token_id, "expire_token": token_id}
    log_tokens = getattr(cluster, "log_tokens", {})
    named |= log_tokens
    path = route.path.replace("{name}", "t").replace("{id}", named.get(route.name, "1"))
    path = path.replace("{base}", "0").replace("{offset}", "0")
    path = path.replace("/tile/{path}", "/tile/0/000.p/2")
    path = path.replace("{type}", "group").replace("{topic}", "moved").replace("{partition}", "0")
    query: dict[str, str] = {}
    headers: dict[str, str] = {}
    body = b""
    if column is Column.ISR:
        said = _directories if route.name == "assign_replicas" else _isr
        body = json.dumps(said(cluster, node, broker)).encode()
    elif column is Column.BROKER:
        body = msgspec.msgpack.encode(broker.request())
        headers = {"content-type": MSGPACK}
    elif route.name in ("renew_session", "watch_coordination"):
        body = json.dumps(_coordination(cluster, route.name)).encode()
    elif route.name == "transfer_leadership":
        # Whoever leads goes on.
        body = json.dumps({"nodeId": node}).encode()
    elif route.name == "keep_import_part":
        body = json.dumps({"digest": "0" * 64, "number": 0, "records": _RECORDS}).encode()
    elif column is Column.SNAPSHOT:
        path = path.replace("/1", f"/{cluster.snapshot}")
    elif column is Column.STALE:
        query["consistency"] = "stale"
    elif column is Column.AT_LEAST:
        query["minOffset"] = str(min(cluster.controllers[node].image.offset, 1))
    if route.request is not None and column in (Column.CHANGE, Column.DRY_RUN):
        change = _change(cluster, node, route.name, broker, token_hmac)
        if route.name != "join":
            change = change | {"dryRun": column is Column.DRY_RUN}
        if route.joins_changes:
            change = {"changes": [{"method": "POST", "path": "/v1/quotas", "body": change}]}
        body = json.dumps(change).encode()
    elif column is Column.DRY_RUN:
        query["dryRun"] = "true"
    if route.name == "watch_resource":
        query |= {"resource": "topic:t", "from": "0"}
    if route.name == "list_entries":
        query |= {"kind": "lock", "name": "held"}
    if route.name == "get_key":
        query["key"] = "k"
    if route.name == "resolve_quotas":
        query["user"] = "a"
    if route.name == "check_acl":
        query |= {"principal": "User:a", "operation": "READ"}
        query |= {"resourceType": "TOPIC", "resourceName": "t"}
    if route.name in ("plan_reassignments", "lose_brokers"):
        query["brokers"] = "1"
    if route.name == "unregister_broker":
        # The broker of these tests is online.
        query["force"] = "true"
    if route.name == "change_head_key":
        headers[REASON] = "the key before is lost"
    caller = CALLER
    if route.name == "join":
        principal = f"JoinToken:{log_tokens.get('join', 'none')}"
        caller = Caller(principal, "join-token", "10.0.0.9", only_path=path)
    return Request(route.method, path, body, query, headers, caller)


_CONFIG = {"name": "consumer.session.timeout.ms", "value": "50000"}


def _directories(cluster: Any, node: int, broker: Any) -> dict[str, Any]:
    """A replica lies in another directory each time."""
    cluster.placed = getattr(cluster, "placed", 1_000) + 1
    moved = cluster.controllers[node].image.topics.named("moved")
    topic_id = bytes(16) if moved is None else moved.topic_id
    replica = {
        "topicId": uuid_text(topic_id),
        "partition": 0,
        "directory": uuid_text(cluster.placed.to_bytes(16, "big")),
    }
    request = broker.request()
    return {
        "clusterId": request.cluster_id,
        "brokerEpoch": request.broker_epoch,
        "replicas": [replica],
    }


def _coordination(cluster: Any, name: str) -> dict[str, Any]:
    sessions = getattr(cluster, "sessions", (uuid_text(bytes(16)),) * 2)
    session = sessions[name == "end_session"]
    return COORDINATION[name] | ({"sessionId": session} if name in OF_A_SESSION else {})


def _isr(_cluster: Any, _node: int, broker: Any) -> dict[str, Any]:
    """The leader's own partition loses the other replica."""
    isr = [{"brokerId": broker.broker_id}]
    wanted = {"partitionIndex": 1, "leaderEpoch": 1, "partitionEpoch": 1, "newIsrWithEpochs": isr}
    request = broker.request()
    return {
        "clusterId": request.cluster_id,
        "brokerId": request.broker_id,
        "brokerEpoch": request.broker_epoch,
        "topics": [{"topicName": "led", "partitions": [wanted]}],
    }


def _change(cluster: Any, node: int, name: str, broker: Any, token_hmac: str) -> dict[str, Any]:
    if name in CLIENTS:
        return CLIENTS[name]
    if name in COORDINATION:
        return _coordination(cluster, name)
    if name == "join":
        return {"csr": b64encode(signing_request()).decode()}
    if name in DRAWN:
        cluster.drawn = getattr(cluster, "drawn", 100) + 1
        if name == "revoke_certificates":
            return {"serial": f"{cluster.drawn:X}"}
        return DRAWN[name] | {"sha256": b64encode(bytes([cluster.drawn]) * 32).decode()}
    if name == "allocate_producer_ids":
        # Broker 1 is unregistered by another request.
        broker = getattr(cluster, "staying", broker)
        return {"brokerId": broker.broker_id, "brokerEpoch": broker.epoch}
    if name == "change_head_key":
        # Another key each time, so that there is something to write.
        cluster.head_keys = getattr(cluster, "head_keys", 0) + 1
        key = NoteKey("logberg/a", cluster.head_keys.to_bytes(32, "big"))
        return {"nodeId": 1, "publicKey": key.text}
    if name == "change_voters":
        # It votes already.
        return {"action": "add", "nodeId": 1}
    if name in ("renew_token", "expire_token"):
        return {"hmac": token_hmac} | ({} if name[0] == "r" else {"expiryTimePeriodMs": 50_000})
    if name == "create_partitions":
        cluster.count = getattr(cluster, "count", 1) + 1
        return {"topics": [{"name": "moved", "count": cluster.count}]}
    if name == "alter_reassignments":
        topics = cluster.controllers[node].image.topics
        known = topics.named("moved")
        replicas = (1, 2) if known is None else topics.partitions[known.topic_id, 0].replicas
        return {"partitions": [{"topic": "moved", "partition": 0, "replicas": replicas[::-1]}]}
    if name == "create_topics":
        cluster.named = getattr(cluster, "named", 0) + 1
        new = {"name": f"new-{cluster.named}", "numPartitions": 1, "replicationFactor": 1}
        return {"topics": [new]}
    if name == "elect_leaders":
        led = {"topic": "led", "partitions": [0]}
        return {"electionType": "PREFERRED", "topicPartitions": [led]}
    if name == "update_features":
        return {"updates": [{"feature": ELR_VERSION, "maxVersionLevel": 1}]}
    if name == "alter_config":
        return {"configs": [_CONFIG]}
    if name == "alter_configs":
        resource = {"resourceType": "group", "resourceName": "g", "configs": [_CONFIG]}
        return {"resources": [resource]}
    return {"names": ["u"]}
