"""A person of a real cluster is in it under a pseudonym, and once erased under nothing else.

The search is over every byte of every file of the cluster's folder, of its archive, of backups and
of exports, with the cluster key and every tree of keys that is found there. What the processes
print, the settings, and the certificates of people are out of reach.
"""

import datetime as dt
import re
from pathlib import Path

import pytest

from logberg.client.cluster_key_file import read_cluster_key
from logberg.local.local_ca import LocalCertificateAuthority
from metadata.people import opened_name
from metadata.pseudonyms import pseudonym_of
from metadata.records import PseudonymRecord
from metadata.sealed_blocks import OVERHEAD, SUBJECT_MAGIC, number_of_block
from metadata.sealed_places import opened_tree
from metadata.sealing import ClusterKey
from metadata.subject_keys import NUMBER_BYTES
from tests.process.running_cluster import Answer, RunningCluster, logberg, running
from tests.process.test_archive import SETTINGS, local
from tests.process.test_erasure import files, shapes

pytestmark = pytest.mark.process
ALICE, BOB = "alice.canary@example.com", "bob.canary@example.com"
BLOCK_BYTES = OVERHEAD + NUMBER_BYTES + 64
OUT_OF_REACH = {"certs", "output"}


def naming(contents: dict[Path, bytes], name: str) -> list[Path]:
    """Return the files in which a name stands, in whatever form."""
    forms = [*shapes(name.encode()), *shapes(name.split("@", maxsplit=1)[0].encode())]
    return [
        path
        for path, data in contents.items()
        if path.parent.name not in OUT_OF_REACH and any(each in data for each in forms)
    ]


def names_in(contents: dict[Path, bytes], key: ClusterKey) -> set[str]:
    """Return the names that somebody opens who has all these files and the cluster key."""
    keys, found = [], set()
    for path, data in contents.items():
        if path.parent.name == "keys" and not path.suffix:
            held = key.copy()
            held.subjects.keys = opened_tree(key, path.name, data)
            keys.append(held)
    assert keys
    for data in contents.values():
        for match in re.finditer(re.escape(SUBJECT_MAGIC), data):
            block = data[match.start() : match.start() + BLOCK_BYTES]
            number = number_of_block(block)
            if number is not None:
                record = PseudonymRecord(pseudonym_of(number), block)
                found |= {opened_name(each, record) for each in keys}
    return {name for name in found if name is not None}


def create(cluster: RunningCluster, topic: str, cert: Path) -> Answer:
    wanted = {"topics": [{"name": topic, "numPartitions": 1, "replicationFactor": 1}]}

    def answered() -> Answer | None:
        url = cluster.url(cluster.leader())
        answer = cluster.ask(url, "POST", "/v1/topics", wanted, token=None, cert=cert)
        # A new leader that gets the keys of subjects in this moment.
        return None if answer.status == 429 else answer

    return cluster.until(answered, f"topic {topic} is created or refused")


def test_an_erased_name_is_in_no_file_that_anybody_can_open(tmp_path: Path) -> None:
    folder, made = tmp_path / "cluster", tmp_path / "made"
    (made / "backup").mkdir(parents=True)
    settings = {
        **SETTINGS,
        "archive": {"to": str(made / "archive"), "keep_bytes": 0, "every_ms": 200},
        "pseudonyms": ["User:*@example.com"],
        "attempts_interval_ms": 200,
    }
    with running(folder, brokers=1, **settings) as cluster:
        key = read_cluster_key(folder / "config" / "cluster.key")
        connection = ("--data", str(folder), "--reason", "the person asked for it")
        authority = LocalCertificateAuthority(
            folder / "certs", cluster.local.cluster_id, dt.datetime.now(dt.UTC)
        )
        certificates = {
            name: authority.issue(f"user-{name}", f"user://{cluster.local.cluster_id}/{name}")[0]
            for name in (ALICE, BOB)
        }
        for name, cert in certificates.items():
            refused = create(cluster, f"not-of-{name.split('.')[0]}", cert)
            assert refused.status == 403, refused
            granted = cluster.command(
                "acls", "role", "grant", "operator", f"User:{name}", *connection
            )
            assert granted.code == 0, granted
            created = create(cluster, f"of-{name.split('.')[0]}", cert)
            assert (created.status, created.body["topics"][0]["error"]) == (200, None), created

        def known() -> bool:
            return names_in(files(folder), key) >= {ALICE, BOB}

        cluster.until(known, "the names are in the log, sealed")
        cluster.until(cluster.settled, "all have the log")
        for name in (ALICE, BOB):
            assert naming(files(folder), name) == []

        said = cluster.command("erase", f"user:{ALICE}", "--yes", *connection)
        assert said.code == 0, said
        assert "1 sealed values that become unreadable" in said.out
        again = cluster.command("erase", f"user:{ALICE}", "--yes", *connection)
        assert (again.code, "no pseudonym stands for" in again.err) == (1, True), again
        assert create(cluster, "of-bob-again", certificates[BOB]).status == 200
        number = 0

        def moved() -> bool:
            nonlocal number
            cluster.create(f"topic-{number}", partitions=40)
            number += 1
            return all(local(cluster, n)[0] > 0 for n in (1, 2, 3))

        cluster.until(moved, "the batches of both are in the archive")
        assert names_in({**files(made), **files(cluster.data(1) / "keys")}, key) == {BOB}
        for command in (
            ("backup", "create", "--to", str(made / "backup"), "--data", str(folder)),
            ("audit", "prove", "3", "--data", str(folder), "--out", str(made / "proof.json")),
        ):
            said = cluster.command(*command)
            assert said.code == 0, said
        now = files(folder, made)
        assert names_in(now, key) == {BOB}
        for name in (ALICE, BOB):
            assert naming(now, name) == []
        refused = create(cluster, "of-nobody", certificates[ALICE])
        assert refused.status == 403, "whoever comes back has none of the rights"
    for n in (1, 2, 3):
        verified = logberg("log", "verify", str(cluster.data(n)), cwd=tmp_path)
        assert verified.code == 0, verified
    data = str(cluster.data(1))
    for told in (
        ("audit", "who", data, "topic:of-alice", "--index", str(made / "index")),
        ("audit", "run", "changes", data, "--out", str(made / "changes.csv")),
        ("audit", "run", "batches", data, "--out", str(made / "batches.csv")),
        ("audit", "export", data, "--format", "ocsf"),
        ("audit", "report", data, "--out", str(made / "report")),
        ("audit", "state", data, "--output", "json"),
    ):
        said = logberg(*told, cwd=tmp_path)
        assert said.code == 0, said
        (made / f"said-by-{'-'.join(told[1:3]).replace('/', '-')}").write_text(said.out)
    for name in (ALICE, BOB):
        assert naming(files(folder, made), name) == []
