"""A user of a real cluster is erased: nobody opens its secrets again, and every proof still holds.

The search is over every byte of every file of the cluster's folder, of backups and of exports, with
the cluster key and every tree of keys that is found there.
"""

import base64
import hashlib
import hmac
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from logberg.client.cluster_key_file import read_cluster_key
from logberg.client.salting import salted_password
from metadata.sealed_addresses import opened_address
from metadata.sealed_blocks import OVERHEAD, SUBJECT_MAGIC, SealingError, number_of_block
from metadata.sealed_places import opened_tree, scram_place
from metadata.sealing import ClusterKey
from metadata.subject_keys import NUMBER_BYTES
from tests.process.running_cluster import RunningCluster, logberg, running

pytestmark = pytest.mark.process
PASSWORD = "the canary of alice"
SALT = b"salt of the canary"
SALTED = salted_password("SCRAM-SHA-256", PASSWORD, SALT, 4096)
CLIENT_KEY = hmac.digest(SALTED, b"Client Key", "sha256")
SECRETS = (
    PASSWORD.encode(),
    SALTED,
    CLIENT_KEY,
    hashlib.sha256(CLIENT_KEY).digest(),
    hmac.digest(SALTED, b"Server Key", "sha256"),
)
PLACES = tuple(scram_place("alice", 1, field) for field in ("storedKey", "serverKey"))
BLOCK_BYTES = OVERHEAD + NUMBER_BYTES + 32


def shapes(secret: bytes) -> Iterator[bytes]:
    """Yield how a secret may be written."""
    yield secret
    yield secret.hex().encode()
    yield secret.hex().upper().encode()
    for shift in range(3):
        # Inside a longer text, base64 has three forms of the same bytes.
        text = base64.b64encode(bytes(shift) + secret)
        inner = text[4 if shift else 0 : len(text) // 4 * 4 - 4]
        yield inner
        yield inner.replace(b"+", b"-").replace(b"/", b"_")


def files(*folders: Path) -> dict[Path, bytes]:
    """Return the content of every file; one that is replaced meanwhile may be left out."""
    found = {}
    for folder in folders:
        for path in sorted(folder.rglob("*")):
            with suppress(FileNotFoundError):
                if path.is_file():
                    found[path] = path.read_bytes()
    return found


def found_in_clear(contents: dict[Path, bytes]) -> list[Path]:
    wanted = [shape for secret in SECRETS for shape in shapes(secret)]
    return [path for path, data in contents.items() if any(each in data for each in wanted)]


def opened(contents: dict[Path, bytes], key: ClusterKey) -> tuple[int, int]:
    """Count alice's blocks in files, and those that somebody opens with all that is there."""
    keys = []
    for path, data in contents.items():
        if path.parent.name == "keys" and not path.suffix:
            held = key.copy()
            held.subjects.keys = opened_tree(key, path.name, data)
            keys.append(held)
    assert keys
    number = key.number_of("user:alice")
    seen = can = 0
    for data in contents.values():
        for match in re.finditer(re.escape(SUBJECT_MAGIC), data):
            block = data[match.start() : match.start() + BLOCK_BYTES]
            if number_of_block(block) != number:
                continue
            seen += 1
            can += any(opens(each, place, block) for each in keys for place in PLACES)
    return seen, can


def opens(key: ClusterKey, place: str, block: bytes) -> bool:
    try:
        return key.open(place, block) in SECRETS
    except SealingError:
        return False


def set_credential(cluster: RunningCluster) -> Any:
    body = {
        "upsertions": [
            {
                "name": "alice",
                "mechanism": "SCRAM-SHA-256",
                "iterations": 4096,
                "salt": base64.b64encode(SALT).decode(),
                "saltedPassword": base64.b64encode(SALTED).decode(),
            }
        ]
    }

    def done() -> bool:
        answer = cluster.ask(cluster.url(cluster.leader()), "POST", "/v1/users/scram", body)
        return bool(answer.status == 200 and not answer.body["users"][0]["error"])

    cluster.until(done, "the credential is set")


def test_the_search_finds_what_is_there() -> None:
    for secret in SECRETS:
        for form in (
            secret,
            base64.b64encode(b"x" + secret + b"yz"),
            base64.urlsafe_b64encode(b"ab" + secret),
            secret.hex().encode(),
        ):
            assert found_in_clear({Path("a"): b"before" + form + b"behind"}), secret
    assert not found_in_clear({Path("a"): bytes(1_000)})


def test_an_erased_user_is_in_no_file_that_anybody_can_open(tmp_path: Path) -> None:
    folder = tmp_path / "cluster"
    with running(folder, brokers=1, signed_head_ms=500) as cluster:
        key = read_cluster_key(folder / "config" / "cluster.key")
        set_credential(cluster)
        cluster.create("orders")
        cluster.until(cluster.settled, "all have the log")
        before = files(folder)
        assert opened(before, key)[1] > 0, "before the erasure it can be opened"
        assert found_in_clear(before) == []

        away = next(n for n in (1, 2, 3) if n != cluster.leader())
        cluster.controller(away).kill()
        connection = ("--data", str(folder), "--reason", "she asked for it", "--timeout", "5")
        said = cluster.command("erase", "user:alice", "--yes", *connection)
        assert said.code == 1, said
        assert f"controller {away}" in said.err
        cluster.controller(away).start()
        cluster.until(cluster.settled, "it is back")
        asked = re.search(r"--request-id (\S+)", said.err)
        assert asked is not None
        said = cluster.command(
            "erase", "user:alice", "--yes", "--request-id", asked[1], *connection
        )
        assert said.code == 0, said

        backups = tmp_path / "backups"
        backups.mkdir()
        for command in (
            ("backup", "create", "--to", str(backups), "--data", str(folder)),
            ("audit", "prove", "3", "--data", str(folder), "--out", str(tmp_path / "proof.json")),
        ):
            said = cluster.command(*command)
            assert said.code == 0, said
        heads = [text for n in (1, 2, 3) for text in ("--key", str(cluster.data(n) / "head.pub"))]
        now = files(folder, backups)
        seen, can = opened(now, key)
        assert (seen > 0, can) == (True, 0), "the blocks are there, and nobody opens them"
        assert found_in_clear(now) == []

        set_credential(cluster)
        assert key.number_of("user:alice") != key.number_of("user:alice", 1)
    checked = logberg("audit", "check-proof", str(tmp_path / "proof.json"), *heads, cwd=tmp_path)
    assert checked.code == 0, checked
    for n in (1, 2, 3):
        verified = logberg("log", "verify", str(cluster.data(n)), cwd=tmp_path)
        assert verified.code == 0, verified
    state = logberg("audit", "state", str(cluster.data(1)), "--output", "json", cwd=tmp_path)
    assert state.code == 0, state
    after = files(folder, backups)
    assert found_in_clear({**after, Path("state"): state.out.encode()}) == []
    assert opened(after, key)[1] == 0


# -- addresses ----------------------------------------------------------------------------------

ALICE, NOBODY, OTHER, BOB = "127.0.13.77", "127.0.13.88", "127.0.13.89", "127.0.13.99"
"""From where alice asks, two people without a credential, and bob, who is not erased."""
ERASED = {ALICE, NOBODY, OTHER}
TEXTS = re.compile(rb"logberg-sealed:([A-Za-z0-9_-]+={0,2})")


def addresses_in(contents: dict[Path, bytes], key: ClusterKey) -> tuple[int, set[str]]:
    """Count sealed addresses in files, and return what all the keys that are there open."""
    keys = []
    for path, data in contents.items():
        if path.parent.name == "keys" and not path.suffix:
            held = key.copy()
            held.subjects.keys = opened_tree(key, path.name, data)
            keys.append(held)
    texts = {match[0].decode() for data in contents.values() for match in TEXTS.finditer(data)}
    found = set()
    for held in keys:
        for text in texts:
            for who in ("User:alice", "User:bob", ""):
                with suppress(SealingError):
                    found.add(opened_address(held, who, text))
    return len(texts), found


def naming(contents: dict[Path, bytes], address: str) -> list[Path]:
    """Return the files in which an address stands; what processes print is out of reach."""
    forms = [address.encode(), *shapes(address.encode())]
    return [
        path
        for path, data in contents.items()
        if path.parent.name != "output" and any(each in data for each in forms)
    ]


def test_erased_addresses_are_in_no_file_that_anybody_can_open(tmp_path: Path) -> None:
    folder, made = tmp_path / "cluster", tmp_path / "made"
    made.mkdir()
    users = ("User:alice", "User:bob")
    with running(
        folder, brokers=1, principals=users, seal_addresses=True, attempts_interval_ms=200
    ) as cluster:
        key = read_cluster_key(folder / "config" / "cluster.key")
        connection = ("--data", str(folder), "--reason", "the person asked for it")
        for name, source in (("alice", ALICE), ("bob", BOB)):
            granted = cluster.command(
                "acls", "role", "grant", "operator", f"User:{name}", *connection
            )
            assert granted.code == 0, granted
            topics = [{"name": f"of-{name}", "numPartitions": 1, "replicationFactor": 1}]
            token = cluster.token_of(f"User:{name}")

            def created(body: Any = topics, token: str = token, source: str = source) -> bool:
                url, wanted = cluster.url(cluster.leader()), {"topics": body}
                answer = cluster.ask(url, "POST", "/v1/topics", wanted, token=token, source=source)
                return answer.status == 200 and not answer.body["topics"][0]["error"]

            cluster.until(created, "the topic is created")
        url = cluster.url(cluster.leader())
        for source in (NOBODY, OTHER):
            refused = cluster.ask(url, "GET", "/v1/topics", token="nobody knows it", source=source)
            assert refused.status == 401

        def sealed() -> bool:
            # A refused handshake at the start is an attempt too, from an address of its own.
            return addresses_in(files(folder), key)[1] >= {BOB, *ERASED}

        cluster.until(sealed, "what they did is in the log, and opens")
        for address in (BOB, *ERASED):
            assert naming(files(folder), address) == []

        for subject in ("user:alice", f"from:{NOBODY}"):
            said = cluster.command("erase", subject, "--yes", *connection)
            assert said.code == 0, said
            assert "1 sealed addresses" in said.out, said
        # What the other one has is under a number that nobody makes any more.
        unseen = cluster.command("erase", f"from:{OTHER}", "--dry-run", *connection)
        assert "Nobody looked which of them are this one" in unseen.out, unseen
        with_key = ("--cluster-key", str(folder / "config" / "cluster.key"))
        said = cluster.command("erase", f"from:{OTHER}", "--yes", *with_key, *connection)
        assert (said.code, "1 older keys" in said.out) == (0, True), said
        for command in (
            ("backup", "create", "--to", str(made / "backup"), "--data", str(folder)),
            ("audit", "prove", "3", "--data", str(folder), "--out", str(made / "proof.json")),
        ):
            (made / "backup").mkdir(exist_ok=True)
            said = cluster.command(*command)
            assert said.code == 0, said
        now = files(folder, made)
        seen, opened_now = addresses_in(now, key)
        assert seen > 3, "the administrator's is there too"
        assert (BOB in opened_now, ERASED & opened_now) == (True, set())
        for address in ERASED:
            assert naming(now, address) == []
    for n in (1, 2, 3):
        verified = logberg("log", "verify", str(cluster.data(n)), cwd=tmp_path)
        assert verified.code == 0, verified
    data = str(cluster.data(1))
    for told in (
        ("audit", "who", data, "topic:of-alice", "--index", str(made / "index")),
        ("audit", "run", "changes", data, "--out", str(made / "changes.csv")),
        ("audit", "run", "batches", data, "--out", str(made / "batches.csv")),
        ("audit", "export", data, "--format", "ocsf"),
        ("audit", "log", data, "--cluster-key", str(folder / "config" / "cluster.key")),
        ("audit", "report", data, "--out", str(made / "report")),
    ):
        said = logberg(*told, cwd=tmp_path)
        assert said.code == 0, said
        (made / f"said-by-{'-'.join(told[1:3]).replace('/', '-')}").write_text(said.out)
    after = files(folder, made)
    opened_now = addresses_in(after, key)[1]
    assert (BOB in opened_now, ERASED & opened_now) == (True, set())
    for address in ERASED:
        assert naming(after, address) == []
