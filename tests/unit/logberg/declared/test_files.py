"""What a file declares, and what is said of a bad one: file, line, field, and what to do."""

from pathlib import Path

import pytest

from logberg.cli.failure import Failure
from logberg.declared.declaration import Declaration, read_declaration
from logberg.declared.passwords import with_passwords
from metadata.messages import (
    AclEntry,
    ApplyRequest,
    DeclaredConfigs,
    DeclaredCredential,
    DeclaredKind,
    DeclaredQuotas,
    DeclaredTopic,
    PlannedItem,
    QuotaEntityPart,
)

WHOLE = """\
version: 1
topics:
  - name: on            # no boolean, and 010 is no number
    partitions: 3
    replicationFactor: "2"
    configs: {retention.ms: 010, cleanup.policy: ~, unclean.leader.election.enable: yes}
  - name: "null"
    assignments: [[1, 2], [2, 1]]
configs:
  - {type: broker, name: default, configs: {min.insync.replicas: 2}}
---
quotas:
  - entity: {user: alice, client-id: <default>}
    quotas: {producer_byte_rate: 1048576, request_percentage: 0.5, consumer_byte_rate: ~}
acls:
  - {principal: User:alice, operation: READ, resourceType: TOPIC, resourceName: orders}
users:
  - name: alice
    mechanism: SCRAM-SHA-256
    iterations: 4096
    password: {env: ALICE}
"""


def read(folder: Path, *texts: str) -> Declaration:
    paths = []
    for number, text in enumerate(texts, 1):
        paths.append(folder / f"{number}.yaml")
        paths[-1].write_text(text)
    return read_declaration(paths)


def test_everything_that_can_be_declared(tmp_path: Path) -> None:
    declared = read(tmp_path, WHOLE)
    request = declared.request(prune=True, delete_topics=True, rewrite=True)
    assert request == ApplyRequest(
        topics=(
            DeclaredTopic(
                "on",
                3,
                2,
                configs={
                    "retention.ms": "010",
                    "cleanup.policy": None,
                    "unclean.leader.election.enable": "yes",
                },
            ),
            DeclaredTopic("null", assignments=((1, 2), (2, 1))),
        ),
        configs=(DeclaredConfigs("broker", "default", {"min.insync.replicas": "2"}),),
        quotas=(
            DeclaredQuotas(
                (QuotaEntityPart("client-id", None), QuotaEntityPart("user", "alice")),
                {
                    "producer_byte_rate": 1048576.0,
                    "request_percentage": 0.5,
                    "consumer_byte_rate": None,
                },
            ),
        ),
        acls=(AclEntry("TOPIC", "orders", "User:alice", "READ"),),
        users=(DeclaredCredential("alice", "SCRAM-SHA-256", 4096, rewrite=True),),
        prune=tuple(DeclaredKind),
        delete_topics=True,
    )
    assert declared.places["topic", "null"] == f"{tmp_path}/1.yaml:7"
    assert declared.places["quotas", "client-id=<default>,user=alice"] == f"{tmp_path}/1.yaml:13"


def test_several_files_are_one_declaration_and_only_their_kinds_are_pruned(tmp_path: Path) -> None:
    declared = read(tmp_path, "topics: [{name: a}]", "acls: []\n---\n# nothing\n---\ntopics: []\n")
    request = declared.request(prune=True, delete_topics=False, rewrite=False)
    assert request == ApplyRequest(
        (DeclaredTopic("a"),), prune=(DeclaredKind.TOPICS, DeclaredKind.ACLS)
    )
    assert declared.request(prune=False, delete_topics=False, rewrite=False).prune == ()


@pytest.mark.parametrize(
    ("text", "line", "said"),
    [
        ("", 0, "nothing is declared; write one of topics, configs, quotas, acls, users"),
        ("version: 1\n", 0, "nothing is declared"),
        ("topics: [}", 1, "this is not YAML"),
        ("topics:\n- name: a\n bad", 3, "this is not YAML"),
        ("topics:\n  - name: \x07\n", 0, "this is not YAML"),
        ("[1, 2]", 1, "expected object, got array"),
        ("topic:\n  - name: a\n", 1, "no field 'topic' here; did you mean 'topics'?"),
        ("version: 2\ntopics: []\n", 1, "version: 2 is not possible; give 1"),
        (
            "topics:\n",
            1,
            "topics: expected array, got null; leave the key out, or write [] for none",
        ),
        (
            "topics:\n  - nme: a\n",
            2,
            "topics[0]: there is no field 'nme' here; did you mean 'name'?",
        ),
        ("topics:\n  - name: a\n    x: 1\n", 3, "no field 'x' here; it takes name, partitions"),
        ("topics:\n  -\n    partitions: 1\n", 3, "topics[0]: object missing required field name"),
        (
            "topics:\n  - name: a\n  - name: b\n    partitions: many\n",
            4,
            "topics[1].partitions: expected int | null, got str; the file has 'many'",
        ),
        ("topics:\n  - name: [a]\n", 2, "topics[0].name: expected str, got array"),
        ("topics:\n  - name: ~\n", 2, "topics[0].name: expected str, got null"),
        ("topics:\n  - name: a\n    configs: {b: [c]}\n", 3, "expected str | null, got array"),
        ("topics:\n  - name: a\n    name: b\n", 3, "'name' is there twice; keep one of them"),
        ("topics:\n  - name: a\n  - name: a\n", 3, "topic a is declared at FILE:2 already"),
        ("topics:\n  - name: !!int 5\n    ? [a]\n    : b\n", 3, "a key must be a text"),
        ("topics:\n  - !!python/object:os.system {}\n", 2, "the tag"),
        ("topics:\n  - !mine {}\n", 2, "the tag '!mine' is not supported; leave it out"),
        (
            "configs:\n  - {type: topic, name: a, configs: {}}\n",
            2,
            "configs[0].type: 'topic' is not possible; give broker, group",
        ),
        ("quotas:\n  - {entity: {}, quotas: {}}\n", 2, "quotas[0].entity: give a user"),
        (
            "quotas:\n  - {entity: {group: g}, quotas: {}}\n",
            2,
            "quotas[0].entity: 'group' is not possible; give user, client-id or ip",
        ),
        (
            "quotas:\n  - entity: {user: a}\n    quotas: {producer_byte_rate: lots}\n",
            3,
            "expected float | null, got str",
        ),
        (
            (
                "quotas:\n- {entity: {user: a, ip: b}, quotas: {}}\n"
                "- {entity: {ip: b, user: a}, quotas: {}}"
            ),
            3,
            "quotas ip=b,user=a is declared at FILE:2 already",
        ),
        ("acls:\n  - {principal: User:a}\n", 2, "acls[0]: object missing required field"),
        ("acls:\n  - {princpl: User:a}\n", 2, "did you mean 'principal'?"),
        ("users:\n  - name: a\n    password: secret\n", 3, "expected object | null, got str"),
        ("users:\n  - name: a\n    password: {}\n", 3, "give one of env and file"),
        ("users:\n  - name: a\n    password: {env: A, file: b}\n", 3, "give one of env and file"),
        (
            "users:\n  - name: a\n    mechanism: PLAIN\n",
            3,
            "'PLAIN' is not possible; give SCRAM-SHA-256 or",
        ),
        ("a: &a [1]\n" + "topics: [" + "[" * 30 + "*a" + "]" * 30 + "]", 2, "too deep"),
        ("a: " + "[" * 5000, 0, ""),
    ],
)
def test_a_bad_file(tmp_path: Path, text: str, line: int, said: str) -> None:
    with pytest.raises(Failure) as failure:
        read(tmp_path, text)
    file = f"{tmp_path}/1.yaml"
    message = failure.value.lines[0]
    assert message.startswith(f"{file}:{line}: " if line else file)
    assert said.replace("FILE", file) in message


def test_aliases_do_not_multiply_without_end(tmp_path: Path) -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 9)]
    with pytest.raises(Failure, match="too many values"):
        read(tmp_path, "\n".join(lines))


def test_a_bad_file_among_several_is_named(tmp_path: Path) -> None:
    with pytest.raises(
        Failure, match=r"2\.yaml:1: topics\[0\]: topic a is declared at .*1\.yaml:1"
    ):
        read(tmp_path, "topics: [{name: a}]", "topics: [{name: a}]")


def test_what_is_no_text_is_refused(tmp_path: Path) -> None:
    (tmp_path / "a.yaml").write_bytes(b"topics: \xff\xfe")
    with pytest.raises(Failure, match=r"a\.yaml: it can't be read"):
        read_declaration([tmp_path / "a.yaml"])


PLANNED = (PlannedItem("user", "a SCRAM-SHA-512", "create"),)
ID = "AZqv3ZAAAACAAAAAAAAAAA"


def test_passwords_come_from_variables_and_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A relative path starts at the declaring file. Only what the plan sets is looked up."""
    (tmp_path / "password").write_text("geheim\nmore\n")
    monkeypatch.setenv("PASSWORD", "geheim")
    found = []
    for source in ("{env: PASSWORD}", "{file: password}"):
        text = f"users: [{{name: a, password: {source}}}, {{name: b, password: {{env: NONE}}}}]"
        declared = read(tmp_path, text)
        request = declared.request(prune=False, delete_topics=False, rewrite=False)
        set_one, kept = with_passwords(request, declared.sources, PLANNED, ID).users
        assert kept.salted_password == b""
        assert len(set_one.salted_password) == 64
        found.append(set_one)
    assert found[0] == found[1]
    assert b"geheim" not in found[0].salted_password + found[0].salt
    assert "geheim" not in repr(found[0])


@pytest.mark.parametrize(
    ("password", "said"),
    [
        ("", "say where the password comes from"),
        (", password: {env: NOT_SET}", "the environment variable NOT_SET is not set, or empty"),
        (", password: {file: none}", "can't be read"),
        (", password: {file: empty}", "is empty"),
        (", iterations: 0, password: {file: full}", "iterations: give 4096 to 16384"),
        (", iterations: 99999999, password: {file: full}", "iterations: give 4096 to 16384"),
    ],
)
def test_a_password_that_is_not_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, password: str, said: str
) -> None:
    monkeypatch.delenv("NOT_SET", raising=False)
    (tmp_path / "empty").write_text("\nsecond line")
    (tmp_path / "full").write_text("secret")
    declared = read(tmp_path, f"# users\nusers: [{{name: a{password}}}]")
    request = declared.request(prune=False, delete_topics=False, rewrite=False)
    with pytest.raises(Failure) as failure:
        with_passwords(request, declared.sources, PLANNED, ID)
    assert failure.value.lines[0].startswith(f"{tmp_path}/1.yaml:2: ")
    assert said in failure.value.lines[0]
