"""Builds the registration that an agent sends to a controller.

Rule: an agent that keeps an image replays the log by this build's code, so it declares the feature
levels that this build supports. Its configuration may add features, and may narrow these.
"""

from typing import NamedTuple

from broker_agent.config import AgentConfig, FeatureRange
from metadata.features import SUPPORTED
from metadata.messages.fetch import Endpoint, Registration, SupportedFeature
from metadata.messages.versions import TOLERANT
from metadata.uuids import uuid_text


class LogDirectories(NamedTuple):
    """What the host says of its log directories, by id."""

    failed: frozenset[bytes] = frozenset()
    """They don't work any more."""
    cordoned: tuple[bytes, ...] | None = None
    """They take no new replicas, sorted; None: not said."""

    def failed_texts(self, version: int) -> tuple[str, ...]:
        """Return what a request of this version says of failed directories."""
        if version < TOLERANT:
            return ()
        return tuple(map(uuid_text, sorted(self.failed)))

    def cordoned_texts(self, version: int) -> tuple[str, ...] | None:
        """Return what a request of this version says of cordoned directories."""
        if version < TOLERANT or self.cordoned is None:
            return None
        return tuple(map(uuid_text, self.cordoned))


def registration_of(config: AgentConfig, directories: LogDirectories, version: int) -> Registration:
    """Return the registration that a configuration describes."""
    return Registration(
        endpoints=tuple(
            Endpoint(
                name=point.name,
                host=point.host,
                port=point.port,
                security_protocol=point.security_protocol,
            )
            for point in config.endpoints
        ),
        features=tuple(
            SupportedFeature(
                name=feature.name,
                min_supported_version=feature.min,
                max_supported_version=feature.max,
            )
            for feature in _features(config)
        ),
        rack=config.rack,
        log_dirs=tuple(uuid_text(d) for d in config.log_dirs if d not in directories.failed),
        cordoned_log_dirs=directories.cordoned_texts(version),
        previous_broker_epoch=config.previous_broker_epoch if version >= TOLERANT else -1,
    )


def _features(config: AgentConfig) -> list[FeatureRange]:
    """Return the configuration's features, and this build's for those that it doesn't name."""
    ours = {name: FeatureRange(name, *levels) for name, levels in SUPPORTED.items()}
    theirs = {feature.name: feature for feature in config.features}
    return [feature for _, feature in sorted({**ours, **theirs}.items())]
