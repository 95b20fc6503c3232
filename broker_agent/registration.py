"""Builds the registration that an agent sends to a controller.

Rule: an agent that keeps an image replays the log by this build's code, so it declares the feature
levels that this build supports. Its configuration may add features, and may narrow these.
"""

from broker_agent.config import AgentConfig, FeatureRange
from metadata.features import SUPPORTED
from metadata.messages.fetch import Endpoint, Registration, SupportedFeature
from metadata.uuids import uuid_text


def registration_of(config: AgentConfig) -> Registration:
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
        log_dirs=tuple(uuid_text(directory) for directory in config.log_dirs),
    )


def _features(config: AgentConfig) -> list[FeatureRange]:
    """Return the configuration's features, and this build's for those that it doesn't name."""
    ours = {name: FeatureRange(name, *levels) for name, levels in SUPPORTED.items()}
    theirs = {feature.name: feature for feature in config.features}
    return [feature for _, feature in sorted({**ours, **theirs}.items())]
