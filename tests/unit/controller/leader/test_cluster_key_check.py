"""The log names the cluster key, and a controller with another one does not lead (ADR 0039)."""

from base64 import b64encode

import pytest

from metadata.codec import decode_records
from metadata.features import BASE, LOGBERG_VERSION
from metadata.records import ClusterKeyRecord, UserScramCredentialRecord
from metadata.sealing import ClusterKey
from tests.unit.controller.cluster import DECLARED, Broker, Cluster

KEY, OTHER = ClusterKey(b"\x07" * 32), ClusterKey(b"\x08" * 32)
PASSWORD = {
    "name": "listener.name.external.ssl.keystore.password",
    "value": "hunter2",
    "operation": "set",
}


def make(keys=(KEY, KEY, KEY), leader=1, **config):
    """Make controllers with these keys, in their order."""
    cluster = Cluster(leader=None, cluster_key=keys[0], **config)
    for node_id, key in enumerate(keys, start=1):
        restart(cluster, node_id, key)
    cluster.run(0.5)
    if leader is not None:
        cluster.lead(leader)
        cluster.run_until(cluster.registered)
    return cluster


def restart(cluster, node_id, key, **config):
    cluster.kill(node_id)
    cluster.config |= {"cluster_key": key, **config}
    cluster.start(node_id)
    cluster.run(0.5)


def elect(cluster, node_id):
    """Elect a controller, which may resign."""
    cluster.processes[node_id].run(lambda: cluster.shared.lead(node_id))
    cluster.run(0.5)
    return cluster.controllers[node_id].active


def named(cluster):
    return [r.key_id for r in cluster.records() if isinstance(r, ClusterKeyRecord)]


def raise_level(cluster, **more):
    update = {"feature": LOGBERG_VERSION, "maxVersionLevel": 2}
    return cluster.ask("POST", "/v1/features", {"updates": [update], **more})


def set_scram(cluster):
    secrets = {"salt": "c2FsdA==", "saltedPassword": b64encode(bytes(32)).decode()}
    credential = {"name": "alice", "mechanism": "SCRAM-SHA-256", "iterations": 4096, **secrets}
    return cluster.ask("POST", "/v1/users/scram", {"upsertions": [credential]})


def test_a_new_log_names_the_key_in_its_first_batch_and_never_again():
    cluster = make()
    assert KEY.id in [
        r.key_id
        for r in decode_records(cluster.batches()[0].records)
        if isinstance(r, ClusterKeyRecord)
    ]
    cluster.lead(2)
    cluster.lead(3)
    assert named(cluster) == [KEY.id]
    cluster.assert_equal()


def test_a_controller_with_another_key_says_so_at_its_start_and_does_not_lead():
    """Nothing sealed is in the log: the name of the key alone tells."""
    cluster = make()
    restart(cluster, 3, OTHER)
    (said,) = cluster.events("cluster_key_differs")
    assert (KEY.id.hex() in said["reason"], OTHER.id.hex() in said["reason"]) == (True, True)
    assert "Put the file of the other controllers here" in said["reason"]
    note = cluster.ask("GET", "/v1/status", node=3)[1]["note"]
    assert note == said["reason"]
    assert not elect(cluster, 3)
    assert cluster.shared.nodes[3].resigned == [said["reason"]]
    assert elect(cluster, 2)
    restart(cluster, 3, KEY)
    assert elect(cluster, 3)


def test_the_controller_whose_key_differs_says_so_also_where_it_ran_before_the_log_began():
    cluster = make((KEY, KEY, OTHER))
    assert len(cluster.events("cluster_key_differs")) == 1
    assert not elect(cluster, 3)
    assert elect(cluster, 1)


def test_a_controller_without_a_key_leads_and_seals_nothing():
    cluster = make()
    restart(cluster, 3, None)
    assert elect(cluster, 3)
    assert named(cluster) == [KEY.id]
    assert set_scram(cluster)[1]["users"][0]["error"]["code"] == "SECURITY_DISABLED"
    assert not cluster.events("cluster_key_differs")


def test_a_log_without_a_name_gets_it_from_the_first_leader_with_a_key():
    cluster = make((None, KEY, OTHER))
    assert named(cluster) == []
    assert elect(cluster, 2)
    assert named(cluster) == [KEY.id]
    assert not elect(cluster, 3)


@pytest.mark.parametrize("dry_run", [True, False])
def test_below_its_level_the_log_names_no_key_and_the_raise_names_it(dry_run):
    cluster = make(initial_features=BASE)
    assert named(cluster) == []
    status, reply = raise_level(cluster, dryRun=dry_run)
    assert status == 200
    if dry_run:
        assert [r["type"] for r in reply["records"]] == [
            "FEATURE_LEVEL_RECORD",
            "CLUSTER_KEY_RECORD",
        ]
    assert named(cluster) == ([] if dry_run else [KEY.id])


def test_who_can_not_open_the_credentials_of_the_log_does_not_name_its_key():
    cluster = make(initial_features=BASE)
    assert set_scram(cluster)[0] == 200
    restart(cluster, 3, OTHER)
    assert elect(cluster, 3)
    assert raise_level(cluster)[0] == 200
    assert named(cluster) == []
    reply = set_scram(cluster)[1]["users"][0]["error"]
    assert (reply["code"], KEY.id.hex() in reply["message"]) == ("SECURITY_DISABLED", True)
    assert elect(cluster, 1)
    assert named(cluster) == [KEY.id]


def test_a_lost_key_is_replaced_where_the_operator_names_it():
    cluster = make()
    assert set_scram(cluster)[0] == 200
    for node_id in (1, 2, 3):
        restart(cluster, node_id, OTHER, cluster_key_replaces="00" * 8)
    assert not elect(cluster, 1)
    for node_id in (1, 2, 3):
        restart(cluster, node_id, OTHER, cluster_key_replaces=KEY.id.hex())
    assert elect(cluster, 1)
    assert elect(cluster, 2)
    assert named(cluster) == [KEY.id, OTHER.id]
    assert set_scram(cluster)[1]["users"][0]["error"] is None
    stored = [r.stored_key for r in cluster.records() if isinstance(r, UserScramCredentialRecord)]
    assert OTHER.id in stored[-1]
    restart(cluster, 3, KEY, cluster_key_replaces=KEY.id.hex())
    assert not elect(cluster, 3)


def test_a_password_is_sealed_under_the_key_that_the_log_names():
    cluster = make()
    broker = Broker(cluster, 1, features=DECLARED)
    broker.register()
    body = {"resources": [{"resourceType": "broker", "resourceName": "1", "configs": [PASSWORD]}]}
    assert cluster.ask("PATCH", "/v1/configs", body)[0] == 200
    restart(cluster, 3, OTHER)
    assert not elect(cluster, 3)
