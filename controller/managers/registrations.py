"""Checks the fields of a broker's registration that need no image.

A registration stays in the log for ever and is shown to users. So values that can't be true of any
broker are refused, and the error names the field. Each check concerns one field.
"""

from collections.abc import Sequence

from metadata.errors import ErrorCode, LogbergError
from metadata.messages import Endpoint, Registration, SupportedFeature
from metadata.plain_text import check_plain
from metadata.records import SecurityProtocol

_PROTOCOLS = ", ".join(f"{int(protocol)} ({protocol.name})" for protocol in SecurityProtocol)


def check_registration(registration: Registration) -> None:
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
