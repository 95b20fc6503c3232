"""Secret values of configs never enter the log in clear, from logberg.version 2 on (ADR 0038)."""

import msgspec
import pytest

from controller.managers.config_secrets import ConfigSecrets
from ledger.batch import SEALED
from metadata.configs.definitions import DEFINITIONS, is_sensitive
from metadata.messages import AlterConfigsRequest, ConfigChange, ConfigResourceChange
from metadata.messages.wire import canonical
from metadata.records import FeatureLevelRecord
from metadata.sealed_blocks import SealingError
from metadata.sealed_places import config_place
from metadata.sealed_texts import SEALED_TEXT, block_of_text
from metadata.sealing import ClusterKey, salted_hash
from metadata.uuids import uuid7, uuid_text
from tests.unit.controller.cluster import Cluster
from tests.unit.controller.leader.test_secrets import assert_nowhere

KEY = ClusterKey(b"\x07" * 32)
PASSWORD = "a canary password"
BROKER = 4
KEYSTORE = "listener.name.inside.ssl.keystore.password"
KEY_PASSWORD = "listener.name.inside.ssl.key.password"


def cluster_of(level: int = 2, key: ClusterKey | None = KEY) -> Cluster:
    cluster = Cluster(cluster_key=key)
    cluster.decide(FeatureLevelRecord("logberg.version", level))
    return cluster


def alter(cluster, values, *, request_id=None, **more):
    """Set (None: delete) keys of broker 1."""
    changes = [
        {"name": name, "operation": "delete" if value is None else "set", "value": value}
        for name, value in values.items()
    ]
    headers = {} if request_id is None else {"x-logberg-request-id": request_id}
    body = {"resources": [{"resourceType": "broker", "resourceName": "1", "configs": changes}]}
    return cluster.ask("PATCH", "/v1/configs", body | more, headers=headers)


def value_of(cluster, key):
    return cluster.image.configs.value(BROKER, "1", key)


def opened(cluster, key):
    block = block_of_text(value_of(cluster, key))
    assert block is not None
    return KEY.open_with_salt(config_place(BROKER, "1", key), block)


@pytest.mark.parametrize(
    "key",
    [
        KEYSTORE,
        "listener.name.inside.ssl.truststore.certificates",
        KEY_PASSWORD,
        "listener.name.inside.scram-sha-256.sasl.jaas.config",
        "my.own.plug-in.setting",
    ],
)
def test_a_secret_value_is_sealed_and_opens_with_the_key(key):
    cluster = cluster_of()
    status, reply = alter(cluster, {key: PASSWORD, "log.cleaner.threads": "1"})
    assert status == 200, reply
    assert value_of(cluster, "log.cleaner.threads") == "1"
    salt, secret = opened(cluster, key)
    assert secret.decode() == PASSWORD
    assert_nowhere(cluster, PASSWORD.encode())
    (batch,) = [b for b in cluster.batches() if SEALED in b.header.extensions]
    hashes = msgspec.msgpack.decode(batch.header.extensions[SEALED])
    assert hashes == [salted_hash(salt, secret)]
    log = msgspec.json.encode(cluster.ask("GET", "/v1/log", query={"format": "json"})[1])
    assert SEALED_TEXT.encode() not in log, "records show *** in its place"
    cluster.assert_equal()


def test_the_same_secret_is_another_block_each_time_and_can_be_deleted():
    cluster = cluster_of()
    key, blocks = KEYSTORE, []
    for _ in range(2):
        alter(cluster, {key: PASSWORD})
        blocks.append(value_of(cluster, key))
    assert len({*blocks}) == 2
    alter(cluster, {key: None})
    assert value_of(cluster, key) is None


def test_a_block_opens_in_its_own_place_only():
    cluster = cluster_of()
    alter(cluster, {KEYSTORE: PASSWORD})
    block = block_of_text(value_of(cluster, KEYSTORE))
    for place in ((BROKER, "2", KEYSTORE), (BROKER, "1", KEY_PASSWORD)):
        with pytest.raises(SealingError, match="another place"):
            KEY.open(config_place(*place), block)


def test_below_the_level_a_value_stays_in_clear_as_an_older_agent_reads_it():
    cluster = cluster_of(level=1)
    assert alter(cluster, {KEYSTORE: PASSWORD})[0] == 200
    assert value_of(cluster, KEYSTORE) == PASSWORD


def test_an_old_value_in_clear_keeps_its_meaning_and_the_next_one_is_sealed():
    cluster = cluster_of(level=1)
    alter(cluster, {KEYSTORE: "old", KEY_PASSWORD: PASSWORD})
    cluster.decide(FeatureLevelRecord("logberg.version", 2))
    alter(cluster, {KEYSTORE: "new"})
    assert opened(cluster, KEYSTORE)[1] == b"new"
    assert value_of(cluster, KEY_PASSWORD) == PASSWORD


def test_without_a_cluster_key_only_secret_values_are_refused():
    cluster = cluster_of(key=None)
    status, reply = alter(cluster, {KEYSTORE: PASSWORD})
    assert (status, reply["code"]) == (403, "SECURITY_DISABLED")
    assert "cluster.key" in reply["message"]
    assert alter(cluster, {"log.cleaner.threads": "1"})[0] == 200
    assert alter(cluster, {KEYSTORE: None})[0] == 200


@pytest.mark.parametrize("level", [1, 2])
def test_a_value_that_looks_sealed_is_refused(level):
    cluster = cluster_of(level)
    status, reply = alter(cluster, {KEYSTORE: SEALED_TEXT + "TEdCUwE="})
    assert (status, reply["code"]) == (400, "INVALID_CONFIG")
    assert reply["details"]["config"] == KEYSTORE


def test_a_retry_is_known_and_the_digest_does_not_help_to_guess():
    digests = []
    for key in (KEY, ClusterKey(b"\x08" * 32)):
        cluster = cluster_of(key=key)
        request_id = uuid_text(uuid7(cluster.processes[1].clock.wall_ms(), 5))
        first = alter(cluster, {KEY_PASSWORD: PASSWORD}, request_id=request_id)
        end = cluster.image.offset
        assert alter(cluster, {KEY_PASSWORD: PASSWORD}, request_id=request_id) == first
        assert cluster.image.offset == end
        status, reply = alter(cluster, {KEY_PASSWORD: "another"}, request_id=request_id)
        assert (status, reply["code"]) == (409, "REQUEST_ID_REUSED")
        (batch,) = [b for b in cluster.batches() if SEALED in b.header.extensions]
        digests.append(batch.header.provenance.request_digest)
    assert digests[0] != digests[1]


def test_a_dry_run_shows_no_secret():
    status, reply = alter(cluster_of(), {"my.plug-in": PASSWORD}, dryRun=True)
    assert status == 200
    assert [record["data"]["value"] for record in reply["records"]] == ["***"]


def test_a_description_shows_neither_the_secret_nor_its_block():
    cluster = cluster_of()
    alter(cluster, {KEYSTORE: PASSWORD})
    status, reply = cluster.ask("GET", "/v1/configs/broker/1")
    assert status == 200
    (entry,) = [e for e in reply["configs"] if e["name"] == KEYSTORE]
    assert (entry["value"], entry["sensitive"]) == (None, True)
    assert SEALED_TEXT.encode() not in msgspec.json.encode(reply)


def test_the_level_is_not_lowered_again():
    cluster = cluster_of()
    update = {"feature": "logberg.version", "maxVersionLevel": 1, "upgradeType": "safe_downgrade"}
    status, reply = cluster.ask("POST", "/v1/features", {"updates": [update]})
    assert status == 400
    assert "sealed values of configs" in reply["message"], reply


def test_only_brokers_have_secret_keys():
    """The digest of a request looks for secrets in the changes of brokers only."""
    others = [kind for kind in DEFINITIONS if kind != BROKER]
    assert others
    for kind in others:
        assert not any(is_sensitive(kind, key) for key in (*DEFINITIONS[kind], "unknown.key"))


def test_without_a_cluster_key_the_digest_holds_no_secret():
    """A value in clear is in the log, but another request's refused secret must not be."""
    secrets, asked = ConfigSecrets(), []
    for value in (PASSWORD, "another"):
        change = ConfigChange(KEYSTORE, value), ConfigChange("log.cleaner.threads", "1")
        resource = ConfigResourceChange("broker", "1", change)
        asked.append(secrets.meaning(canonical, AlterConfigsRequest((resource,))))
    assert asked[0] == asked[1]
    assert PASSWORD.encode() not in asked[0]
    assert b"log.cleaner.threads" in asked[0]
