"""A state that is larger than one apply: what is said of it, and the files that an export makes.

Each file is read back and put into a request as `apply` does it, and measured as controllers do.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from controller.http.routes import ROUTES
from logberg.cli.failure import Failure
from logberg.client import request_size
from logberg.client.request_size import BODY_BYTES_MAX
from logberg.declared.declaration import Declaration, read_declaration
from logberg.declared.dividing import files_of
from metadata.errors import LogbergError
from metadata.messages import (
    AclDescription,
    ApplyReply,
    DeclaredKind,
    EntityQuotas,
    ExportedConfigs,
    ExportedTopic,
    ExportReply,
    QuotaEntity,
    ScramCredential,
    UserDescription,
)
from metadata.messages.wire import JSON, OBJECTS_MAX, VALUES_MAX, check_density
from runtime.http.limits import HttpLimits
from tests.unit.logberg.edge import Said, run_whole
from tests.unit.logberg.listener import Listener

KINDS = tuple(kind.value for kind in DeclaredKind)
CONFIGS = {"retention.ms": "1", "cleanup.policy": "compact,delete", "segment.bytes": "2,{"}


def large() -> ExportReply:
    """A cluster in which every kind is too large for one apply."""
    client = QuotaEntity("client-id", "c")
    return ExportReply(
        7,
        1,
        tuple(ExportedTopic(f"t{n}", 1, 3, CONFIGS) for n in range(130)),
        tuple(ExportedConfigs("group", f"g{n}", CONFIGS) for n in range(130)),
        tuple(
            EntityQuotas((client, QuotaEntity("user", f"u{n}")), {"producer_byte_rate": 1.0})
            for n in range(130)
        ),
        tuple(
            AclDescription(str(n), "TOPIC", f"t{n}", "LITERAL", "User:a", "*", "READ", "ALLOW")
            for n in range(130)
        ),
        tuple(
            UserDescription(f"u{n}", (ScramCredential("SCRAM-SHA-512", 4096),)) for n in range(150)
        ),
    )


def write(folder: Path, export: ExportReply, kinds: tuple[str, ...] = KINDS) -> dict[str, Path]:
    paths = {}
    for file in files_of(export, kinds):
        assert file.too_large == ""
        paths[file.name] = folder / file.name
        paths[file.name].write_text("\n".join(file.lines) + "\n")
    return paths


def body_of(declared: Declaration) -> bytes:
    """The body of the apply that sets everything, as the command sends it."""
    request = declared.request(prune=False, delete_topics=False, rewrite=False)
    users = tuple(
        msgspec.structs.replace(user, salt=bytes(16), salted_password=bytes(64), rewrite=True)
        for user in request.users
    )
    whole = msgspec.structs.replace(request, users=users, expected_plan="p" * 64)
    return json.dumps(msgspec.to_builtins(whole)).encode()


@pytest.fixture(scope="module", autouse=True)
def _a_twentieth() -> Iterator[None]:
    """Reading YAML takes long. So the client takes a twentieth of what fits."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(request_size, "OBJECTS_MAX", OBJECTS_MAX // 20)
        patch.setattr(request_size, "VALUES_MAX", VALUES_MAX // 20)
        yield


def check(body: bytes) -> None:
    """Refuse what a controller refuses that takes a twentieth. Raises LogbergError."""
    check_density(body, JSON, VALUES_MAX // 20, OBJECTS_MAX // 20)


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    return write(tmp_path_factory.mktemp("files"), large())


@pytest.mark.parametrize("kind", KINDS)
def test_every_file_of_an_export_fits_one_apply(files: dict[str, Path], kind: str) -> None:
    paths = [path for name, path in files.items() if name.startswith(kind)]
    assert len(paths) > 1
    for path in paths:
        check(body_of(read_declaration([path])))
    whole = read_declaration(paths)
    with pytest.raises(LogbergError):
        check(body_of(whole))
    assert len(getattr(whole, kind)) == sum(1 for _ in entries(large(), kind))


def entries(export: ExportReply, kind: str) -> Iterator[Any]:
    if kind == "users":
        return (each for user in export.users for each in user.credentials)
    return iter(getattr(export, kind))


def test_a_kind_that_fits_is_one_file_and_no_part(tmp_path: Path) -> None:
    paths = write(tmp_path, ExportReply(7, 1, topics=(ExportedTopic("t", 1, 1),)))
    assert list(paths) == [f"{kind}.yaml" for kind in KINDS]
    assert "part:" not in "".join(path.read_text() for path in paths.values())
    assert read_declaration(list(paths.values())).kinds == set(DeclaredKind)


def test_an_entry_that_no_apply_takes_is_named() -> None:
    rows = tuple((1, 2, 3) for _ in range(300))
    topics = (
        ExportedTopic("small", 1, 3),
        ExportedTopic("wide", 300, 3, {}, rows),
        ExportedTopic("z", 1, 3),
    )
    found = list(files_of(ExportReply(7, 1, topics=topics), ("topics",)))
    assert [file.too_large for file in found] == ["", "wide", ""]


def test_long_values_count_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    most = BODY_BYTES_MAX // 20
    monkeypatch.setattr(request_size, "BODY_BYTES_MAX", most)
    topics = tuple(ExportedTopic(f"t{n}", 1, 3, {"k": "v" * 30_000}) for n in range(15))
    paths = write(tmp_path, ExportReply(7, 1, topics=topics), ("topics",))
    assert len(paths) > 2
    for path in paths.values():
        assert len(body_of(read_declaration([path]))) < most


def test_the_limit_of_bytes_is_the_controllers() -> None:
    assert HttpLimits().body_bytes == BODY_BYTES_MAX


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (("topics-1.yaml",), r"topics are in 2 files, and part 2 is not given"),
        (("acls-2.yaml", "topics-1.yaml", "topics-2.yaml"), "acls are in 2 files, and part 1 is"),
        (("topics-1.yaml", "topics-2.yaml"), ""),
    ],
)
def test_a_part_alone_prunes_nothing(
    files: dict[str, Path], given: tuple[str, ...], said: str
) -> None:
    declared = read_declaration([files[name] for name in given])
    declared.request(prune=False, delete_topics=False, rewrite=False)
    if not said:
        assert declared.request(prune=True, delete_topics=True, rewrite=False).prune
        return
    with pytest.raises(Failure, match=said):
        declared.request(prune=True, delete_topics=False, rewrite=False)


@pytest.mark.parametrize("part", ["2", "0/3", "4/3", "a/b", "1/"])
def test_a_bad_part(tmp_path: Path, part: str) -> None:
    path = tmp_path / "a.yaml"
    path.write_text(f"version: 1\npart: {part}\ntopics: []\n")
    with pytest.raises(Failure, match=rf"a\.yaml:2: part: '{part}' is not possible"):
        read_declaration([path])


# -- the commands ----------------------------------------------------------------------------------


@pytest.fixture
def controller() -> Iterator[Listener]:
    listener = Listener()
    exported = msgspec.json.encode(large())
    applied = msgspec.json.encode(ApplyReply())
    assert any(route.path == "/v1/export" for route in ROUTES)
    listener.answer = lambda method, target: (
        "200 OK",
        exported if target.startswith("/v1/export") else applied,
    )
    yield listener
    listener.close()


def run(controller: Listener, *words: str) -> Said:
    return run_whole(*words, "--controllers", controller.url)


def test_an_apply_that_is_too_large_is_not_sent(
    controller: Listener, files: dict[str, Path]
) -> None:
    both = [
        word for name in ("topics-1.yaml", "topics-2.yaml") for word in ("-f", str(files[name]))
    ]
    acls = ["-f", str(files["acls-1.yaml"])]
    for command, more in (
        (["apply", "--yes"], ""),
        (["diff"], ""),
        (["apply", "--prune", "--yes"], "with prune a kind must stay whole"),
    ):
        said = run(controller, *command, *both, *(acls if not more else ()))
        assert said.code == (2 if command == ["diff"] else 1), said
        for words in (
            "one change, all of it or nothing",
            "at most 250 objects, 750 values",
            "topics has 390 objects, ",
            "divide the files by kind, or by names",
            "export --folder",
            "[BODY_TOO_LARGE]",
            more,
        ):
            assert words in said.err
    assert controller.heard == b""
    assert run(controller, "apply", "--dry-run", "-f", str(files["topics-1.yaml"])).code == 0
    assert b"POST /v1/apply" in controller.heard


def test_an_export_that_is_too_large_says_so_and_is_written_in_files(
    controller: Listener, tmp_path: Path
) -> None:
    one = run(controller, "export")
    assert one.code == 0
    assert "too large for one apply" in one.err
    assert "--folder" in one.err
    folder = tmp_path / "new" / "state"
    several = run(controller, "export", "--folder", str(folder))
    assert several.code == 0, several
    assert several.err == ""
    names = [Path(line).name for line in several.out.splitlines()]
    assert sorted(path.name for path in folder.iterdir()) == sorted(names)
    assert {"topics-1.yaml", "topics-2.yaml", "users-2.yaml"} <= set(names)
    again = run(controller, "export", "--folder", str(folder))
    assert again.code == 1
    assert "topics-1.yaml is there already; name another folder" in again.err
    listed = run(controller, "export", "--folder", str(tmp_path / "other"), "-o", "json")
    assert [Path(name).name for name in json.loads(listed.out)["files"]] == names
