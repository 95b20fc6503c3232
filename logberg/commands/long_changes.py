"""Sends a change that is written in rounds, and shows how far it is.

Rule: a client waits for an answer for a limited time, and a large change may take longer. So while
the active controller says that the change goes on, the same request is sent again with its request
id. It takes effect once, also if another controller became active in between.
"""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, TypeVar

from logberg.cli.connection_options import ChangeOptions, ClusterConnection
from logberg.cli.progress import OnProgress
from logberg.client.client import LogbergClient
from logberg.client.client_errors import ClientError
from logberg.client.request_ids import new_request_id
from metadata.errors import ErrorCode
from metadata.messages.quorum import RequestUnderWay, StatusReply

T = TypeVar("T")
_LOOK_EVERY_S = 0.5


def carry_out(
    cluster: ClusterConnection,
    change: ChangeOptions,
    send: Callable[[LogbergClient, Mapping[str, Any]], Awaitable[T]],
    tell: OnProgress,
) -> T:
    """Return the answer of `send(client, arguments)`; the arguments are those of every change.

    Raises Failure.
    """
    request_id = change.request_id or new_request_id()
    arguments = change.arguments() | {"request_id": request_id}
    return cluster.ask(
        lambda client: carried_out(
            lambda: send(client, arguments), lambda: under_way(client, request_id), tell
        )
    )


async def carried_out(
    send: Callable[[], Awaitable[T]],
    look: Callable[[], Awaitable[RequestUnderWay | None]],
    tell: OnProgress,
    look_every_s: float = _LOOK_EVERY_S,
) -> T:
    """Return the answer of `send()`. It sends the change, each time with the same request id.

    `look()` returns how far that request is. Raises ClientError; its outcome is unknown if the
    change did not go on for a whole try.
    """
    done = -1
    while True:
        before = done
        sending = asyncio.ensure_future(send())
        try:
            while not (await asyncio.wait({sending}, timeout=look_every_s))[0]:
                now = await _seen(look)
                if now is not None and now.done > done:
                    done = now.done
                    tell(now.done, now.total)
            return sending.result()
        except ClientError as error:
            if error.code != ErrorCode.REQUEST_TIMED_OUT or done == before:
                raise
        finally:
            sending.cancel()


async def under_way(client: LogbergClient, request_id: str) -> RequestUnderWay | None:
    """Return how far a request is that is written in rounds; None if no round is in the log.

    Raises ClientError.
    """
    status = await client.status()
    if not status.active and status.leader_url is not None:
        status = await client.from_one(status.leader_url, "/v1/status", StatusReply)
    return next((each for each in status.requests if each.request_id == request_id), None)


async def _seen(
    look: Callable[[], Awaitable[RequestUnderWay | None]],
) -> RequestUnderWay | None:
    try:
        return await look()
    except ClientError:
        return None
