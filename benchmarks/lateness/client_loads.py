"""The loads of `make lateness` for the routes about clients.

Rule: as in `benchmarks.lateness.loads`, which takes these rows into its table.
"""

import asyncio
import json
from base64 import b64encode
from hashlib import sha256
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from benchmarks.lateness.load import Load
from benchmarks.lateness.stage import TOKEN, Stage
from metadata.messages.joined_changes import CHANGES_PATH

_JOINED = 950
"""Small changes in one request, within the limit of objects."""
_ACLS = 2_000
"""Entries in one request: the most."""


async def _changed(stage: Stage, method: str, path: str, body: dict[str, Any]) -> Any:
    status, answer = await stage.change(method, path, body, bearer=TOKEN)
    assert status == 200, answer
    return answer


async def _acls(stage: Stage) -> None:
    """Entries come 2,000 at a time, are listed and checked, and all go at once."""
    for turn in stage.going_on():
        for number in range(5):
            entries = [
                {
                    "resourceType": "TOPIC",
                    "resourceName": f"t-{turn}-{number}-{entry}",
                    "principal": "User:alice",
                    "operation": "READ",
                }
                for entry in range(_ACLS)
            ]
            await _changed(stage, "POST", "/v1/acls", {"acls": entries})
        await stage.json("/v1/acls?principal=User:bob")
        name = "t" * 249
        query = f"principal=User:alice&operation=READ&resourceType=TOPIC&resourceName={name}"
        await stage.json(f"/v1/acls/check?{query}")
        for dry in (True, False):
            body = {"filters": [{"principal": "User:alice"}], "dryRun": dry}
            await _changed(stage, "DELETE", "/v1/acls", body)


async def _joined(stage: Stage) -> None:
    """As many changes in one request as its limits allow, each with a batch of its own."""
    for turn in stage.going_on():
        for value in (1024.0, None):
            changes = [
                {
                    "method": "POST",
                    "path": "/v1/quotas",
                    "body": {
                        "entries": [
                            {
                                "entity": [{"entityType": "user", "entityName": f"j-{turn}-{n}"}],
                                "operations": [{"key": "producer_byte_rate", "value": value}],
                            }
                        ]
                    },
                }
                for n in range(_JOINED)
            ]
            answer = await _changed(stage, "POST", CHANGES_PATH, {"changes": changes})
            assert {each["status"] for each in answer["outcomes"]} <= {200, 429}, answer


async def _quotas(stage: Stage) -> None:
    """1,000 entities at a time get quotas, are listed and lose them."""
    for turn in stage.going_on():
        for value in (1024.0, None):
            entries = [
                {
                    "entity": [{"entityType": "user", "entityName": f"u-{turn}-{number}"}],
                    "operations": [{"key": "producer_byte_rate", "value": value}],
                }
                for number in range(1_000)
            ]
            await _changed(stage, "POST", "/v1/quotas", {"entries": entries})
            await stage.json("/v1/quotas?userMatch=any")
            await stage.json(f"/v1/quotas/resolve?user=u-{turn}-1&clientId=c")


async def _users(stage: Stage) -> None:
    """1,000 credentials at a time are sealed, listed and removed."""
    for turn in stage.going_on():
        names = [f"user-{turn}-{number}" for number in range(1_000)]
        secrets = {
            "iterations": 4096,
            "salt": "c2FsdA==",
            "saltedPassword": b64encode(bytes(32)).decode(),
        }
        wanted = [{"name": name, "mechanism": "SCRAM-SHA-256", **secrets} for name in names]
        await _changed(stage, "POST", "/v1/users/scram", {"upsertions": wanted})
        await stage.json("/v1/users")
        await stage.json(f"/v1/users/{names[0]}")
        gone = [{"name": name, "mechanism": "SCRAM-SHA-256"} for name in names]
        await _changed(stage, "POST", "/v1/users/scram", {"deletions": gone})


async def _erasures(stage: Stage) -> None:
    """A user gets a credential, and is erased; agents read the keys."""
    for turn in stage.going_on():
        secrets = {
            "iterations": 4096,
            "salt": "c2FsdA==",
            "saltedPassword": b64encode(bytes(32)).decode(),
        }
        wanted = [{"name": f"gone-{turn}", "mechanism": "SCRAM-SHA-256", **secrets}]
        await _changed(stage, "POST", "/v1/users/scram", {"upsertions": wanted})
        await _changed(stage, "POST", "/v1/erasures", {"subject": f"user:gone-{turn}"})
        await stage.json("/v1/erasures")
        await stage.json("/v1/subject-keys")
        await stage.json("/v1/pseudonyms")


async def _tokens(stage: Stage) -> None:
    """Tokens are made, renewed, listed and ended."""
    for _ in stage.going_on():
        made = await _changed(stage, "POST", "/v1/tokens", {"renewers": ["User:a"]})
        path, held = f"/v1/tokens/{made['token']['tokenId']}", {"hmac": made["hmac"]}
        await _changed(stage, "POST", f"{path}/renew", {**held, "renewPeriodMs": 60_000})
        await stage.json("/v1/tokens?owner=User:a")
        await _changed(stage, "POST", f"{path}/expire", held)


async def _access_tokens(stage: Stage) -> None:
    """Access tokens are made, rotated, listed and revoked."""
    for turn in stage.going_on():
        drawn = [sha256(f"{turn} {number}".encode()).digest() for number in range(2)]
        first, second = (b64encode(each).decode() for each in drawn)
        body = {"principal": "User:a", "sha256": first}
        made = await _changed(stage, "POST", "/v1/access-tokens", body)
        path = f"/v1/access-tokens/{made['token']['tokenId']}"
        made = await _changed(stage, "POST", f"{path}/rotate", {"sha256": second})
        await stage.json("/v1/access-tokens?principal=User:a")
        path = f"/v1/access-tokens/{made['token']['tokenId']}"
        await _changed(stage, "POST", f"{path}/revoke", {})


async def _join_tokens(stage: Stage) -> None:
    """Nodes join: each gets a certificate, which the leader signs."""
    key = ec.generate_private_key(ec.SECP256R1())
    request = x509.CertificateSigningRequestBuilder().subject_name(x509.Name([]))
    csr = request.sign(key, hashes.SHA256()).public_bytes(serialization.Encoding.PEM)
    for turn in stage.going_on():
        secret = f"lgbj_{turn:043d}"
        digest = b64encode(sha256(secret.encode()).digest()).decode()
        body = {"role": "broker", "nodeId": turn, "sha256": digest}
        made = await _changed(stage, "POST", "/v1/join-tokens", body)
        await stage.json("/v1/authority")
        asked = {"csr": b64encode(csr).decode()}
        status, answer = await stage.change("POST", "/v1/join", asked, bearer=secret)
        assert status == 200, answer
        await stage.json("/v1/join-tokens")
        path = f"/v1/join-tokens/{made['token']['tokenId']}/revoke"
        await _changed(stage, "POST", path, {})


async def _revocations(stage: Stage) -> None:
    """Certificates are revoked, listed and reinstated."""
    for turn in stage.going_on():
        for body in ({"serial": f"{turn:X}"}, {"principal": f"User:{turn}"}):
            await _changed(stage, "POST", "/v1/revocations", body)
            await stage.json("/v1/revocations")
            await _changed(stage, "DELETE", "/v1/revocations", body)


async def _producer_ids(stage: Stage) -> None:
    """A broker takes block after block."""
    broker = stage.brokers.brokers[0]
    for _ in stage.going_on():
        body = {"brokerId": broker.broker_id, "brokerEpoch": broker.epoch}
        await _changed(stage, "POST", "/v1/producer-ids", body)


async def _controller_forgotten(stage: Stage) -> None:
    """A standby is forgotten, and registers itself again. Levels stay raised: this load is last."""
    update = {"feature": "metadata.version", "maxVersionLevel": 33}
    await _changed(stage, "POST", "/v1/features", {"updates": [update]})
    standby = next(n for n in stage.controllers.ports if n != stage.leader)
    for _ in stage.going_on():
        status, answer = await stage.change("DELETE", f"/v1/controllers/{standby}?force=true")
        again = status == 404 and answer["code"] == "CONTROLLER_ID_NOT_REGISTERED"
        assert status == 200 or again, answer


async def _voters_changed(stage: Stage) -> None:
    """A standby is removed from the voters, and added again."""
    standby = next(n for n in stage.controllers.ports if n != stage.leader)
    for _ in stage.going_on():
        for action in ("remove", "add"):
            body = {"action": action, "nodeId": standby}
            status, answer = await stage.change("POST", "/v1/quorum/voters", body)
            # Until the change before is committed, and the standby has caught up.
            assert status == 200 or answer["code"] == "VOTERS_NOT_READY", answer
        # Whoever leads stays: a load runs in one epoch.
        await _changed(stage, "POST", "/v1/quorum/transfer", {"nodeId": stage.leader})


async def _refused(stage: Stage) -> None:
    """Callers whose token nobody knows, each for another thing."""
    headers = {"authorization": "Bearer nobody-knows-this-token"}
    for turn in stage.going_on():
        for number in range(200):
            path = f"/v1/topics/t-{turn}-{number}"
            status, _ = await stage.ask("GET", path, b"", headers=headers, keep=True)
            assert status == 401, status


async def _head_keys(stage: Stage) -> None:
    """A standby is asked for another key for heads, again and again, and draws one in between."""
    standby = next(n for n in stage.controllers.ports if n != stage.leader)
    while True:
        status, data = await stage.ask("GET", "/v1/quorum/head-keys", keep=True)
        assert status == 200, (status, data)
        if standby in {each["nodeId"] for each in json.loads(data)["keys"]}:
            break
        # A key is registered with the first signed head.
        await asyncio.sleep(1)
    for _ in stage.going_on():
        await _changed(stage, "POST", "/v1/quorum/head-keys", {"nodeId": standby})
        status, data = await stage.ask("GET", "/v1/quorum/head-keys")
        assert status == 200, (status, data)


CLIENT_LOADS = (
    Load(
        "10,000 access control entries come and go",
        ("create_acls", "delete_acls", "list_acls", "check_acl"),
        _acls,
        ("AccessControlEntryRecord", "RemoveAccessControlEntryRecord"),
    ),
    Load("callers that are refused", ("describe_topic",), _refused, ("AttemptsRecord",)),
    Load("950 changes in one request", ("make_changes",), _joined, ("ClientQuotaRecord",)),
    Load(
        "1,000 quotas come and go",
        ("alter_quotas", "list_quotas", "resolve_quotas"),
        _quotas,
        ("ClientQuotaRecord",),
    ),
    Load(
        "1,000 SCRAM credentials come and go",
        ("alter_scram", "list_users", "describe_user"),
        _users,
        ("UserScramCredentialRecord", "RemoveUserScramCredentialRecord"),
    ),
    Load(
        "users are erased",
        ("erase_subject", "describe_erasures", "read_subject_keys", "list_pseudonyms"),
        _erasures,
        ("SubjectErasedRecord",),
    ),
    Load(
        "delegation tokens",
        ("create_token", "renew_token", "expire_token", "list_tokens"),
        _tokens,
        ("DelegationTokenRecord", "RemoveDelegationTokenRecord"),
    ),
    Load(
        "access tokens",
        (
            "create_access_token",
            "rotate_access_token",
            "revoke_access_token",
            "list_access_tokens",
        ),
        _access_tokens,
        ("AccessTokenRecord",),
    ),
    Load(
        "nodes that join",
        ("create_join_token", "revoke_join_token", "list_join_tokens", "join", "authority"),
        _join_tokens,
        ("JoinTokenRecord",),
    ),
    Load(
        "revocations of certificates",
        ("revoke_certificates", "reinstate_certificates", "list_revocations"),
        _revocations,
        ("CertificateRevocationRecord", "RemoveCertificateRevocationRecord"),
    ),
    Load(
        "blocks of producer ids",
        ("allocate_producer_ids",),
        _producer_ids,
        ("ProducerIdsRecord",),
    ),
    Load(
        "a voter comes and goes",
        ("change_voters", "transfer_leadership"),
        _voters_changed,
        ("VotersRecord",),
    ),
    Load(
        "a key for heads is changed",
        ("list_head_keys", "change_head_key"),
        _head_keys,
        ("HeadKeyRecord", "SignedHeadRecord"),
    ),
    Load(
        "a controller is forgotten and comes back",
        ("unregister_controller",),
        _controller_forgotten,
        ("UnregisterControllerRecord",),
    ),
)
