"""Forgetting a controller's registration (KIP-1312): what is refused, and what comes back."""

import pytest

from metadata.features import METADATA_VERSION
from metadata.records import RegisterControllerRecord
from tests.unit.controller.cluster import Cluster

GONE = 9


@pytest.fixture
def cluster():
    cluster = Cluster()
    cluster.write(RegisterControllerRecord(GONE, b"i" * 16, False, (), ()))
    return cluster


def unregister(cluster, controller_id, **query):
    return cluster.ask("DELETE", f"/v1/controllers/{controller_id}", query=query)


def test_a_stale_registration_is_forgotten_and_levels_may_rise_again(cluster):
    assert unregister(cluster, GONE)[0] == 200
    assert cluster.image.cluster.controllers.get(GONE) is None
    assert cluster.batches()[-1].header.provenance.operation == "UnregisterController"
    cluster.assert_equal()


@pytest.mark.parametrize(
    ("controller_id", "query", "status", "code"),
    [
        (77, {}, 404, "CONTROLLER_ID_NOT_REGISTERED"),
        (1, {}, 400, "INVALID_REQUEST"),
        (1, {"force": "true"}, 400, "INVALID_REQUEST"),
        (2, {}, 400, "POLICY_VIOLATION"),
        ("x", {}, 400, "INVALID_REQUEST"),
    ],
    ids=["unknown", "active", "active, forced", "a voter", "no id"],
)
def test_what_is_refused(cluster, controller_id, query, status, code):
    end = cluster.image.offset
    found, reply = unregister(cluster, controller_id, **query)
    assert (found, reply["code"]) == (status, code)
    assert cluster.image.offset == end


def test_below_its_level_it_is_refused():
    cluster = Cluster(initial_features={METADATA_VERSION: 32})
    cluster.write(RegisterControllerRecord(GONE, b"i" * 16, False, (), ()))
    status, reply = unregister(cluster, GONE)
    assert (status, reply["code"]) == (400, "UNSUPPORTED_VERSION")
    assert "metadata.version 33" in reply["message"]


def test_a_controller_that_still_runs_registers_itself_again(cluster):
    before = cluster.image.cluster.controllers[2]
    assert unregister(cluster, 2, force="true")[0] == 200
    cluster.run_until(lambda: cluster.image.cluster.controllers.get(2) == before)


def test_a_dry_run_forgets_nothing(cluster):
    status, reply = unregister(cluster, GONE, dryRun="true")
    assert status == 200
    assert [record["type"] for record in reply["records"]] == ["UNREGISTER_CONTROLLER_RECORD"]
    assert cluster.image.cluster.controllers.get(GONE) is not None
