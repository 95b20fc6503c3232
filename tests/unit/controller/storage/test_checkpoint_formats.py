"""Which format a checkpoint is in, and that every node beside us can read it (ADR 0041)."""

import pytest

from metadata.features import COLUMNS_FROM, LOGBERG_VERSION, METADATA_VERSION, SUPPORTED
from metadata.messages import SupportedFeature
from snapshots.checkpoint import FOLDER, parse_header
from snapshots.store import list_checkpoints
from tests.unit.controller.cluster import DECLARED, Broker, Cluster
from tests.unit.controller.storage.states_on_disk import (
    SMALL,
    checkpoint,
    fill,
    forget_journal,
    wipe,
)

BELOW = COLUMNS_FROM - 1
OLD = {LOGBERG_VERSION: BELOW, METADATA_VERSION: 33}


def cluster_below():
    cluster = Cluster(initial_features=OLD, **SMALL)
    assert cluster.image.features.levels[LOGBERG_VERSION] == BELOW
    return cluster


def raise_level(cluster, level=COLUMNS_FROM):
    update = {"feature": LOGBERG_VERSION, "maxVersionLevel": level, "upgradeType": "upgrade"}
    return cluster.ask("POST", "/v1/features", {"updates": [update]})


def format_on_disk(cluster, node_id):
    disk = cluster.shared.disks[node_id]
    newest = list_checkpoints(disk)[-1]
    return parse_header(disk.read(f"{FOLDER}/{newest.name}"))[0].format


def features(highest):
    return tuple(
        SupportedFeature(
            name=name,
            min_supported_version=low,
            max_supported_version=highest if name == LOGBERG_VERSION else high,
        )
        for name, (low, high) in sorted(SUPPORTED.items())
    )


def test_checkpoints_are_in_format_1_until_the_level_is_finalised():
    cluster = cluster_below()
    cluster.online(1)
    fill(cluster, 3)
    for node_id in (1, 2):
        checkpoint(cluster, node_id)
        assert format_on_disk(cluster, node_id) == 1
    assert raise_level(cluster)[0] == 200
    for node_id in (1, 2):
        checkpoint(cluster, node_id)
        assert format_on_disk(cluster, node_id) == 2
    # The same state gives the same file on every node.
    names = [list_checkpoints(cluster.shared.disks[node_id])[-1].name for node_id in (1, 2)]
    files = {cluster.shared.disks[n].read(f"{FOLDER}/{names[0]}") for n in (1, 2)}
    assert (names[0] == names[1], len(files)) == (True, 1)


def test_a_node_restarts_from_a_checkpoint_of_either_format():
    cluster = cluster_below()
    cluster.online(1)
    fill(cluster, 3)
    for raised in (False, True):
        if raised:
            assert raise_level(cluster)[0] == 200
        written = checkpoint(cluster, 2)
        fill(cluster, 2, start=100 + 10 * raised)
        cluster.kill(2)
        cluster.start(2)
        cluster.run(1.0)
        assert cluster.events("image_loaded")[-1]["began_at"] == written.offset
        cluster.assert_equal()


def test_a_new_node_catches_up_by_a_checkpoint_in_columns():
    cluster = Cluster(**SMALL)
    cluster.online(1)
    fill(cluster)
    for node_id in (1, 2):
        checkpoint(cluster, node_id)
    assert format_on_disk(cluster, 1) == 2
    forget_journal(cluster)
    cluster.kill(3)
    wipe(cluster, 3)
    cluster.start(3)
    cluster.run(5.0)
    assert format_on_disk(cluster, 3) == 2
    cluster.assert_equal()


@pytest.mark.parametrize("online", [True, False])
def test_the_level_is_not_finalised_while_a_broker_reads_format_1_only(online):
    cluster = cluster_below()
    broker = Broker(cluster, 7, features=features(BELOW))
    broker.register()
    if not online:
        cluster.run(60.0)
    status, reply = raise_level(cluster)
    assert (status, reply["code"]) == (400, "INVALID_UPDATE_VERSION")
    assert "broker 7 doesn't support logberg.version 3" in reply["message"]
    checkpoint(cluster, 1)
    assert format_on_disk(cluster, 1) == 1


def test_afterwards_such_a_broker_is_refused():
    cluster = cluster_below()
    assert raise_level(cluster)[0] == 200
    broker = Broker(cluster, 7, features=features(BELOW))
    replies = broker.send()
    cluster.run(0.5)
    assert replies[0].error.code == "UNSUPPORTED_VERSION"
    assert features(SUPPORTED[LOGBERG_VERSION].high) == DECLARED


def test_the_level_can_not_be_lowered():
    cluster = Cluster(**SMALL)
    update = {"feature": LOGBERG_VERSION, "maxVersionLevel": 2, "upgradeType": "safe_downgrade"}
    status, reply = cluster.ask("POST", "/v1/features", {"updates": [update]})
    assert (status, reply["code"]) == (400, "INVALID_UPDATE_VERSION")
    assert "checkpoints in format 2, " in reply["message"]
