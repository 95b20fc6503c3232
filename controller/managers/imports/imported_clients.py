"""Compares imported configs of brokers, quotas, credentials, entries, tokens and producer ids.

Rule: each is judged by itself, by the rules of the manager that makes such records. Secrets come in
clear and are sealed here, as those of any other request.
"""

from collections.abc import Generator, Mapping, Sequence
from math import isfinite

from controller.managers.clients.acls import describe_acl
from controller.managers.clients.managers import ClientManagers
from controller.managers.clients.quotas import check_entity
from controller.managers.configs import ConfigManager
from controller.managers.imports.comparison import ImportComparison
from metadata.errors import LogbergError
from metadata.image import MetadataImage
from metadata.image.tokens import expiry_of
from metadata.messages import (
    AclEntry,
    CreateAclsReply,
    CreateAclsRequest,
    QuotaEntityPart,
)
from metadata.messages.declared_names import acl_name
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    EntityKey,
    ProducerIdsRecord,
    UserScramCredentialRecord,
    entity_key,
)

_BROKER = ConfigResourceType.BROKER


class ClientImport:
    """Compares what belongs to clients and brokers."""

    def __init__(
        self,
        image: MetadataImage,
        comparison: ImportComparison,
        clients: ClientManagers,
        configs: ConfigManager,
        now_ms: int,
    ) -> None:
        """`now_ms`: tokens that end before it are not written."""
        self._image = image
        self._comparison = comparison
        self._clients = clients
        self._configs = configs
        self._now_ms = now_ms
        self._seen: set[tuple[str, object]] = set()

    def broker_configs(self, name: str, values: Mapping[str, str]) -> None:
        """Write the configs of one broker, or of all, that are missing."""
        shown = f"configs of broker {name or 'default'}"
        here = self._image.configs.of(_BROKER, name)
        missing = {}
        for key, value in values.items():
            stored = here.get(key)
            if stored is None:
                missing[key] = value
            elif self._configs.secrets.is_same(_BROKER, name, key, stored, value):
                self._comparison.same += 1
            else:
                self._comparison.refuse(shown, f"{key} has another value here")
        if not missing:
            return
        try:
            written = self._configs.of_import(self._image, name, missing)
        except LogbergError as error:
            self._comparison.refuse(shown, error)
            return
        hashes = (each.salted_hash for each in written)
        self._comparison.write(
            (each.record for each in written), (each for each in hashes if each is not None)
        )

    def quota(self, record: ClientQuotaRecord) -> None:
        """Write a quota that its entity lacks. Fractions stay, as in KIP-866."""
        if not self._is_first(record.entity_word, (entity_key(record.entity), record.key)):
            return
        parts = tuple(QuotaEntityPart(p.entity_type, p.entity_name) for p in record.entity)
        try:
            keys = check_entity("entity", parts)
        except LogbergError as error:
            self._comparison.refuse(record.entity_word, error)
            return
        value = record.value
        if record.remove or record.key not in keys or not isfinite(value) or value <= 0:
            self._comparison.refuse(record.entity_word, f"{record.key[:50]} can't be {value}")
            return
        here = self._image.client_quotas.of(*record.entity).get(record.key)
        if here is None:
            self._comparison.write((record,))
        elif here == value:
            self._comparison.same += 1
        else:
            self._comparison.refuse(record.entity_word, f"{record.key} is {here} here")

    def credential(self, record: UserScramCredentialRecord) -> None:
        """Write a credential that its user lacks, with its keys sealed."""
        name = f"user {record.name}"
        if not self._is_first(name, (record.name, record.mechanism)):
            return
        here = self._image.scram.credentials.get((record.name, record.mechanism))
        try:
            if here is None:
                sealed, hashes = self._clients.scram.of_import(self._image, record)
                self._comparison.write((sealed,), hashes)
            elif self._clients.scram.is_same(here, record):
                self._comparison.same += 1
            else:
                self._comparison.refuse(name, "there is another credential of this mechanism here")
        except LogbergError as error:
            self._comparison.refuse(name, error)

    def producer_ids(self, record: ProducerIdsRecord) -> None:
        """Write the block unless ids beyond it are handed out here."""
        if not self._is_first("producer ids", ()):
            return
        if record.next_producer_id < 0:
            self._comparison.refuse("producer ids", "the next id is negative")
        elif record.next_producer_id <= self._image.producer_ids.next_producer_id:
            self._comparison.same += 1
        else:
            self._comparison.write((record,))

    def entries(self, records: Sequence[AccessControlEntryRecord]) -> Generator[None, None, None]:
        """Write the entries that are missing, each with an id that is drawn here."""
        if not records:
            return
        entries = []
        for record in records:
            known = describe_acl(record)
            entries.append(
                AclEntry(
                    known.resource_type,
                    known.resource_name,
                    known.principal,
                    known.operation,
                    known.pattern_type,
                    known.host,
                    known.permission_type,
                )
            )
        result = yield from self._clients.acls.create(
            self._image, CreateAclsRequest(tuple(entries))
        )
        assert isinstance(result.reply, CreateAclsReply)
        for entry, created in zip(entries, result.reply.acls, strict=True):
            if created.error is not None:
                self._comparison.refuse(f"acl {acl_name(entry)}", created.error.message)
            elif created.existed:
                self._comparison.same += 1
        self._comparison.write(result.records)

    def token(self, record: DelegationTokenRecord) -> None:
        """Write a token that is missing and hasn't expired."""
        name = f"token {record.token_id}"
        if not self._is_first(name, record.token_id):
            return
        here = self._image.tokens.tokens.get(record.token_id)
        if here is None and expiry_of(record)[0] <= self._now_ms:
            self._comparison.expired += 1
        elif here is None:
            self._comparison.write((record,))
        elif (here.owner, here.issue_timestamp) == (record.owner, record.issue_timestamp):
            self._comparison.same += 1
        else:
            self._comparison.refuse(name, f"it is a token of {here.owner} here")

    def _is_first(self, name: str, key: EntityKey | object) -> bool:
        """Return whether a thing is in the import for the first time. Twice is a conflict."""
        if (name, key) in self._seen:
            self._comparison.refuse(name, "it is in the import twice")
            return False
        self._seen.add((name, key))
        return True
