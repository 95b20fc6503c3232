"""Sends a message to syslog (RFC 5424): by UDP, TCP (RFC 6587, counted octets), a Unix socket.

Rule: a message that TCP or a Unix socket took may still be lost by the receiver, and one that UDP
took may have gone nowhere: syslog has no answer. So a sink that must not lose anything is a webhook
or a file.
"""

import errno
import socket
from collections.abc import Mapping
from typing import NamedTuple
from urllib.parse import urlsplit

from runtime.notices.webhook import NotTakenError

_UDP_BYTES = 2_048
"""What every receiver should take (RFC 5426, section 3.2)."""
_BOM = "\N{ZERO WIDTH NO-BREAK SPACE}".encode()
_PORTS = {"udp": 514, "tcp": 601}


class SyslogAddress:
    """Where syslog listens. Raises ValueError for a text that names no place."""

    def __init__(self, text: str) -> None:
        """`text`: `udp://HOST:PORT`, `tcp://HOST:PORT` or `unix:///dev/log`."""
        parts = urlsplit(text)
        self.kind = parts.scheme
        self.shown = text
        self.host, self.port, self.path = parts.hostname or "", 0, parts.path
        if self.kind == "unix" and self.path and not self.host:
            return
        if self.kind in _PORTS and self.host and not self.path.strip("/"):
            self.port = parts.port or _PORTS[self.kind]
            return
        raise ValueError(
            f"{text} is no address of syslog; write udp://HOST:514, tcp://HOST:601 or "
            "unix:///dev/log"
        )


class SyslogMessage(NamedTuple):
    """One message."""

    facility: int
    severity: int
    """0 (emergency) to 7 (debug)."""
    timestamp: str
    """RFC 3339, in UTC."""
    host: str
    program: str
    message_id: str
    data_id: str
    """The name of the structured data, such as `finding@32473`."""
    data: Mapping[str, str]
    text: str

    def encode(self) -> bytes:
        """Return the message as on the wire, without a frame."""
        pairs = "".join(f' {name}="{_escaped(value)}"' for name, value in self.data.items())
        head = (
            f"<{self.facility * 8 + self.severity}>1 {self.timestamp} {_word(self.host, 255)} "
            f"{_word(self.program, 48)} - {_word(self.message_id, 32)} [{self.data_id}{pairs}] "
        )
        return head.encode() + _BOM + " ".join(self.text.split()).encode()


def send_syslog(address: SyslogAddress, message: SyslogMessage, timeout_s: float) -> None:
    """Send a message once. Raises NotTakenError."""
    data = message.encode()
    try:
        if address.kind == "udp":
            _send_udp(address, data, timeout_s)
        elif address.kind == "tcp":
            with socket.create_connection((address.host, address.port), timeout_s) as tcp:
                tcp.sendall(b"%d " % len(data) + data)
        else:
            _send_unix(address.path, data, timeout_s)
    except OSError as error:
        raise NotTakenError(f"{address.shown}: {error}") from None


def _send_udp(address: SyslogAddress, data: bytes, timeout_s: float) -> None:
    places = socket.getaddrinfo(address.host, address.port, type=socket.SOCK_DGRAM)
    family, kind, protocol, _, place = places[0]
    with socket.socket(family, kind, protocol) as udp:
        udp.settimeout(timeout_s)
        udp.sendto(_whole_characters(data[:_UDP_BYTES]), place)


def _send_unix(path: str, data: bytes, timeout_s: float) -> None:
    """Send to a socket of datagrams, as /dev/log is; else to one of streams."""
    for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM):
        with socket.socket(socket.AF_UNIX, kind) as unix:
            unix.settimeout(timeout_s)
            try:
                unix.connect(path)
            except OSError as error:
                wrong_kind = error.errno == errno.EPROTOTYPE
                if kind == socket.SOCK_DGRAM and wrong_kind:
                    continue
                raise
            unix.sendall(data if kind == socket.SOCK_DGRAM else b"%d " % len(data) + data)
            return


def _whole_characters(data: bytes) -> bytes:
    return data.decode(errors="ignore").encode()


def _escaped(value: str) -> str:
    flat = " ".join(value.split())
    return flat.replace("\\", "\\\\").replace('"', '\\"').replace("]", "\\]")


def _word(text: str, most: int) -> str:
    """Return a field of the head: printable ASCII without spaces; `-` for nothing."""
    return "".join(c for c in text if "!" <= c <= "~")[:most] or "-"
