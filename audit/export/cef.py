"""CEF: one line for each event, with a header of eight fields and an extension of pairs.

Rule: in the header a bar and a backslash are escaped, in a value of the extension an equals sign,
a backslash, and line ends. Every other control character becomes a question mark. So text from the
log can neither end a line nor begin a field.

    CEF:0|Logberg|Logberg|VERSION|refused:create_topics|a caller …|5|rt=… src=… cnt=…
"""

import re
import unicodedata
from ipaddress import ip_address
from typing import Final

from audit.export.events import ExportedEvent, sentence

_VENDOR: Final = "Logberg"
_REFUSED, _ONLY_LOGGED, _DONE = 6, 5, 3
_UNSAFE: Final = frozenset({"Cc", "Cf", "Cs", "Zl", "Zp"})
"""Unicode's categories of controls, formats, lone surrogates, and separators of lines."""
_NAME_CHARS: Final = 512
_VALUE_CHARS: Final = 4_000
_LINE_ENDS: Final = re.compile("\r\n|[\r\n\x0b\x0c\x85\u2028\u2029]")


def cef_line(event: ExportedEvent, version: str) -> str:
    """Return an event as a line, without its end."""
    outcome = _outcome(event)
    severity = _REFUSED if event.refused else _ONLY_LOGGED if event.only_logged else _DONE
    head = (
        "CEF:0",
        _VENDOR,
        _VENDOR,
        _header(version),
        _header(f"{outcome}:{event.operation or '-'}"),
        _header(sentence(event)),
        str(severity),
    )
    pairs = " ".join(f"{key}={_value(value)}" for key, value in _pairs(event, outcome) if value)
    return "|".join(head) + "|" + pairs


def _outcome(event: ExportedEvent) -> str:
    if not event.is_attempt:
        return "changed"
    return "refused" if event.refused else "would-be-refused" if event.only_logged else "accepted"


def _pairs(event: ExportedEvent, outcome: str) -> tuple[tuple[str, str], ...]:
    method, _, path = event.request.partition(" ")
    return (
        ("rt", str(event.last_ms)),
        ("start", str(event.time_ms)),
        ("end", str(event.last_ms)),
        ("cnt", str(event.times)),
        ("externalId", str(event.offset)),
        ("act", outcome),
        ("outcome", "failure" if event.refused else "success"),
        *_source(event.address),
        ("suser", event.principal),
        ("duser", event.on_behalf_of),
        ("sproc", event.client_id),
        ("requestMethod", method if path else ""),
        ("request", path),
        ("reason", event.reason),
        ("deviceExternalId", "" if event.controller_id < 0 else str(event.controller_id)),
        *_labelled("cs1", "resource", ",".join(event.resources)),
        *_labelled("cs2", "error", event.code),
        *_labelled("cs3", "authentication", event.auth_method),
        *_labelled("cs4", "cluster", event.cluster_id),
        *_labelled("cs5", "requestId", event.request_id),
        *_labelled("cs6", "answer", event.answer),
    )


def _source(address: str) -> tuple[tuple[str, str], ...]:
    """Return the address; CEF has a field of its own for IPv6."""
    try:
        found = ip_address(address)
    except ValueError:
        return (("shost", address),)
    if found.version == 4:
        return (("src", str(found)),)
    return _labelled("c6a2", "Source IPv6 Address", str(found))


def _labelled(key: str, label: str, value: str) -> tuple[tuple[str, str], ...]:
    return ((f"{key}Label", label), (key, value)) if value else ()


def _header(text: str) -> str:
    plain = _plain(_LINE_ENDS.sub(" ", text))[:_NAME_CHARS]
    return plain.replace("\\", "\\\\").replace("|", "\\|")


def _value(text: str) -> str:
    lines = _LINE_ENDS.split(text[:_VALUE_CHARS])
    escaped = (_plain(line).replace("\\", "\\\\").replace("=", "\\=") for line in lines)
    return "\\n".join(escaped)


def _plain(text: str) -> str:
    """Return text with a question mark for what a terminal or a reader of lines would obey."""
    if text.isascii() and text.isprintable():
        return text
    return "".join("?" if unicodedata.category(sign) in _UNSAFE else sign for sign in text)
