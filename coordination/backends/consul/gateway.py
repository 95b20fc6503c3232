"""Asks Consul by its HTTP API: what to send, and what an answer means.

Rule: reads are `consistent` unless the caller says otherwise: the leader asks a majority before it
answers. A server without a leader refuses, and `HttpServers` asks the next one.
"""

from typing import Final, NamedTuple, TypeVar
from urllib.parse import quote

import msgspec

from coordination.backends.consul import messages as wire
from coordination.errors import (
    AuthFailed,
    ConfigError,
    TxnTooLarge,
    Unavailable,
)
from coordination.http_servers import (
    CONNECT_S,
    HttpReply,
    HttpServers,
    NotDoneError,
    PerhapsDoneError,
)

_POLL_CONNECT_S: Final = 3.0
"""Hundreds of polls may begin at once, each with a connection of its own."""
_NOTHING_DONE: Final = (
    "No cluster leader",
    "No path to datacenter",
    "node is not the leader",
    "Missing node registration",
    "rate limit",
    "too many connections",
)
"""What Consul says when it refuses a request before it proposes anything."""

Reply = TypeVar("Reply")


class FoundKeys(NamedTuple):
    """Keys, and Consul's index up to which this is their state."""

    revision: int
    keys: tuple[wire.ConsulKey, ...]


class ConsulGateway:
    """One client of one datacenter."""

    def __init__(self, servers: HttpServers, token: str) -> None:
        """Take the servers, and the ACL token; empty: ask as anybody."""
        self.servers = servers
        self._headers = {"X-Consul-Token": token} if token else {}

    async def read(self, key: str, *, recurse: bool = False, mode: str = "consistent") -> FoundKeys:
        """Read one key, or all that begin with it. `mode`: `consistent` or `stale`."""

        async def try_once(url: str, limit_s: float) -> FoundKeys:
            return await self.poll(url, key, limit_s, recurse=recurse, mode=mode)

        found, _ = await self.servers.ask(try_once, changes=False)
        return found

    async def poll(
        self,
        url: str,
        key: str,
        limit_s: float,
        *,
        recurse: bool,
        mode: str = "default",
        after: int = 0,
        wait_s: float = 0.0,
    ) -> FoundKeys:
        """Ask one server, which waits up to `wait_s` seconds for an index above `after`.

        Raises NotDoneError, PerhapsDoneError, AuthFailed.
        """
        query = [mode] if mode != "default" else []
        query += ["recurse"] if recurse else []
        query += [f"index={after}", f"wait={wait_s:.0f}s"] if after else []
        target = f"{url}/v1/kv/{quote(key, safe='/')}?{'&'.join(query)}"
        reply = await self.servers.send(
            "GET",
            target,
            limit_s,
            headers=self._headers,
            connect_s=_POLL_CONNECT_S if after else CONNECT_S,
        )
        if reply.status not in {200, 404}:
            _raise_refusal(reply)
        index = reply.headers.get("X-Consul-Index", "0")
        if reply.status == 404 and not index.isdigit():
            _raise_refusal(reply)
        found = _decoded(reply.content, tuple[wire.ConsulKey, ...]) if reply.status == 200 else ()
        return FoundKeys(int(index), found)

    async def transact(
        self, steps: list[wire.KeyStep], until: float | None = None
    ) -> tuple[wire.ConsulTxnReply, bool]:
        """Make all steps or none; also say whether an earlier try may have made them already."""
        content = wire.encode([wire.TxnStep(step) for step in steps])
        reply, repeated = await self._send("PUT", "/v1/txn", content, until=until)
        return _decoded(reply.content, wire.ConsulTxnReply), repeated

    async def ask(self, path: str, kind: type[Reply]) -> Reply | None:
        """Read something else; None: Consul doesn't know it."""
        reply, _ = await self._send("GET", path, b"", changes=False)
        return None if reply.status == 404 else _decoded(reply.content, kind)

    async def put(self, path: str, content: bytes, *, changes: bool = True) -> HttpReply:
        """Change something else."""
        reply, _ = await self._send("PUT", path, content, changes=changes)
        return reply

    async def _send(
        self,
        method: str,
        path: str,
        content: bytes,
        *,
        changes: bool = True,
        until: float | None = None,
    ) -> tuple[HttpReply, bool]:
        async def try_once(url: str, limit_s: float) -> HttpReply:
            reply = await self.servers.send(
                method, url + path, limit_s, content=content, headers=self._headers
            )
            if reply.status not in {200, 404, 409}:
                _raise_refusal(reply)
            return reply

        return await self.servers.ask(try_once, changes=changes, until=until)


def _decoded(content: bytes, kind: type[Reply]) -> Reply:
    try:
        return wire.decode(content, kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise Unavailable(
            f"The server's answer is none of Consul's ({error}). Is the URL right?"
        ) from None


def _raise_refusal(reply: HttpReply) -> None:
    """Raise what Consul's error means."""
    says = reply.content[:500].decode(errors="replace")
    if reply.status in {401, 403}:
        raise AuthFailed(f"Consul refuses: {says}")
    if reply.status == 413:
        raise TxnTooLarge(f"Consul refuses: {says}")
    if "Invalid Session TTL" in says:
        raise ConfigError(f"Consul refuses: {says}")
    if reply.status == 429 or any(words in says for words in _NOTHING_DONE):
        raise NotDoneError(says)
    if reply.status >= 500:
        raise PerhapsDoneError(says)
    raise Unavailable(f"Consul refuses with HTTP {reply.status}: {says}")
