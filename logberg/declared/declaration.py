"""Puts the files of a declaration together into one request.

Rule: several files and documents count as one. What is declared twice is refused, with both places.
"""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final, NamedTuple

import click
import msgspec

from logberg.cli.failure import Failure
from logberg.declared.documents import Document, documents
from logberg.declared.entries import Entries, PasswordSource, QuotasEntry, UserEntry, entries_of
from metadata.messages.acls import AclEntry
from metadata.messages.declared import (
    ApplyRequest,
    DeclaredConfigs,
    DeclaredCredential,
    DeclaredKind,
    DeclaredQuotas,
    DeclaredTopic,
)
from metadata.messages.declared_names import acl_name, quotas_name
from metadata.messages.quotas import QuotaEntityPart

DEFAULT: Final = "<default>"
"""The name of the default entity of a type of quota."""
_PART: Final = re.compile(r"([0-9]{1,6})/([0-9]{1,6})")
Key = tuple[str, str]
"""Kind and name of an item, as a plan has them."""


class DeclaredPassword(NamedTuple):
    """Where a user's password comes from, and where that is declared."""

    password: PasswordSource | None
    folder: Path
    where: str


class Declaration:
    """What some files declare."""

    def __init__(self) -> None:
        self.topics: list[DeclaredTopic] = []
        self.configs: list[DeclaredConfigs] = []
        self.quotas: list[DeclaredQuotas] = []
        self.acls: list[AclEntry] = []
        self.users: list[DeclaredCredential] = []
        self.kinds: set[DeclaredKind] = set()
        """The kinds that a file names, be it with an empty list."""
        self.sources: dict[Key, DeclaredPassword] = {}
        self._parts: dict[DeclaredKind, dict[int, int]] = {}
        """Of kinds that are divided into several files: the parts given, and how many there are."""
        self.places: dict[Key, str] = {}
        """`file:line` of each item."""

    def request(self, *, prune: bool, delete_topics: bool, rewrite: bool) -> ApplyRequest:
        """Return the request, without passwords. Raises Failure if a pruned kind lacks parts."""
        if prune:
            self._check_parts()
        users = (msgspec.structs.replace(user, rewrite=rewrite) for user in self.users)
        return ApplyRequest(
            tuple(self.topics),
            tuple(self.configs),
            tuple(self.quotas),
            tuple(self.acls),
            tuple(users),
            tuple(kind for kind in DeclaredKind if kind in self.kinds) if prune else (),
            delete_topics,
        )

    def add(self, document: Document) -> None:
        """Take over a document. Raises Failure."""
        entries = entries_of(document)
        kinds = {kind for kind in DeclaredKind if _is_given(entries, kind)}
        self.kinds |= kinds
        if entries.part:
            number, count = _part_of(document, entries.part)
            for kind in kinds:
                self._parts.setdefault(kind, {})[number] = count
        for number, topic in enumerate(entries.topics or ()):
            self._note(document, "topic", topic.name, f"topics[{number}]")
            self.topics.append(DeclaredTopic(**msgspec.structs.asdict(topic)))
        for number, configs in enumerate(entries.configs or ()):
            self._note(document, "configs", f"{configs.type} {configs.name}", f"configs[{number}]")
            self.configs.append(DeclaredConfigs(configs.type, configs.name, configs.configs))
        for number, each in enumerate(entries.quotas or ()):
            quotas = _quotas(document, each, f"quotas[{number}]")
            self._note(document, "quotas", quotas_name(quotas.entity), f"quotas[{number}]")
            self.quotas.append(quotas)
        for number, acl in enumerate(entries.acls or ()):
            self._note(document, "acl", acl_name(acl), f"acls[{number}]")
            self.acls.append(acl)
        for number, user in enumerate(entries.users or ()):
            self._user(document, user, f"users[{number}]")

    def _check_parts(self) -> None:
        for kind, parts in self._parts.items():
            count = max(parts.values())
            missing = [str(n) for n in range(1, count + 1) if n not in parts]
            if missing:
                raise Failure(
                    f"{kind} are in {count} files, and part {', '.join(missing)} is not given: "
                    "--prune would remove what it declares. Give all parts, or leave --prune out"
                )

    def _user(self, document: Document, user: UserEntry, path: str) -> None:
        key = ("user", f"{user.name} {user.mechanism}")
        self._note(document, *key, path)
        source = user.password
        if source is not None and (source.env is None) == (source.file is None):
            where = document.where(f"$.{path}.password")
            raise Failure(
                f"{where}: {path}.password: give one of env and file, such as {{env: PASSWORD}}"
            )
        self.sources[key] = DeclaredPassword(source, document.folder, self.places[key])
        self.users.append(DeclaredCredential(user.name, user.mechanism, user.iterations))

    def _note(self, document: Document, kind: str, name: str, path: str) -> None:
        where = document.where(f"$.{path}")
        if (kind, name) in self.places:
            raise Failure(
                f"{where}: {path}: {kind} {name} is declared at {self.places[kind, name]} "
                "already; keep one of them"
            )
        self.places[kind, name] = where


def read_declaration(paths: Sequence[Path]) -> Declaration:
    """Read files; `-` is stdin. Raises Failure."""
    declared = Declaration()
    for document in _documents(paths):
        declared.add(document)
    if not declared.kinds:
        raise Failure(
            f"{paths[0]}: nothing is declared; write one of {', '.join(DeclaredKind)}, such as "
            "`topics: [{name: orders, partitions: 6}]`"
        )
    return declared


def _documents(paths: Iterable[Path]) -> Iterable[Document]:
    for path in paths:
        name = "<stdin>" if str(path) == "-" else str(path)
        try:
            with click.open_file(str(path), encoding="utf-8") as file:
                text = file.read()
        except (OSError, UnicodeDecodeError) as error:
            raise Failure(f"{name}: it can't be read: {error}") from None
        yield from documents(text, name, Path() if str(path) == "-" else path.parent)


def _is_given(entries: Entries, kind: DeclaredKind) -> bool:
    return getattr(entries, kind.value) is not msgspec.UNSET


def _part_of(document: Document, text: str) -> tuple[int, int]:
    """Read a part such as 2/3. Raises Failure."""
    found = _PART.fullmatch(text)
    if found is None or not 1 <= int(found[1]) <= int(found[2]):
        where = document.where("$.part")
        raise Failure(f"{where}: part: {text[:50]!r} is not possible; give one such as 2/3")
    return int(found[1]), int(found[2])


def _quotas(document: Document, entry: QuotasEntry, path: str) -> DeclaredQuotas:
    if not entry.entity:
        where = document.where(f"$.{path}.entity")
        raise Failure(f"{where}: {path}.entity: give a user, a client-id, both, or an ip")
    parts = tuple(
        QuotaEntityPart(kind, None if name == DEFAULT else name)
        for kind, name in sorted(entry.entity.items())
    )
    return DeclaredQuotas(parts, dict(entry.quotas))
