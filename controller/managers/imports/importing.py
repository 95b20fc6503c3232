"""Decides about an import: compares everything, and returns one all-or-nothing decision (ADR 0059).

It yields on the way. A large import becomes one long transaction, as every large decision does.
"""

from collections.abc import Callable, Generator, Iterable, Sequence
from itertools import chain
from typing import Final

import msgspec

from controller.config import CoordinationLimits
from controller.managers.clients.managers import ClientManagers
from controller.managers.configs import ConfigManager
from controller.managers.coordination.keys import lifted_tokens
from controller.managers.imports.comparison import ImportComparison
from controller.managers.imports.imported_clients import ClientImport
from controller.managers.imports.imported_keys import KeyImport, KeysAtOffset
from controller.managers.imports.imported_topics import ImportedTopic, TopicImport
from controller.managers.topics import TopicManager
from controller.result import ControllerResult
from metadata.codec import RecordDecodeError, iterate_records
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import ImportReply, ImportRequest
from metadata.messages.records_json import record_type_name
from metadata.messages.wire import canonical
from metadata.plain_text import check_plain
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    KeyRecord,
    PartitionRecord,
    ProducerIdsRecord,
    Record,
    TopicRecord,
    UserScramCredentialRecord,
)

_STEP: Final = 256
"""Records between two yields."""
_SEALED_STEP: Final = 16
"""The same, of credentials: the key of each user takes a tenth of a millisecond."""


class ImportContents:
    """The records of an import, sorted by what they are about."""

    def __init__(self) -> None:
        self.topics: list[ImportedTopic] = []
        self.broker_configs: dict[str, dict[str, str]] = {}
        self.quotas: list[ClientQuotaRecord] = []
        self.credentials: list[UserScramCredentialRecord] = []
        self.producer_ids: list[ProducerIdsRecord] = []
        self.entries: list[AccessControlEntryRecord] = []
        self.tokens: list[DelegationTokenRecord] = []
        self.keys: list[KeyRecord] = []

    def add(self, record: Record) -> None:
        """Sort a record in. Raises LogbergError INVALID_REQUEST for one that can't be imported."""
        if isinstance(record, TopicRecord):
            self.topics.append(ImportedTopic(record))
        elif isinstance(record, ClientQuotaRecord):
            self.quotas.append(record)
        elif isinstance(record, UserScramCredentialRecord):
            self.credentials.append(record)
        elif isinstance(record, ProducerIdsRecord):
            self.producer_ids.append(record)
        elif isinstance(record, AccessControlEntryRecord):
            self.entries.append(record)
        elif isinstance(record, DelegationTokenRecord):
            self.tokens.append(record)
        elif isinstance(record, KeyRecord):
            self.keys.append(record)
        elif isinstance(record, ConfigRecord) and record.resource_type == ConfigResourceType.BROKER:
            if record.value is None:
                raise _invalid("a config without a value can't be imported")
            self.broker_configs.setdefault(record.resource_name, {})[record.name] = record.value
        elif isinstance(record, ConfigRecord | PartitionRecord) and self.topics:
            why = self.topics[-1].add(record)
            if why:
                raise _invalid(f"topic {self.topics[-1].topic.name[:300]!r}: {why}")
        else:
            raise _invalid(f"a {record_type_name(type(record))} can't be imported here")


class ImportManager:
    """`decide` reads an image and returns records."""

    def __init__(
        self,
        topics: TopicManager,
        configs: ConfigManager,
        clients: ClientManagers,
        limits: CoordinationLimits,
        wall_ms: Callable[[], int],
    ) -> None:
        """The managers of the single routes judge; `wall_ms` says which tokens have expired."""
        self._topics = topics
        self._configs = configs
        self._clients = clients
        self._limits = limits
        self._wall_ms = wall_ms

    def decide(
        self, image: MetadataImage, request: ImportRequest, parts: Sequence[bytes]
    ) -> Generator[None, None, ControllerResult]:
        """Write what is missing, or nothing and what differs. Raises LogbergError.

        `parts`: the records, those of the request at the end.
        """
        check_plain("source", request.source)
        contents = yield from read_contents(parts)
        comparison = ImportComparison()
        topics = TopicImport(image, comparison, self._topics, self._configs)
        for topic in contents.topics:
            yield from topics.compare(topic)
            # Most topics have fewer partitions than a step.
            yield
        clients = ClientImport(image, comparison, self._clients, self._configs, self._wall_ms())
        for name, values in contents.broker_configs.items():
            clients.broker_configs(name, values)
        yield from _each(clients.quota, contents.quotas)
        yield from _each(clients.credential, contents.credentials, _SEALED_STEP)
        yield from _each(clients.producer_ids, contents.producer_ids)
        yield from clients.entries(contents.entries)
        yield from _each(clients.token, contents.tokens)
        keys = KeyImport(image, comparison, self._limits)
        yield from _each(keys.compare, contents.keys)
        keys.check_room()
        return _result(image, request, comparison, keys)

    def touches(self, image: MetadataImage, parts: Sequence[bytes]) -> Generator[None, None, int]:
        """Count the partitions that an import creates, for the quota. Raises LogbergError."""
        contents = yield from read_contents(parts)
        known = image.topics.by_id
        return sum(
            len(each.partitions)
            for each in contents.topics
            if known.get(each.topic.topic_id) is None
        )

    def meaning(self, request: ImportRequest) -> bytes:
        """Return what stands for a request where the log keeps its digest: never a secret.

        Without a key the records are left out but for their length; then no secret is written.
        """
        if self._clients.scram.has_key:
            return self._clients.scram.secret_meaning(canonical(request))
        length = len(request.records).to_bytes(8, "big")
        return canonical(msgspec.structs.replace(request, records=length, digest=None))


def _result(
    image: MetadataImage, request: ImportRequest, comparison: ImportComparison, keys: KeyImport
) -> ControllerResult:
    """Return the decision: everything that is missing, or nothing if there is a conflict."""
    refused = comparison.conflict_count > 0
    others: list[Record] = [] if refused else comparison.records
    missing = () if refused else keys.missing
    reply = ImportReply(
        written=len(others) + len(missing),
        same=comparison.same,
        expired=comparison.expired,
        conflicts=tuple(comparison.conflicts),
        conflict_count=comparison.conflict_count,
        dry_run=request.dry_run,
    )

    def at(offset: int) -> ControllerResult:
        first = offset + len(others)
        above = None if refused else request.tokens_above
        lifted = lifted_tokens(image.coordination, above, first + len(missing))
        return ControllerResult(
            KeysAtOffset(others, missing, lifted, first) if missing or lifted else others,
            reply,
            reason=f"import of {request.source} at revision {request.revision}",
            salted_hashes=() if refused else tuple(comparison.salted_hashes),
            rebase=at if missing or lifted else None,
        )

    return at(image.offset)


def _each(
    compare: Callable[..., None], records: Iterable[Record], step: int = _STEP
) -> Generator[None, None, None]:
    for number, record in enumerate(records, 1):
        compare(record)
        if number % step == 0:
            yield


def read_contents(parts: Sequence[bytes]) -> Generator[None, None, ImportContents]:
    """Decode and sort the records. Raises LogbergError INVALID_REQUEST."""
    contents = ImportContents()
    try:
        for number, record in enumerate(chain.from_iterable(map(iterate_records, parts)), 1):
            contents.add(record)
            if number % _STEP == 0:
                yield
    except RecordDecodeError as error:
        raise _invalid(str(error)) from None
    return contents


def _invalid(why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REQUEST, f"records: {why}", {"field": "records"})
