"""Revocations of certificates, from a request to the state."""

from typing import Any

import pytest

from metadata.credentials import certificate_refusal
from tests.unit.controller.cluster import Cluster

pytestmark = pytest.mark.simulation


@pytest.fixture
def cluster() -> Any:
    return Cluster()


def revoke(cluster: Any, **body: Any) -> Any:
    return cluster.ask("POST", "/v1/revocations", body)


def refusal(cluster: Any, serial: str = "0AFF", begins_ms: int = 0) -> str:
    return certificate_refusal(cluster.image, "User:alice", serial, lambda: begins_ms)


@pytest.mark.parametrize("said", ["0AFF", "aff", "0a:ff", "000AFF"])
def test_a_serial_number_is_understood_as_programs_write_it(cluster: Any, said: str) -> None:
    assert refusal(cluster) == ""
    status, reply = revoke(cluster, serial=said)
    assert status == 200, reply
    assert reply["revocation"]["serial"] == "0AFF"
    assert "the certificate 0AFF was revoked" in refusal(cluster)
    assert refusal(cluster, "0AFE") == ""
    cluster.assert_equal()


def test_a_principal_s_later_certificates_are_taken(cluster: Any) -> None:
    _, reply = revoke(cluster, principal="User:alice")
    before = reply["revocation"]["beforeMs"]
    assert "show one that was made later" in refusal(cluster, begins_ms=before - 1)
    assert refusal(cluster, begins_ms=before) == ""


def test_a_second_revocation_moves_the_time_forward_only(cluster: Any) -> None:
    _, first = revoke(cluster, principal="User:alice")
    before = first["revocation"]["beforeMs"]
    cluster.run(2)
    _, older = revoke(cluster, principal="User:alice", beforeMs=before - 1)
    assert older["revocation"]["beforeMs"] == before
    _, newer = revoke(cluster, principal="User:alice")
    assert newer["revocation"]["beforeMs"] > before


def test_a_revocation_is_taken_back(cluster: Any) -> None:
    revoke(cluster, serial="0AFF")
    status, _ = cluster.ask("DELETE", "/v1/revocations", {"serial": "AFF"})
    assert status == 200
    assert refusal(cluster) == ""
    status, reply = cluster.ask("DELETE", "/v1/revocations", {"serial": "AFF"})
    assert (status, reply["code"]) == (404, "RESOURCE_NOT_FOUND")


def test_revocations_are_listed(cluster: Any) -> None:
    revoke(cluster, serial="0AFF")
    revoke(cluster, principal="Broker:7")
    _, reply = cluster.ask("GET", "/v1/revocations")
    named = [(each["serial"], each["principal"]) for each in reply["revocations"]]
    assert named == [("0AFF", None), (None, "Broker:7")]
    _, first = cluster.ask("GET", "/v1/revocations", query={"limit": "1"})
    assert len(first["revocations"]) == 1
    rest = {"limit": "1", "continuation": first["continuation"]}
    _, second = cluster.ask("GET", "/v1/revocations", query=rest)
    assert second["revocations"][0]["principal"] == "Broker:7"


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ({}, "give serial or principal"),
        ({"serial": "0A", "principal": "User:a"}, "give serial or principal"),
        ({"serial": "xyz"}, "no serial number"),
        ({"serial": "A" * 41}, "no serial number"),
        ({"serial": ""}, "no serial number"),
        ({"principal": "alice"}, "shows no certificate"),
        ({"principal": "User:"}, "shows no certificate"),
        ({"principal": "User:a\x00"}, "control character"),
        ({"principal": "User:" + "a" * 300}, "255 characters"),
        ({"principal": "User:a", "beforeMs": 2**60}, "a time that is over"),
    ],
)
def test_bad_input_revokes_nothing(cluster: Any, body: Any, said: str) -> None:
    status, reply = revoke(cluster, **body)
    assert status == 400, reply
    assert said in reply["message"]
    assert not len(cluster.image.credentials.revocations)
