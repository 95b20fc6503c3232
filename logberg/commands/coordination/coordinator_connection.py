"""From a command's connection options to a client of coordination, with a session.

Rule: the same options find the same controllers with the same credentials as for other commands.
What coordination refuses ends the command as one sentence, with the error's name as its code.
"""

import asyncio
from collections.abc import Awaitable, Callable
from urllib.parse import urlencode, urlsplit

from coordination.backend import Auth
from coordination.connect import connect
from coordination.coordinator import Coordinator
from coordination.errors import CoordinationError
from logberg.cli.connection_options import ClusterConnection
from logberg.cli.failure import Failure
from logberg.commands.coordination.signal_routes import SignalRoute
from metadata.errors import Fault
from metadata.messages.errors import ErrorReply
from runtime.logging import configure

MARGIN_BESIDE_S = 1.0
"""What the margin has beside the time in which a command is ended."""


def run_with_coordinator(
    cluster: ClusterConnection,
    ttl_s: float,
    grace_s: float,
    body: Callable[[Coordinator, SignalRoute], Awaitable[int]],
) -> int:
    """Run `body` with a session of this process, and return its exit code. Raises Failure.

    `ttl_s`: of the session. `grace_s`: how long before its end a command must be told to stop.
    """
    signals = SignalRoute()
    margin_s = grace_s + MARGIN_BESIDE_S
    if margin_s >= ttl_s:
        raise Failure(
            f"--ttl is {ttl_s:g} s, and ending the command takes up to {margin_s:g} s of it; "
            "give a longer --ttl, or a shorter --grace"
        )
    # stdout belongs to the command.
    configure("error")

    async def run() -> int:
        with signals.installed():
            try:
                async with connect(
                    url_of(cluster),
                    ttl=ttl_s,
                    safety_margin=margin_s,
                    request_timeout=min(cluster.deadline_s, ttl_s / 2),
                    auth=None if cluster.access.token is None else Auth(token=cluster.access.token),
                ) as coordinator:
                    return await body(coordinator, signals)
            except asyncio.CancelledError:
                if not signals.ended_by:
                    raise
                return 128 + signals.ended_by

    try:
        return asyncio.run(run())
    except CoordinationError as error:
        raise failure_of(error, cluster.note) from None


def url_of(cluster: ClusterConnection) -> str:
    """Return the URL by which coordination finds these controllers. Raises Failure."""
    parts = [urlsplit(url) for url in cluster.urls]
    schemes = {part.scheme for part in parts}
    if len(schemes) != 1:
        raise Failure("some controllers are named with http:// and some with https://; use one")
    access = cluster.access
    given = {
        "ca": access.ca,
        "cert": access.cert,
        "key": access.key,
        "cluster_id": access.cluster_id,
        "token_in_clear": "true" if access.token_in_clear else None,
        "client_name": "logberg",
    }
    options = urlencode({name: value for name, value in given.items() if value is not None})
    hosts = ",".join(part.netloc for part in parts)
    return f"quorum+{schemes.pop()}://{hosts}?{options}"


def failure_of(error: CoordinationError, note: str = "") -> Failure:
    """Return what ends a command with this error."""
    code = type(error).__name__
    said = f"{error}; {note}" if note else str(error)
    reply = ErrorReply(
        code,
        said,
        retriable=error.retryable,
        details={"outcome": error.outcome},
        whose_fault=Fault.CLIENT.value,
    )
    return Failure(f"{said} [{code}]", reply)
