"""Takes secrets out of configuration files, process logs and texts, for the support bundle.

Rule: what is not known to be harmless is left out. A configuration keeps its keys, its numbers, and
the texts of the keys in `HARMLESS`. Of a process log, lines that we wrote keep their event, their
numbers, and their texts after `scrub`; of other lines only the places of a traceback stay. A list
of forbidden names would let the first secret through that nobody thought of.
"""

import json
import re
import tomllib
from typing import Any, Final

HIDDEN: Final = "<left out>"
HARMLESS: Final = frozenset(
    {
        *("cluster_id", "data", "log_level", "rack", "fetch_from", "listen", "advertised", "host"),
        *("http", "quorum", "name", "listener_name", "security_protocol", "principal", "users"),
        *("controllers", "super_users", "cert", "ca", "key", "cluster_key", "unix_socket"),
        *("host_socket", "log_dirs", "sasl_mechanisms", "create_topic_policy"),
        "alter_config_policy",
    }
)
"""Keys of our configuration files whose texts are names, addresses and paths."""
_TABLES: Final = frozenset({"initial_features"})
"""Tables whose keys are the user's, and whose values may be shown if they are numbers."""
_SECRETS = re.compile(
    r"""
    -----BEGIN[^-]*-----.*?(?:-----END[^-]*-----|\Z)   # PEM, also when its end was cut off
    | \b(?:qk|lgbj?)_[A-Za-z0-9_-]+                    # a bearer token, or a join token
    | (?<=://)[^/\s@]+@                                # user and password of a URL
    | \b[0-9a-fA-F]{48,}\b                             # keys and hashes in hexadecimal
    | (?<![A-Za-z0-9+/=_-])(?=[A-Za-z0-9+/_-]*\d)(?=[A-Za-z0-9+/_-]*[A-Z])[A-Za-z0-9+/_-]{40,}={0,2}
    """,
    re.VERBOSE | re.DOTALL,
)
_NAMED_SECRETS = re.compile(
    r"""
    (?P<name>
        (?i:\b(?:bearer|basic|scram-sha-\d+)\s+)        # the header of a request
        | (?i:\b[\w.-]*(?:password|passwd|secret|token|api[_-]?key|hmac|credential|private[_-]?key)
            [\w.-]*["']?\s*[=:]\s*)
    )
    (?!\d+\b|true|false|null|["']?<left\ out>)
    (?P<quote>["']?)(?P<value>(?<=")[^"]*|(?<=')[^']*|[^\s,;}\[{"']+)
    """,
    re.VERBOSE,
)
_SECRET_NAME = re.compile(
    r"(?i)password|passwd|secret|token|authori[sz]ation|credential|private|hmac|api_?key|salt|jaas"
)
_PLACE = re.compile(r'\s*File "[^"]*", line \d+(?:, in \S+)?')
_ERROR = re.compile(r"[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)(?=:|$)")


def scrub(text: str) -> str:
    """Return the text without what looks like a secret."""
    named = _NAMED_SECRETS.sub(lambda m: f"{m['name']}{m['quote']}{HIDDEN}", text)
    return _SECRETS.sub(HIDDEN, named)


def redacted_settings(text: str) -> str:
    """Return a configuration file, TOML or server.properties, as JSON without secrets."""
    try:
        table: dict[str, Any] = tomllib.loads(text)
    except tomllib.TOMLDecodeError:
        return _redacted_properties(text)
    return json.dumps({key: _setting(key, value) for key, value in table.items()}, indent=2) + "\n"


def _setting(key: str, value: Any) -> Any:
    if isinstance(value, bool | int | float):
        return value
    if isinstance(value, dict):
        if key in _TABLES or key not in _FREE_TABLES:
            return {name: _setting(name, inner) for name, inner in value.items()}
        return dict.fromkeys(value, HIDDEN)
    if isinstance(value, list):
        return [_setting(key, each) for each in value]
    return scrub(str(value)) if key in HARMLESS else HIDDEN


_FREE_TABLES: Final = frozenset({"configs", "broker_users"})
"""Tables of the user's own keys and texts: only the keys are shown."""


def _redacted_properties(text: str) -> str:
    """Only the keys of a file of keys and values."""
    keys = []
    for line in text.splitlines():
        key, equals, _ = line.partition("=")
        if equals and re.fullmatch(r"\s*[a-z][a-z0-9._]*\s*", key):
            keys.append(key.strip())
    return json.dumps(dict.fromkeys(keys, HIDDEN), indent=2) + "\n"


def redacted_line(line: str) -> str | None:
    """Return one line of a process's log without secrets; None: nothing of it may be shown."""
    try:
        fields = json.loads(line)
    except ValueError:
        return _foreign(line)
    if not isinstance(fields, dict) or "event" not in fields:
        return None
    return json.dumps({name: _field(name, value) for name, value in fields.items()})


def _field(name: str, value: Any) -> Any:
    if value is None or isinstance(value, bool | int | float):
        return value
    if _SECRET_NAME.search(name):
        return HIDDEN
    if isinstance(value, str):
        return "\n".join(_traceback(value)) if name == "exception" else scrub(value)
    if isinstance(value, list):
        return [_field(name, each) for each in value]
    if isinstance(value, dict):
        return {inner: _field(inner, each) for inner, each in value.items()}
    return HIDDEN


def _traceback(text: str) -> list[str]:
    return [shown for line in text.splitlines() if (shown := _foreign(line)) is not None]


def _foreign(line: str) -> str | None:
    """A line that is not ours: the place in a traceback, or the kind of an error."""
    place = _PLACE.match(line)
    if place is not None:
        return place[0]
    error = _ERROR.match(line)
    return None if error is None else error[0]
