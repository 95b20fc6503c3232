"""Checks a broker's registration and makes the record of it.

Rule: a registration stays in the log for ever and is shown to users. So values that can't be true
of any broker are refused, and the error names the field. Each check concerns one field.
"""

from collections.abc import Sequence

from controller.managers.directories import may_cordon
from controller.managers.node_ids import check_broker_id
from metadata.errors import ErrorCode, LogbergError
from metadata.features import levels_of
from metadata.image import MetadataImage
from metadata.messages import Endpoint, MetadataFetchRequest, Registration, SupportedFeature
from metadata.plain_text import check_plain
from metadata.records import BrokerEndpoint, BrokerFeature, RegisterBrokerRecord, SecurityProtocol
from metadata.uuids import parse_uuid_of

_NO_EPOCH = -1
_RESERVED_DIRECTORIES = 100
_PROTOCOLS = ", ".join(f"{int(protocol)} ({protocol.name})" for protocol in SecurityProtocol)


def registration_record(
    image: MetadataImage, request: MetadataFetchRequest, registration: Registration
) -> RegisterBrokerRecord:
    """Return the record of a new process: fenced, with an epoch that is not known yet.

    Raises LogbergError INVALID_REGISTRATION, UNSUPPORTED_VERSION.
    """
    check_broker_id(image, request.broker_id)
    _check_fields(registration)
    log_dirs = _checked_directories(image, request.broker_id, registration)
    cordoned = _checked_cordons(image, registration, log_dirs)
    _check_levels(image, registration)
    return RegisterBrokerRecord(
        request.broker_id,
        parse_uuid_of("incarnationId", request.incarnation_id),
        _NO_EPOCH,
        tuple(
            BrokerEndpoint(e.name, e.host, e.port, e.security_protocol)
            for e in sorted(registration.endpoints, key=lambda endpoint: endpoint.name)
        ),
        tuple(
            BrokerFeature(f.name, f.min_supported_version, f.max_supported_version)
            for f in sorted(registration.features, key=lambda feature: feature.name)
        ),
        registration.rack,
        log_dirs=log_dirs,
        cordoned_log_dirs=cordoned,
    )


def _check_fields(registration: Registration) -> None:
    """Raise LogbergError INVALID_REGISTRATION, naming the field."""
    if registration.rack is not None:
        check_plain("rack", registration.rack, ErrorCode.INVALID_REGISTRATION)
    for number, endpoint in enumerate(registration.endpoints):
        _check_endpoint(f"endpoints[{number}]", endpoint)
    _check_once("endpoints", [endpoint.name for endpoint in registration.endpoints])
    for number, feature in enumerate(registration.features):
        _check_feature(f"features[{number}]", feature)
    _check_once("features", [feature.name for feature in registration.features])


def _check_endpoint(field: str, endpoint: Endpoint) -> None:
    _check_word(f"{field}.name", endpoint.name)
    _check_word(f"{field}.host", endpoint.host)
    if any(character.isspace() for character in endpoint.host):
        raise _refused(f"{field}.host", "it contains a space; give a host name or an address")
    if endpoint.port < 1:
        raise _refused(f"{field}.port", f"it is {endpoint.port}; give 1 to 65535")
    if endpoint.security_protocol not in list(SecurityProtocol):
        said = endpoint.security_protocol
        raise _refused(f"{field}.securityProtocol", f"{said} is unknown; give {_PROTOCOLS}")


def _check_feature(field: str, feature: SupportedFeature) -> None:
    _check_word(f"{field}.name", feature.name)
    low, high = feature.min_supported_version, feature.max_supported_version
    if low < 0:
        raise _refused(f"{field}.minSupportedVersion", f"it is {low}; give 0 or more")
    if low > high:
        raise _refused(
            f"{field}.minSupportedVersion", f"it is {low}, above maxSupportedVersion, {high}"
        )


def _check_word(field: str, text: str) -> None:
    check_plain(field, text, ErrorCode.INVALID_REGISTRATION)
    if not text.strip():
        raise _refused(field, "it is blank")


def _check_once(field: str, names: Sequence[str]) -> None:
    for name in names:
        if names.count(name) > 1:
            raise _refused(field, f"{name!r} occurs twice; names must be unique")


def _refused(field: str, why: str) -> LogbergError:
    return LogbergError(ErrorCode.INVALID_REGISTRATION, f"{field}: {why}", {"field": field})


def _checked_directories(
    image: MetadataImage, broker_id: int, registration: Registration
) -> tuple[bytes, ...]:
    """Return the ids of log directories: none reserved, none twice, none of another broker.

    Raises LogbergError INVALID_REGISTRATION.
    """
    directories = tuple(parse_uuid_of("logDirs", text) for text in registration.log_dirs)
    for directory in directories:
        if int.from_bytes(directory, "big") < _RESERVED_DIRECTORIES:
            raise _refused("logDirs", "one of them is a reserved id")
    if len(set(directories)) < len(directories):
        raise _refused("logDirs", "one of them is there twice")
    owners = image.cluster.by_directory
    others = [b for each in directories for b in owners.get(each, ()) if b != broker_id]
    if others:
        raise _refused(
            "logDirs", f"one of them belongs to broker {min(others)}: is the disk a copy?"
        )
    return directories


def _checked_cordons(
    image: MetadataImage, registration: Registration, log_dirs: tuple[bytes, ...]
) -> tuple[bytes, ...] | None:
    """Return the directories that take no new replicas; None where nobody may note them.

    Raises LogbergError INVALID_REGISTRATION.
    """
    said = registration.cordoned_log_dirs
    if said is None:
        return None
    cordoned = tuple(parse_uuid_of("cordonedLogDirs", text) for text in said)
    if not set(cordoned) <= set(log_dirs):
        raise _refused(
            "cordonedLogDirs",
            "one of them is not in logDirs; name only directories of this broker",
        )
    return cordoned if may_cordon(image) else None


def _check_levels(image: MetadataImage, registration: Registration) -> None:
    """Check that the broker supports every finalised level. Raises LogbergError."""
    declared = [
        (f.name, f.min_supported_version, f.max_supported_version) for f in registration.features
    ]
    for name, level in image.features.levels.items():
        supported = levels_of(declared, name)
        if level not in supported:
            raise LogbergError(
                ErrorCode.UNSUPPORTED_VERSION,
                f"feature {name} is finalised at level {level}, and the broker supports "
                f"{supported}; use software that supports it",
            )
