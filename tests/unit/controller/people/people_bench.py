"""A cluster that gives pseudonyms, and what tests of it ask and look for."""

from base64 import b64encode
from hashlib import sha256

from metadata.people import opened_name
from metadata.records import PseudonymRecord
from runtime.http.requests import Caller
from tests.unit.controller.erasure.test_erasure import made

ALICE, BOB = "User:alice@example.com", "User:bob@example.com"
NAME = ALICE.removeprefix("User:")
COVERED = ("User:*@example.com",)
ROOT = Caller("User:root", "token", "10.9.9.9")


def with_people(**config):
    return made(**{"pseudonyms": COVERED, **config})


def guarded(**config):
    """Return such a cluster in which rights count."""
    return with_people(authorization="on", super_users=frozenset({ROOT.principal}), **config)


def certificate(principal=ALICE):
    return Caller(principal, "certificate", "10.0.0.7")


def make_token(cluster, who=ROOT, owner="User:ci", name="a-key", **options):
    digest = b64encode(sha256(name.encode()).digest()).decode()
    wanted = {"principal": owner, "name": name, "sha256": digest}
    return cluster.ask("POST", "/v1/access-tokens", wanted, caller=who, **options)


def entry(principal=ALICE, **more):
    return {
        "resourceType": "TOPIC",
        "resourceName": "orders",
        "principal": principal,
        "operation": "DESCRIBE",
        **more,
    }


def allow(cluster, *entries, caller=ROOT, **more):
    body = {"acls": list(entries), **more}
    return cluster.ask("POST", "/v1/acls", body, caller=caller)


def erase(cluster, subject=f"user:{NAME}", **options):
    return cluster.ask("POST", "/v1/erasures", {"subject": subject}, caller=ROOT, **options)


def records(cluster, kind):
    return [record for record in cluster.records() if isinstance(record, kind)]


def pseudonyms(cluster):
    """Return every pseudonym that was ever given, as a principal."""
    return [f"User:{record.pseudonym}" for record in records(cluster, PseudonymRecord)]


def names(cluster, key=None):
    """Return the name behind each of them; None: it can't be opened."""
    given = records(cluster, PseudonymRecord)
    return [opened_name(key or cluster.keys[1], record) for record in given]


def last_head(cluster):
    return cluster.batches()[-1].header.provenance


def set_covered(cluster, patterns):
    """Let the settings of all controllers name other people."""
    for controller in cluster.controllers.values():
        controller._people._giving.covering._patterns = patterns
        controller._leader.clients.erasures._has_pseudonym.__self__._patterns = patterns
