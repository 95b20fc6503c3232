"""Compares broker configs, quotas, users, ACLs, tokens and producer ids with the source's.

Rule: each family is compared as a whole, or not at all. Producer ids only grow. While eligible
leader replicas are enabled, min.insync.replicas of brokers stays this cluster's own (KIP-966).
"""

from collections.abc import Generator
from typing import Final

from controller.managers.bridge.mirrored_things import MirroredThings
from controller.managers.clients.managers import ClientManagers
from controller.managers.clients.scram import mechanism_name
from controller.managers.configs import ConfigManager
from controller.managers.imports.imported_clients import ClientImport
from controller.managers.imports.importing import ImportContents
from metadata.configs.effective import MIN_ISR
from metadata.errors import LogbergError
from metadata.features import ELR_VERSION
from metadata.image import MetadataImage
from metadata.image.acls import content_of
from metadata.image.tokens import expiry_of
from metadata.messages import BridgeFamily
from metadata.records import (
    AccessControlEntryRecord,
    ClientQuotaRecord,
    ConfigRecord,
    ConfigResourceType,
    DelegationTokenRecord,
    EntityData,
    EntityKey,
    ProducerIdsRecord,
    RemoveAccessControlEntryRecord,
    RemoveDelegationTokenRecord,
    RemoveUserScramCredentialRecord,
    UserScramCredentialRecord,
    entity_key,
)

_BROKER: Final = ConfigResourceType.BROKER
_STEP: Final = 256
"""Things between two yields."""


class ClientMirror:
    """Compares what belongs to clients and brokers."""

    def __init__(
        self,
        image: MetadataImage,
        things: MirroredThings,
        configs: ConfigManager,
        clients: ClientManagers,
        now_ms: int,
    ) -> None:
        self._image = image
        self._things = things
        self._configs = configs
        self._clients = clients
        self._now_ms = now_ms
        self._elr = image.features.levels.get(ELR_VERSION, 0) > 0

    def compare(
        self, contents: ImportContents, complete: frozenset[BridgeFamily]
    ) -> Generator[None, None, None]:
        """Compare each family that is complete."""
        if "brokerConfigs" in complete:
            for name in sorted({*contents.broker_configs, *self._image.configs.named(_BROKER)}):
                self._broker(name, contents.broker_configs.get(name, {}))
                yield
        if "quotas" in complete:
            yield from self._quotas(contents.quotas)
        if "users" in complete:
            yield from self._users(contents.credentials)
        if "acls" in complete:
            yield from self._acls(contents.entries)
        if "tokens" in complete:
            yield from self._tokens(contents.tokens)
        if "producerIds" in complete:
            self._producer_ids(contents.producer_ids)

    def _broker(self, name: str, wanted: dict[str, str]) -> None:
        shown = f"configs of broker {name or 'default'}"
        here = self._image.configs.of(_BROKER, name)
        new, changed = {}, {}
        for key, value in wanted.items():
            stored = here.get(key)
            if self._elr and key == MIN_ISR:
                continue
            if stored is None:
                new[key] = value
            elif not self._configs.secrets.is_same(_BROKER, name, key, stored, value):
                changed[key] = value
        try:
            for values in (new, changed):
                written = self._configs.of_import(self._image, name, values) if values else []
                records = [each.record for each in written]
                hashes = [each.salted_hash for each in written if each.salted_hash is not None]
                if values is new:
                    self._things.new(records, hashes)
                elif records:
                    why = f"{', '.join(changed)} differ in the source"
                    self._things.changed(shown, why, records, hashes)
        except LogbergError as error:
            self._things.refuse(shown, error)
        for key in here:
            if key not in wanted and not (self._elr and key == MIN_ISR):
                gone = [ConfigRecord(int(_BROKER), name, key, None)]
                self._things.gone(shown, f"the source has no {key}", gone)

    def _quotas(self, records: list[ClientQuotaRecord]) -> Generator[None, None, None]:
        wanted: dict[EntityKey, dict[str, ClientQuotaRecord]] = {}
        for record in records:
            wanted.setdefault(entity_key(record.entity), {})[record.key] = record
        for key in sorted({*wanted, *self._image.client_quotas.order}):
            entity = tuple(EntityData(kind, name[0] if name else None) for kind, name in key)
            here = self._image.client_quotas.of(*entity)
            for quota, record in wanted.get(key, {}).items():
                if quota not in here:
                    self._things.new([record])
                elif here[quota] != record.value:
                    self._things.changed(record.entity_word, f"{quota} differs", [record])
            for quota in here:
                if quota not in wanted.get(key, {}):
                    gone = ClientQuotaRecord(entity, quota, 0.0, remove=True)
                    self._things.gone(gone.entity_word, f"the source has no {quota}", [gone])
            yield

    def _users(self, records: list[UserScramCredentialRecord]) -> Generator[None, None, None]:
        here = self._image.scram.credentials
        wanted = {(record.name, record.mechanism): record for record in records}
        for key, record in wanted.items():
            yield  # opening and sealing take a tenth of a millisecond each
            name, known = f"user {record.name}", here.get(key)
            if known is not None and self._clients.scram.is_same(known, record):
                continue
            try:
                sealed, hashes = self._clients.scram.of_import(self._image, record)
            except LogbergError as error:
                self._things.refuse(name, error)
                continue
            if known is None:
                self._things.new([sealed], hashes)
            else:
                self._things.changed(name, "the credential differs", [sealed], hashes)
        for user, mechanism in self._image.scram.order:
            if (user, mechanism) not in wanted:
                gone = RemoveUserScramCredentialRecord(user, mechanism)
                why = f"the source has no {mechanism_name(mechanism)} of it"
                self._things.gone(f"user {user}", why, [gone])

    def _acls(self, records: list[AccessControlEntryRecord]) -> Generator[None, None, None]:
        wanted = {content_of(record) for record in records}
        for count, id_ in enumerate(self._image.acls.ids, 1):
            entry = self._image.acls.entries[id_]
            if content_of(entry) not in wanted:
                gone = RemoveAccessControlEntryRecord(id_)
                name = f"acl of {entry.principal} on {entry.resource_name}"
                self._things.gone(name, "the source has no such entry", [gone])
            if count % _STEP == 0:
                yield
        found = ClientImport(self._image, self._things, self._clients, self._configs, self._now_ms)
        yield from found.entries(records)

    def _tokens(self, records: list[DelegationTokenRecord]) -> Generator[None, None, None]:
        here = self._image.tokens.tokens
        wanted = {record.token_id: record for record in records}
        for token_id, record in wanted.items():
            known, name = here.get(token_id), f"token {token_id}"
            if known is None and expiry_of(record)[0] > self._now_ms:
                self._things.new([record])
            elif known is not None and known != record:
                self._things.changed(name, "it differs in the source", [record])
            yield
        for token_id in self._image.tokens.order:
            if token_id not in wanted:
                gone = RemoveDelegationTokenRecord(token_id)
                self._things.gone(f"token {token_id}", "the source has no such token", [gone])

    def _producer_ids(self, records: list[ProducerIdsRecord]) -> None:
        for record in records:
            if record.next_producer_id > self._image.producer_ids.next_producer_id:
                self._things.new([record])
