"""The sinks: a webhook, syslog, a file.

Rule: each sends one finding as JSON, or as one line of syslog. A double has the same `id` and
`count`; the form of a finding that gathered more has the same `id` and a higher `count`.
"""

import datetime as dt
from typing import Any, Final

import msgspec

from runtime.disk.interface import Disk
from runtime.notices.syslog import SyslogAddress, SyslogMessage, send_syslog
from runtime.notices.webhook import NotTakenError, WebhookAddress, post

_AUDIT: Final = 13
"""Syslog's facility `log audit`."""
_SEVERITIES: Final = {"critical": 2, "high": 3, "medium": 4, "low": 5}
_DATA_ID: Final = "finding@32473"
"""32473 is the enterprise number for examples (RFC 5612)."""
_TOLD: Final = ("id", "rule", "severity", "principal", "clientAddress", "reason", "count", "offset")


class WebhookSink:
    """Posts each finding as JSON. The secret goes as `Authorization: Bearer SECRET`."""

    name = "webhook"

    def __init__(self, url: str, secret: str, timeout_s: float) -> None:
        """Raises ValueError for a bad URL."""
        self._address = WebhookAddress(url)
        self._timeout_s = timeout_s
        self._headers = {"Content-Type": "application/json", "User-Agent": "logberg"}
        if secret:
            self._headers["Authorization"] = f"Bearer {secret}"

    def send(self, finding: dict[str, Any]) -> None:
        """Post once. Raises NotTakenError."""
        headers = {**self._headers, "X-Logberg-Finding": header_text(str(finding["id"]))}
        post(self._address, msgspec.json.encode(finding), headers, self._timeout_s)


class SyslogSink:
    """Sends each finding as a line of syslog."""

    name = "syslog"

    def __init__(self, address: str, host: str, timeout_s: float) -> None:
        """`host`: the name of this machine. Raises ValueError for a bad address."""
        self._address = SyslogAddress(address)
        self._host = host
        self._timeout_s = timeout_s

    def send(self, finding: dict[str, Any]) -> None:
        """Send once. Raises NotTakenError."""
        message = SyslogMessage(
            _AUDIT,
            _SEVERITIES.get(finding["severity"], 5),
            _timestamp(int(finding["timeMs"])),
            self._host,
            "logberg",
            str(finding["rule"]),
            _DATA_ID,
            {name: str(finding[name]) for name in _TOLD},
            str(finding["sentence"]),
        )
        send_syslog(self._address, message, self._timeout_s)


class FileSink:
    """Appends each finding to a file, one JSON document a line, and syncs it."""

    name = "file"

    def __init__(self, disk: Disk, file: str) -> None:
        self._disk, self._file = disk, file

    def send(self, finding: dict[str, Any]) -> None:
        """Append once. Raises NotTakenError."""
        try:
            opened = self._disk.open(self._file)
            try:
                opened.append(msgspec.json.encode(finding) + b"\n")
                opened.sync()
            finally:
                opened.close()
        except OSError as error:
            raise NotTakenError(f"{self._file} can't be written: {error}") from None


def header_text(text: str) -> str:
    """Return a text as a header may hold it: printable ASCII."""
    return "".join(c for c in text if " " <= c <= "~")


def _timestamp(time_ms: int) -> str:
    at = dt.datetime(1970, 1, 1, tzinfo=dt.UTC) + dt.timedelta(milliseconds=time_ms)
    return f"{at:%Y-%m-%dT%H:%M:%S}.{time_ms % 1_000:03d}Z"
