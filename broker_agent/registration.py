"""What an agent writes to a controller."""

from broker_agent.config import AgentConfig
from metadata.messages.fetch import Endpoint, Registration, SupportedFeature
from metadata.uuids import uuid_text


def registration_of(config: AgentConfig) -> Registration:
    """Say who a broker is, as its configuration has it."""
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
            for feature in config.features
        ),
        rack=config.rack,
        log_dirs=tuple(uuid_text(directory) for directory in config.log_dirs),
    )
