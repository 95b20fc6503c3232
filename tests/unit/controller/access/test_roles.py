"""The roles: entries that the controllers take, each role more than the one before it."""

from metadata.acl_roles import ROLES
from runtime.http.requests import Caller
from tests.unit.controller.cluster import Cluster


def test_the_controllers_take_every_entry_of_every_role() -> None:
    cluster = Cluster(nodes=1)
    for entries in ROLES.values():
        acls = [
            {
                "resourceType": entry.resource_type,
                "resourceName": entry.name,
                "patternType": entry.pattern_type,
                "operation": entry.operation,
                "principal": "User:a",
            }
            for entry in entries
        ]
        status, reply = cluster.ask("POST", "/v1/acls", {"acls": acls}, caller=Caller("User:x"))
        assert status == 200
        assert [each.get("error") for each in reply["acls"]] == [None] * len(entries)


def test_an_operator_is_a_viewer_too_and_no_role_names_an_entry_twice() -> None:
    assert set(ROLES["viewer"]) < set(ROLES["operator"])
    assert all(len(set(entries)) == len(entries) for entries in ROLES.values())
