"""Keys of subjects are shared between controllers, and destroyed on each by an erasure."""

import itertools
from base64 import b64encode
from hashlib import sha256

import pytest

from controller.erasure.messages import KeysTold, Telling, read_told
from metadata.features import BASE, ERASURE_FROM, LOGBERG_VERSION
from metadata.records import (
    RemoveUserScramCredentialRecord,
    SubjectErasedRecord,
    SubjectKeysRecord,
    UserScramCredentialRecord,
)
from metadata.sealed_blocks import SealingError, number_of_block
from metadata.sealed_places import opened_tree, scram_place
from metadata.sealing import ClusterKey
from runtime.simulated.process import Death
from tests.unit.controller.cluster import Cluster

SECRET = bytes(range(32))
SALTED = b"a salted canary, of 32 bytes ...".ljust(32, b".")


def made(nodes=3, **config):
    keys = {node: ClusterKey(SECRET) for node in range(1, nodes + 1)}
    cluster = Cluster(nodes=nodes, cluster_key=keys.__getitem__, **config)
    cluster.keys = keys
    return cluster


@pytest.fixture
def cluster():
    return made()


def set_credential(cluster, name="alice", **options):
    upsertion = {
        "name": name,
        "mechanism": "SCRAM-SHA-256",
        "iterations": 4096,
        "salt": b64encode(b"some salt").decode(),
        "saltedPassword": b64encode(SALTED).decode(),
    }
    status, reply = cluster.ask("POST", "/v1/users/scram", {"upsertions": [upsertion]}, **options)
    assert status == 200, reply
    assert reply["users"][0]["error"] is None, reply


def erase(cluster, subject="user:alice", **more):
    return cluster.ask("POST", "/v1/erasures", {"subject": subject, **more})


def blocks(cluster, name="alice"):
    """Return (place, block) of the keys of each credential that a user ever had."""
    return [
        (scram_place(name, record.mechanism, field), block)
        for record in cluster.records()
        if isinstance(record, UserScramCredentialRecord) and record.name == name
        for field, block in (("storedKey", record.stored_key), ("serverKey", record.server_key))
    ]


def opens(key, cluster, name="alice"):
    """Tell for each block of a user whether a key opens it."""

    def can(place, block):
        try:
            key.open(place, block)
        except SealingError:
            return False
        return True

    return [can(*each) for each in blocks(cluster, name)]


def from_disk(cluster, node_id):
    """Return what somebody opens who has a node's files and the cluster key."""
    key = ClusterKey(SECRET)
    files = {
        name: bytes(inode.content)
        for name, inode in cluster.platters[node_id].names.items()
        if name.startswith("keys/")
    }
    assert len(files) == 1, files.keys()
    [(name, data)] = files.items()
    key.subjects.keys = opened_tree(key, name.removeprefix("keys/"), data)
    return key


def all_destroyed(cluster):
    states = [controller._subject_keys.state for controller in cluster.controllers.values()]
    return all(state.erasures == state.destroyed > 0 for state in states)


def test_the_log_names_a_tree_that_a_majority_holds(cluster):
    [record] = [each for each in cluster.records() if isinstance(each, SubjectKeysRecord)]
    assert record.cluster_key_id == cluster.keys[1].id
    cluster.run(2)
    found = {
        node: [name for name in platter.names if name.startswith("keys/")]
        for node, platter in cluster.platters.items()
    }
    assert found == {node: [f"keys/{record.keys_id.hex()}"] for node in (1, 2, 3)}
    assert (
        len({c._subject_keys._trees[record.keys_id].encode() for c in cluster.controllers.values()})
        == 1
    )


def test_without_a_majority_that_holds_it_no_tree_is_named():
    cluster = made(leader=None)
    cluster.shared.cut(2, 3)
    for node in (2, 3):
        cluster.kill(node)
    cluster.processes[1].run(lambda: cluster.shared.lead(1))
    cluster.run(3)
    assert cluster.keys[1].subjects.keys is None


def test_no_tree_is_named_while_no_other_controller_can_get_it():
    cluster = made(leader=None)
    for node in (2, 3):
        cluster.controllers[node]._subject_keys._files.fetch = lambda *_: None
    cluster.lead(1)
    cluster.run(3)
    assert not [each for each in cluster.records() if isinstance(each, SubjectKeysRecord)]
    status, reply = erase(cluster)
    assert (status, reply["code"]) == (429, "THROTTLED")


def test_the_root_is_in_no_file_in_clear(cluster):
    cluster.run(2)
    tree = cluster.leader._subject_keys._trees[cluster.image.quorum.subject_keys_id]
    secrets = list(tree._secrets.values())
    for platter in cluster.platters.values():
        for inode in platter.names.values():
            content = bytes(inode.content)
            assert all(secret not in content for secret in secrets)


def test_secrets_of_users_are_sealed_under_their_own_keys(cluster):
    set_credential(cluster)
    set_credential(cluster, "bob")
    numbers = {number_of_block(block) for _, block in blocks(cluster)}
    assert numbers == {cluster.keys[1].number_of("user:alice")}
    assert numbers != {number_of_block(block) for _, block in blocks(cluster, "bob")}
    assert opens(cluster.keys[1], cluster) == [True, True]
    assert opens(ClusterKey(SECRET), cluster) == [False, False], "the cluster key is not enough"
    cluster.run(2)
    for node in (1, 2, 3):
        assert opens(from_disk(cluster, node), cluster) == [True, True]


def test_an_erased_subject_can_be_opened_nowhere(cluster):
    set_credential(cluster)
    set_credential(cluster, "bob")
    cluster.run(1)
    assert all(opens(cluster.keys[node], cluster) == [True, True] for node in (1, 2, 3))
    before = cluster.ledger_files(1)
    status, reply = erase(cluster)
    assert (status, reply["credentials"], reply["tokens"]) == (200, 1, 0)
    cluster.run_until(lambda: all_destroyed(cluster))

    for node in (1, 2, 3):
        assert opens(cluster.keys[node], cluster) == [False, False]
        assert opens(from_disk(cluster, node), cluster) == [False, False]
        assert opens(from_disk(cluster, node), cluster, "bob") == [True, True]
        assert cluster.holds(node, before), "no byte of the log was changed"
    assert ("alice", 1) not in cluster.image.scram.credentials
    kinds = [type(each) for each in cluster.records()]
    at = kinds.index(SubjectErasedRecord)
    assert kinds[at - 1] is RemoveUserScramCredentialRecord
    cluster.assert_equal()


def test_a_subject_comes_back_under_another_key(cluster):
    set_credential(cluster)
    erase(cluster)
    set_credential(cluster)
    cluster.run(1)
    assert opens(cluster.keys[1], cluster) == [False, False, True, True]
    erase(cluster)
    cluster.run(1)
    assert opens(cluster.keys[1], cluster) == [False] * 4
    cluster.assert_equal()


def test_a_credential_that_is_set_right_behind_an_erasure_is_kept(cluster):
    """The erasure is not committed when the credential is decided."""
    set_credential(cluster)
    erased = cluster.send("POST", "/v1/erasures", {"subject": "user:alice"})
    set_credential(cluster)
    cluster.run_until(lambda: bool(erased))
    cluster.run(1)
    assert opens(cluster.keys[1], cluster) == [False, False, True, True]


def test_a_dry_run_destroys_nothing(cluster):
    set_credential(cluster)
    status, reply = erase(cluster, dryRun=True)
    assert (status, reply["dryRun"], reply["credentials"]) == (200, True, 1)
    assert [each["type"] for each in reply["records"]] == [
        "REMOVE_USER_SCRAM_CREDENTIAL_RECORD",
        "SUBJECT_ERASED_RECORD",
    ]
    cluster.run(1)
    assert opens(cluster.keys[1], cluster) == [True, True]


def test_tokens_of_the_subject_go_too(cluster):
    status, made_token = cluster.ask("POST", "/v1/tokens", {})
    assert status == 200, made_token
    status, reply = erase(cluster)
    assert (status, reply["tokens"]) == (200, 1)
    assert not len(cluster.image.tokens.tokens)


def test_access_tokens_of_the_subject_are_revoked(cluster):
    made_tokens = {}
    for name in ("alice", "bob"):
        digest = b64encode(sha256(name.encode()).digest()).decode()
        wanted = {"principal": f"User:{name}", "name": "ci", "sha256": digest}
        status, reply = cluster.ask("POST", "/v1/access-tokens", wanted)
        assert status == 200, reply
        made_tokens[name] = reply["token"]["tokenId"]
    status, reply = erase(cluster)
    assert (status, reply["accessTokens"]) == (200, 1)
    tokens = cluster.image.credentials.access_tokens
    assert tokens[made_tokens["alice"]].revoked_ms >= 0
    assert tokens[made_tokens["bob"]].revoked_ms == -1
    assert erase(cluster)[1]["accessTokens"] == 0, "it is revoked already"


def test_the_digest_of_a_request_can_not_be_made_again(cluster):
    """It is made of the password. With its key, somebody could try guesses."""
    set_credential(cluster)
    [batch] = [
        each
        for each in cluster.batches()
        if each.header.provenance.operation == "AlterUserScramCredentials"
    ]
    number = cluster.keys[1].requests_number()
    erase(cluster)
    cluster.run(1)
    assert batch.header.provenance.request_digest
    with pytest.raises(SealingError):
        cluster.keys[1].subject_mac(number, "requests", b"")


def test_a_controller_that_was_away_destroys_before_it_uses_any_key(cluster):
    set_credential(cluster)
    cluster.run(1)
    cluster.kill(3, Death.POWER)
    assert opens(from_disk(cluster, 3), cluster) == [True, True], "it was away, so it has the key"
    erase(cluster)
    cluster.keys[3] = ClusterKey(SECRET)
    cluster.start(3)
    cluster.run(0)
    usable = []
    for _ in itertools.repeat(None, 40):
        usable.append(any(opens(cluster.keys[3], cluster)))
        cluster.run(0.05)
    assert not any(usable)
    cluster.run_until(lambda: all_destroyed(cluster))
    assert opens(from_disk(cluster, 3), cluster) == [False, False]


def test_a_controller_uses_no_key_before_it_is_current(cluster):
    """Its own log may lack an erasure that happened while it was away."""
    set_credential(cluster)
    cluster.run(1)
    cluster.processes[3].run(cluster.controllers[3].write_checkpoint)
    cluster.run(2)
    cluster.kill(3)
    erase(cluster)
    cluster.shared.cut(3)
    cluster.keys[3] = ClusterKey(SECRET)
    cluster.start(3)
    cluster.run(5)
    assert ("alice", 1) in cluster.controllers[3].image.scram.credentials, "it knows no erasure"
    assert opens(from_disk(cluster, 3), cluster) == [True, True]
    assert opens(cluster.keys[3], cluster) == [False, False]
    cluster.shared.heal()
    cluster.run_until(lambda: all_destroyed(cluster))
    assert opens(from_disk(cluster, 3), cluster) == [False, False]
    cluster.run_until(lambda: cluster.keys[3].subjects.keys is not None)
    assert opens(cluster.keys[3], cluster) == [False, False]


def test_a_controller_with_an_empty_disk_gets_the_tree_without_what_is_erased(cluster):
    set_credential(cluster)
    set_credential(cluster, "bob")
    erase(cluster)
    cluster.run(1)
    cluster.kill(3)
    cluster.platters[3].names.clear()
    cluster.keys[3] = ClusterKey(SECRET)
    cluster.start(3)
    cluster.run_until(lambda: all_destroyed(cluster))
    assert opens(from_disk(cluster, 3), cluster) == [False, False]
    assert opens(from_disk(cluster, 3), cluster, "bob") == [True, True]


def test_a_file_that_can_not_be_read_is_fetched_again(cluster):
    set_credential(cluster)
    cluster.run(1)
    cluster.kill(3)
    names = cluster.platters[3].names
    [name] = [each for each in names if each.startswith("keys/")]
    names[name].content[-1] ^= 1
    names["keys/0000000000000000"] = names[name]
    cluster.keys[3] = ClusterKey(SECRET)
    cluster.start(3)
    cluster.run(2)
    assert opens(from_disk(cluster, 3), cluster) == [True, True]
    assert opens(cluster.keys[3], cluster) == [True, True]


def test_a_crash_before_the_tree_is_written_destroys_at_the_next_start(cluster):
    set_credential(cluster)
    cluster.run(1)
    writes = []
    for controller in cluster.controllers.values():
        controller._subject_keys._files.write = lambda keys, on_done: writes.append(keys)
    erase(cluster)
    assert opens(cluster.keys[1], cluster) == [False, False]
    assert opens(from_disk(cluster, 1), cluster) == [True, True]
    assert writes
    for node in (1, 2, 3):
        cluster.kill(node, Death.POWER)
    for node in (1, 2, 3):
        cluster.keys[node] = ClusterKey(SECRET)
        cluster.start(node)
    cluster.run(0.1)
    cluster.lead(2)
    cluster.run_until(lambda: all_destroyed(cluster))
    for node in (1, 2, 3):
        assert opens(from_disk(cluster, node), cluster) == [False, False]


def test_each_controller_says_how_far_it_is(cluster):
    cluster.run(1)
    erase(cluster)
    cluster.run_until(lambda: all_destroyed(cluster))
    for node in (1, 2, 3):
        status, reply = cluster.ask("GET", "/v1/erasures", node=node)
        assert (status, reply["nodeId"], reply["held"]) == (200, node, True)
        assert (reply["erasures"], reply["destroyed"]) == (1, 1)


def test_agents_get_the_tree_sealed(cluster):
    set_credential(cluster)
    status, reply = cluster.ask("GET", "/v1/subject-keys")
    assert status == 200
    assert reply["keysId"] == cluster.image.quorum.subject_keys_id.hex()


@pytest.mark.parametrize("subject", ["alice", "user:", "", "group:x", "user:a\nb"])
def test_what_is_no_user_is_refused(cluster, subject):
    status, reply = erase(cluster, subject)
    assert (status, reply["code"]) == (400, "INVALID_REQUEST")


def test_below_the_level_there_is_no_erasure():
    cluster = made(initial_features=BASE)
    set_credential(cluster)
    assert {number_of_block(block) for _, block in blocks(cluster)} == {None}
    status, reply = erase(cluster)
    assert (status, reply["code"]) == (409, "UNSUPPORTED_VERSION") or status == 400
    assert str(ERASURE_FROM) in reply["message"]
    assert LOGBERG_VERSION in reply["message"]


def test_without_a_cluster_key_there_is_no_erasure():
    _, reply = Cluster(nodes=1).ask("POST", "/v1/erasures", {"subject": "user:alice"})
    assert reply["code"] == "SECURITY_DISABLED"


@pytest.mark.parametrize(
    "data", [b"", b"\x07", b"\x07\x03" + bytes(8), b"\x07\x01" + bytes(7), b"\x06\x01" + bytes(8)]
)
def test_what_cannot_be_read_is_passed_over(cluster, data):
    assert read_told(data) is None
    cluster.controllers[2].on_digest(1, data or b"\x07", True)


def test_messages_survive_their_encoding():
    for telling in Telling:
        told = KeysTold(telling, b"12345678")
        assert read_told(told.encode()) == told
