"""Drawn entries and quotas, over HTTP: what is written and what applies are the reference's.

`tests.reference.clients` says what a request writes. `tests.reference.access` says which entry
decides about an action, and `tests.reference.applied_quotas` which quota applies to a client.
"""

from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule

from metadata.image import image_to_records
from metadata.records import (
    AccessControlEntryRecord,
    AclOperation,
    AclPatternType,
    AclPermissionType,
    AclResourceType,
    ClientQuotaRecord,
)
from tests.reference.access import Action, Entry, judge
from tests.reference.applied_quotas import applied
from tests.reference.clients import Clients
from tests.unit.controller.cluster import Cluster

users = st.sampled_from(["User:al", "User:bo", "User:cy"])
names = st.sampled_from([None, "a", "a", "b"])
parts = st.tuples(st.sampled_from(["user", "client-id"]), names)
both = st.tuples(st.tuples(st.just("user"), names), st.tuples(st.just("client-id"), names))
one = st.tuples(parts)
address = st.tuples(st.tuples(st.just("ip"), st.sampled_from([None, "10.0.0.1"])))
entities = both | one | both | one | address | st.lists(parts | address.map(min), max_size=3)
good_operations = st.tuples(
    st.sampled_from(["producer_byte_rate", "request_percentage"]), st.sampled_from([1.0, 2.0, 3.0])
)
any_operations = st.tuples(
    st.sampled_from(
        ["producer_byte_rate", "request_percentage", "connection_creation_rate", "no_such"]
    ),
    st.sampled_from([None, 1.0, 2.0, 1.5, 0.0, 2.0**31]),
)
operations = good_operations | good_operations | any_operations
layers = st.lists(
    st.tuples(both | one, st.lists(good_operations, min_size=1, max_size=2)), min_size=5
)
"""Quotas of many entities, so that several could apply to one client."""
INSIDE = {"10.0.0.2/31": "10.0.0.3", "10.0.0.1/24": "10.0.0.1", "::/0": "2001:db8::7"}
"""An address in each range of the entries."""
types = st.sampled_from(["TOPIC"] * 5 + ["GROUP"])
entries = st.builds(
    Entry,
    types,
    st.sampled_from(["x", "xy", "xy", "xyz", "*"]),
    st.sampled_from(["LITERAL", "PREFIXED"]),
    st.sampled_from(["User:*", "User:al", "User:bo", "User:cy"]),
    st.sampled_from(["READ", "READ", "DESCRIBE", "ALTER_CONFIGS", "ALL"]),
    st.sampled_from(["ALLOW", "ALLOW", "ALLOW", "DENY"]),
    st.sampled_from(["*", "*", "10.0.0.1", *INSIDE, "10.0.0.0/33"]),
)
actions = st.builds(
    Action,
    users,
    st.sampled_from(["10.0.0.1", "10.0.0.1", "10.0.0.3", "10.0.1.3", "2001:db8::7", "somewhere"]),
    st.sampled_from(["READ", "DESCRIBE", "DESCRIBE", "DESCRIBE_CONFIGS"]),
    types,
    st.sampled_from(["x", "xy", "xy", "xyz", "z"]),
)
of_clients = st.sampled_from([None, "a", "a", "b"])
addresses = st.sampled_from([None, "10.0.0.1", "10.0.0.2"])


class AccessAndQuotas(RuleBasedStateMachine):
    """One controller beside the reference."""

    @initialize(
        level=st.sampled_from([31, 32]),
        super_users=st.sampled_from([(), ("User:al", "User:cy")]),
        open_to_all=st.booleans(),
    )
    def begin(self, level: int, super_users: tuple[str, ...], open_to_all: bool) -> None:
        self.super_users, self.open_to_all = super_users, open_to_all
        self.cluster: Any = Cluster(
            nodes=1,
            super_users=frozenset(super_users),
            allow_if_no_acl=open_to_all,
            initial_features={"metadata.version": level},
        )
        self.reference = Clients(0, 0)
        self.reference.level = level

    @rule(
        asked=layers | st.lists(st.tuples(entities, st.lists(operations, max_size=2)), max_size=3)
    )
    def quotas(self, asked: Any) -> None:
        body = {
            "entries": [
                {
                    "entity": [{"entityType": k, "entityName": n} for k, n in entity],
                    "operations": [{"key": k, "value": v} for k, v in changes],
                }
                for entity, changes in asked
            ]
        }
        status, reply = self.cluster.ask("POST", "/v1/quotas", body)
        if not asked:
            assert status == 400
            return
        expected = self.reference.alter_quotas(
            [(tuple(entity), changes) for entity, changes in asked]
        )
        assert codes(reply["entries"]) == expected, (reply, expected)

    @rule(asked=st.lists(st.tuples(of_clients, of_clients, addresses).filter(any), min_size=4))
    def resolve_quotas(self, asked: list[tuple[str | None, str | None, str | None]]) -> None:
        for client in asked:
            self._resolve_quotas(*client)

    def _resolve_quotas(self, user: str | None, client_id: str | None, ip: str | None) -> None:
        query = {"user": user, "clientId": client_id, "ip": ip}
        given = {key: value for key, value in query.items() if value is not None}
        status, reply = self.cluster.ask("GET", "/v1/quotas/resolve", query=given)
        assert status == 200, reply
        said = {
            quota["key"]: (
                quota["value"],
                frozenset((part["entityType"], part["entityName"]) for part in quota["entity"]),
            )
            for quota in reply["quotas"]
        }
        assert said == applied(self.reference.quotas, user, client_id, ip)

    @rule(wanted=st.lists(entries, min_size=1, max_size=8))
    def create_entries(self, wanted: list[Entry]) -> None:
        self._create_entries(wanted)

    @rule(entry=entries, host=st.sampled_from(sorted(INSIDE)))
    def call_from_a_range(self, entry: Entry, host: str) -> None:
        """Create an entry for a range, and ask for what it decides, from an address inside."""
        self._create_entries([entry._replace(host=host)])
        who = "User:bo" if entry.principal == "User:*" else entry.principal
        what = {"ALL": "READ", "ALTER_CONFIGS": "DESCRIBE_CONFIGS"}.get(
            entry.operation, entry.operation
        )
        name = "x" if entry.name == "*" else entry.name
        self._check(Action(who, INSIDE[host], what, entry.kind, name))

    def _create_entries(self, wanted: list[Entry]) -> None:
        status, reply = self.cluster.ask("POST", "/v1/acls", {"acls": list(map(in_json, wanted))})
        assert status == 200, reply
        answers = [
            code_of(acl["error"]) or ("existed" if acl["existed"] else "added")
            for acl in reply["acls"]
        ]
        assert answers == self.reference.create_entries(wanted)

    @rule(asked=st.lists(st.tuples(actions, st.none() | st.integers(0, 20)), min_size=4))
    def check(self, asked: list[tuple[Action, int | None]]) -> None:
        """Ask for verdicts; perhaps about some entry's type and principal, from its range."""
        known = sorted(self.reference.entries)
        for action, number in asked:
            if number is None or not known:
                self._check(action)
                continue
            entry = known[number % len(known)]
            who = action.principal if entry.principal == "User:*" else entry.principal
            host = INSIDE.get(entry.host, action.host)
            self._check(action._replace(kind=entry.kind, principal=who, host=host))

    def _check(self, action: Action) -> None:
        query = {
            "principal": action.principal,
            "host": action.host,
            "operation": action.operation,
            "resourceType": action.kind,
            "resourceName": action.name,
        }
        status, reply = self.cluster.ask("GET", "/v1/acls/check", query=query)
        assert status == 200, reply
        verdict = judge(
            self.reference.entries,
            action,
            self.super_users,
            allowed_without_entries=self.open_to_all,
        )
        assert (reply["allowed"], reply["reason"]) == (verdict.allowed, verdict.reason)
        named = reply.get("acl")
        assert {from_json(named)} <= verdict.entries if named else not verdict.entries

    @rule(
        kind=st.sampled_from([None, "TOPIC"]),
        name=st.sampled_from([None, "x"]),
        principal=st.none() | users,
    )
    def delete_entries(self, kind: Any, name: Any, principal: Any) -> None:
        wanted = {"resourceType": kind, "resourceName": name, "principal": principal}
        if name is not None:
            wanted["patternType"] = "LITERAL"
        body = {"filters": [{key: value for key, value in wanted.items() if value is not None}]}
        status, reply = self.cluster.ask("DELETE", "/v1/acls", body)
        assert status == 200, reply
        count = self.reference.delete_entries(kind, name, principal)
        assert reply["filters"][0]["count"] == count

    @invariant()
    def the_log_says_what_the_reference_says(self) -> None:
        if not hasattr(self, "reference"):
            return
        found: dict[type, list[Any]] = {}
        for record in image_to_records(self.cluster.image):
            found.setdefault(type(record), []).append(record)
        quotas: dict[Any, dict[str, float]] = {}
        for quota in found.get(ClientQuotaRecord, ()):
            entity = frozenset((part.entity_type, part.entity_name) for part in quota.entity)
            quotas.setdefault(entity, {})[quota.key] = quota.value
        assert quotas == self.reference.quotas
        assert {
            Entry(
                AclResourceType(each.resource_type).name,
                each.resource_name,
                AclPatternType(each.pattern_type).name,
                each.principal,
                AclOperation(each.operation).name,
                AclPermissionType(each.permission_type).name,
                each.host,
            )
            for each in found.get(AccessControlEntryRecord, ())
        } == self.reference.entries

    def teardown(self) -> None:
        if hasattr(self, "reference"):
            self.cluster.assert_equal()


FIELDS = (
    *("resourceType", "resourceName", "patternType", "principal", "operation"),
    *("permissionType", "host"),
)


def in_json(entry: Entry) -> dict[str, str]:
    return dict(zip(FIELDS, entry, strict=True))


def from_json(acl: Any) -> Entry:
    return Entry(*(acl[field] for field in FIELDS))


def code_of(error: Any) -> str | None:
    return None if error is None else str(error["code"])


def codes(rows: Any) -> list[str | None]:
    return [code_of(row["error"]) for row in rows]


AccessAndQuotas.TestCase.settings = settings(
    max_examples=40,
    stateful_step_count=25,
)
TestAccessAndQuotas = AccessAndQuotas.TestCase
