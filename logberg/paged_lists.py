"""Long lists from a controller, page by page, all pages from one state.

Rule: the controller keeps the state for a minute. When it is gone (another controller answers, or
we were slow), the reading begins anew; nobody is shown a mixture.
"""

from typing import Any

from logberg.client import ClientError, LogbergClient

PAGE_MAX = 1_000
_EXPIRED = "CONTINUATION_EXPIRED"
_TRIES = 3


async def all_pages(client: LogbergClient, path: str, entries: str) -> dict[str, Any]:
    """Read a list whole: the first answer, with the entries of all. Raises ClientError.

    `entries` names the list in the answer; of a topic its partitions are meant.
    """
    for turn in range(1, _TRIES + 1):
        try:
            return await _read(client, path, entries)
        except ClientError as error:
            if error.code != _EXPIRED or turn == _TRIES:
                raise
    raise AssertionError("the last try returns or raises")


async def _read(client: LogbergClient, path: str, entries: str) -> dict[str, Any]:
    query = {"limit": str(PAGE_MAX)}
    reply: dict[str, Any] = await client.get(path, query)
    page = reply
    asked: set[str] = set()
    while (token := page.get("continuation")) and isinstance(token, str):
        if token in asked:
            # Else a server could keep us reading for ever.
            raise ClientError("UNKNOWN_SERVER_ERROR", f"{path}: the same page came twice")
        asked.add(token)
        page = await client.get(path, {**query, "continuation": token})
        _list_of(reply, entries).extend(_list_of(page, entries))
    # All that there is, as an answer without pages would say it.
    reply.pop("continuation", None)
    if "nextAfter" in reply:
        reply["nextAfter"] = None
    return reply


def _list_of(reply: dict[str, Any], entries: str) -> list[Any]:
    found = reply["topics"][0][entries] if entries == "partitions" else reply[entries]
    assert isinstance(found, list)
    return found
