"""Seals the secret values of configs: passwords, and unknown keys of brokers (ADR 0038).

Rule: from `logberg.version` 2 on, a value that is never shown is never in the log in clear either.
Below that level the log may be read by agents of an older release, which can't open a sealed value;
there the value is in clear, as in Kafka.
"""

from collections.abc import Callable
from typing import Final, NamedTuple

import msgspec

from controller.managers.sealing_key import usable_key
from metadata.configs.definitions import KINDS, is_sensitive
from metadata.errors import ErrorCode, LogbergError
from metadata.features import LOGBERG_VERSION, SEALED_CONFIGS_FROM
from metadata.image import MetadataImage
from metadata.messages import AlterConfigsRequest, ConfigResourceChange
from metadata.records import ConfigRecord
from metadata.sealed_blocks import SealingError
from metadata.sealed_places import config_place
from metadata.sealed_texts import SEALED_TEXT, block_of_text, text_of_block
from metadata.sealing import ClusterKey
from runtime.randomness import Random

_BROKER: Final = "broker"
"""The only type of resource that has secret keys: passwords, and keys that Kafka does not know."""


class WrittenConfig(NamedTuple):
    """A config's record."""

    record: ConfigRecord
    salted_hash: bytes | None
    """For the batch's extension 1; None: the value is in clear, or deleted."""


class ConfigSecrets:
    """Makes the records of configs."""

    def __init__(self, random: Random | None = None, key: ClusterKey | None = None) -> None:
        """`random` draws what makes each sealed value another one. Both None: nothing is sealed."""
        self._random = random
        self._key = key

    def written(
        self, image: MetadataImage, kind: int, resource: str, key: str, value: str | None
    ) -> WrittenConfig:
        """Return the record that sets a key, its value sealed if it is secret.

        Raises LogbergError: SECURITY_DISABLED without a usable cluster key, INVALID_CONFIG for a
        value that looks like a sealed one.
        """
        if value is None or not is_sensitive(kind, key):
            return WrittenConfig(ConfigRecord(int(kind), resource, key, value), None)
        if value.startswith(SEALED_TEXT):
            raise LogbergError(
                ErrorCode.INVALID_CONFIG,
                f"{key}: the value begins with {SEALED_TEXT!r}, which only sealed values do: give "
                "the secret itself",
                {"config": key},
            )
        if image.features.levels.get(LOGBERG_VERSION, 0) < SEALED_CONFIGS_FROM:
            return WrittenConfig(ConfigRecord(int(kind), resource, key, value), None)
        cluster_key = usable_key(self._key, image)
        assert self._random is not None
        place = config_place(kind, resource, key)
        sealed = cluster_key.seal(place, value.encode(), self._random.randbytes(16))
        text = text_of_block(sealed.block)
        return WrittenConfig(ConfigRecord(int(kind), resource, key, text), sealed.salted_hash)

    def is_same(self, kind: int, resource: str, key: str, stored: str, wanted: str) -> bool:
        """Return whether a value in the log is this one. A sealed one is opened to compare it.

        One that this controller can't open differs from all.
        """
        if stored == wanted:
            return True
        try:
            block = block_of_text(stored)
            if block is None or self._key is None:
                return False
            return self._key.open(config_place(kind, resource, key), block) == wanted.encode()
        except SealingError:
            return False

    def meaning(
        self, canonical: Callable[[msgspec.Struct], bytes], request: AlterConfigsRequest
    ) -> bytes:
        """Return what stands for a request where the log keeps its digest: never a secret.

        Without a key the secrets are left out.
        """
        secret = _secret_keys(request)
        if not secret:
            return canonical(request)
        if self._key is not None:
            return self._key.mac("requests", canonical(request))
        without = tuple(_without(resource, secret) for resource in request.resources)
        return canonical(msgspec.structs.replace(request, resources=without))


def _secret_keys(request: AlterConfigsRequest) -> frozenset[str]:
    """Return the keys of brokers in a request whose values are secret; no others have such keys."""
    of_brokers = (each for each in request.resources if each.resource_type == _BROKER)
    keys = {change.name for each in of_brokers for change in each.configs}
    return frozenset(key for key in keys if is_sensitive(KINDS[_BROKER], key))


def _without(resource: ConfigResourceChange, secret: frozenset[str]) -> ConfigResourceChange:
    """Return a change of a resource without the values of secret keys."""
    if resource.resource_type != _BROKER:
        return resource
    configs = tuple(
        msgspec.structs.replace(each, value=None) if each.name in secret else each
        for each in resource.configs
    )
    return msgspec.structs.replace(resource, configs=configs)
