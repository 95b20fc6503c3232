"""The sinks of `logberg audit findings --follow`: their options, and how they are opened.

Rule: a mistake in an option ends the command before it reads the log. Trouble later is a note on
stderr, and the findings wait in the spool.
"""

import stat
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from socket import gethostname
from typing import Final

import click
import msgspec

from audit.findings.delivery import FindingDelivery, FindingSink
from audit.findings.finding import Finding
from audit.findings.sinks import FileSink, SyslogSink, WebhookSink
from logberg.cli.failure import Failure
from logberg.cli.option_group import option_group
from logberg.cli.output import note
from logberg.commands.audit.local_paths import LocalPath
from runtime.disk.interface import FolderInUseError
from runtime.disk.real import RealDisk

_TIMEOUT_S: Final = 10.0


class SinkOptions(msgspec.Struct, frozen=True):
    """What the options say."""

    webhook: str | None
    webhook_secret: Path | None
    syslog: str | None
    file: Path | None
    spool: Path | None

    @property
    def any(self) -> bool:
        """Whether there is a sink, or something that only sinks need."""
        values = (self.webhook, self.webhook_secret, self.syslog, self.file, self.spool)
        return any(value is not None for value in values)


sink_options: Final = option_group(
    click.option("--webhook", metavar="URL", help="Post each finding to this URL, as JSON."),
    click.option(
        "--webhook-secret",
        type=LocalPath(),
        help="A file with the webhook's secret, sent as Authorization: Bearer.",
    ),
    click.option(
        "--syslog",
        metavar="ADDRESS",
        help="Send each finding to udp://HOST:514, tcp://HOST:601 or unix:///dev/log.",
    ),
    click.option("--file", type=LocalPath(), help="Append each finding to this file, as JSON."),
    click.option(
        "--spool",
        type=LocalPath(file_okay=False),
        help="A folder in which findings wait until their sinks have taken them.",
    ),
)


class OpenSinks:
    """The delivery to the sinks; without sinks, nothing."""

    def __init__(self, delivery: FindingDelivery | None) -> None:
        self._delivery = delivery
        self._reached: int | None = None

    @property
    def position(self) -> int | None:
        """The offset up to which an earlier run gave findings; None: there was none."""
        return None if self._delivery is None else self._delivery.position

    def give(self, findings: Sequence[Finding], position: int) -> None:
        """Hand over the findings of the log up to an offset."""
        self._reached = position
        if self._delivery is not None and findings:
            self._delivery.give(findings, position)

    def retry(self) -> None:
        """Hand over what waits, and write down up to where findings were given."""
        if self._delivery is not None:
            if self._reached is not None:
                self._delivery.keep_position(self._reached)
            self._delivery.retry()

    def end(self) -> None:
        """Try a last time, and tell what still waits."""
        self.retry()
        if self._delivery is not None and self._delivery.waiting:
            note(f"{self._delivery.waiting} deliveries wait in the spool for the next run")


@contextmanager
def opened_sinks(options: SinkOptions) -> Iterator[OpenSinks]:
    """Open the sinks and the spool, and close them. Raises Failure, click.UsageError."""
    if not options.any:
        yield OpenSinks(None)
        return
    sinks = list(_sinks(options))
    if not sinks:
        raise click.UsageError("Name a sink: --webhook, --syslog or --file.")
    if options.spool is None:
        raise click.UsageError("Sinks need --spool FOLDER, so that no finding is lost.")
    spool = RealDisk(options.spool)
    try:
        spool.lock()
        opened = OpenSinks(FindingDelivery(sinks, spool, now_s=time.monotonic, tell=note))
    except FolderInUseError as error:
        raise Failure(str(error)) from None
    except OSError as error:
        raise Failure(f"the spool {options.spool} can't be used: {error}") from None
    try:
        yield opened
    finally:
        opened.end()
        spool.close()


def _sinks(options: SinkOptions) -> Iterator[FindingSink]:
    try:
        if options.webhook is not None:
            secret = "" if options.webhook_secret is None else _secret(options.webhook_secret)
            yield WebhookSink(options.webhook, secret, _TIMEOUT_S)
        elif options.webhook_secret is not None:
            raise click.UsageError("--webhook-secret goes with --webhook.")
        if options.syslog is not None:
            yield SyslogSink(options.syslog, gethostname(), _TIMEOUT_S)
    except ValueError as error:
        raise click.UsageError(f"{error}.") from None
    if options.file is not None:
        yield FileSink(RealDisk(options.file.parent), options.file.name)


def _secret(path: Path) -> str:
    """Read a secret of one line, from a file that nobody else may read. Raises Failure."""
    try:
        mode = path.stat().st_mode
        text = path.read_text(encoding="ascii").strip()
    except (OSError, UnicodeDecodeError) as error:
        why = getattr(error, "strerror", None) or "it is no text"
        raise Failure(f"{path} can't be read ({why})") from None
    if mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise Failure(f"others than its user may open {path}; run: chmod 600 {path}")
    if not text or not text.isprintable():
        raise Failure(f"{path} does not hold a secret of one line")
    return text
