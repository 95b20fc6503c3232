"""A registration that can't be true is refused with the field's name, and isn't logged."""

import msgspec
import pytest

from metadata.errors import ErrorCode
from metadata.messages import Endpoint, SupportedFeature
from metadata.plain_text import control_character
from runtime.http.requests import Caller
from tests.unit.controller.cluster import DECLARED, Broker, Cluster

ENDPOINT = Endpoint(name="PLAINTEXT", host="localhost", port=9092)
FEATURE = SupportedFeature(name="x", min_supported_version=1, max_supported_version=2)
CONTROLS = ["\x00", "\n", "\r", "\t", "\x1b", "\x7f", "\x85", "\x9b", "\u2028", "\u202e", "\u2066"]


def endpoint(**changes):
    return {"endpoints": (msgspec.structs.replace(ENDPOINT, **changes),)}


def feature(**changes):
    return {"features": (msgspec.structs.replace(FEATURE, **changes),)}


@pytest.fixture(scope="module")
def cluster():
    return Cluster(nodes=1)


WRONG = [
    ("endpoints", {"endpoints": (ENDPOINT, ENDPOINT)}),
    ("endpoints[0].name", endpoint(name=" ")),
    ("endpoints[0].host", endpoint(host=" ")),
    ("endpoints[0].host", endpoint(host="a host")),
    ("endpoints[0].port", endpoint(port=0)),
    ("endpoints[0].securityProtocol", endpoint(security_protocol=4)),
    ("endpoints[0].securityProtocol", endpoint(security_protocol=-1)),
    ("features", {"features": (FEATURE, FEATURE)}),
    ("features[0].name", feature(name=" ")),
    ("features[0].minSupportedVersion", feature(min_supported_version=3)),
    ("features[0].minSupportedVersion", feature(min_supported_version=-1)),
    *(("rack", {"rack": f"a{control}b"}) for control in CONTROLS),
    *(("endpoints[0].name", endpoint(name=f"a{control}b")) for control in CONTROLS),
    *(("endpoints[0].host", endpoint(host=f"a{control}b")) for control in CONTROLS),
    *(("features[0].name", feature(name=f"a{control}b")) for control in CONTROLS),
]


@pytest.mark.parametrize(("field", "changes"), WRONG, ids=repr)
def test_a_registration_that_can_t_be_true_is_refused_by_its_field(cluster, field, changes):
    broker = Broker(cluster, 1)
    end = cluster.image.offset
    registration = msgspec.structs.replace(broker.registration, **changes)
    reply = broker.fetch(registration=registration)
    assert reply.error.known_code() is ErrorCode.INVALID_REGISTRATION
    assert reply.error.message.startswith(f"{field}: ")
    assert not control_character(reply.error.message)
    assert cluster.image.offset == end


@pytest.mark.parametrize(
    "changes",
    [
        {
            "endpoints": (
                ENDPOINT,
                msgspec.structs.replace(ENDPOINT, name="SSL", security_protocol=3),
            )
        },
        {"features": (*DECLARED, FEATURE, msgspec.structs.replace(FEATURE, name="y"))},
        {"features": (*DECLARED, msgspec.structs.replace(FEATURE, min_supported_version=0))},
        {"rack": "östlich, 2. Reihe [a]"},
        endpoint(host="fe80::1%eth0"),
    ],
    ids=repr,
)
def test_what_can_be_true_is_registered(changes):
    cluster = Cluster(nodes=1)
    broker = Broker(cluster, 1)
    registration = msgspec.structs.replace(broker.registration, **changes)
    assert broker.fetch(registration=registration).error is None


@pytest.mark.parametrize("control", CONTROLS, ids=repr)
@pytest.mark.parametrize(
    "header", ["x-logberg-reason", "x-logberg-client-id", "x-logberg-on-behalf-of"]
)
def test_a_header_with_a_control_character_is_refused_by_its_name(cluster, header, control):
    end = cluster.image.offset
    headers = {header: f"a{control}b"}
    caller = Caller("Broker:1", "certificate")
    status, reply = cluster.ask("DELETE", "/v1/topics/t", headers=headers, caller=caller)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")
    assert reply["message"].startswith(f"header {header}: ")
    assert cluster.image.offset == end
