"""tooz's lock.

Rule: a lock that is taken several times as a shared one must be released as often. An exclusive one
is not re-entrant. `is_still_owner` asks the store, so it is true only while nobody else can have
the lock; but a pause may follow the answer. For writes that must not come late use the token.
"""

from collections.abc import Callable, Coroutine
from typing import Any, Final

from tooz import locking
from tooz.utils import convert_blocking

from coordination.coordinator import Coordinator
from coordination.errors import CoordinationError, DeadlineExceeded
from coordination.locks import Grant
from coordination.types import Token

RunOnLoop = Callable[[Callable[[Coordinator], Coroutine[Any, Any, bool]]], bool]


class ToozLock(locking.Lock):
    """One lock of one coordinator."""

    def __init__(self, name: bytes, our_name: str, run: RunOnLoop) -> None:
        """`run` makes a coroutine of the client, runs it on its loop, and raises tooz's errors."""
        super().__init__(name)
        self._our_name: Final = our_name
        self._run = run
        self._grants: list[Grant] = []
        """The newest last."""

    @property
    def acquired(self) -> bool:
        """Whether this object has taken the lock and has not given it back."""
        return bool(self._grants)

    @property
    def token(self) -> Token | None:
        """The fencing token of the newest grant; None: the lock isn't taken."""
        return self._grants[-1].token if self._grants else None

    def acquire(
        self, blocking: bool | float = True, shared: bool = False, timeout: float | None = None
    ) -> bool:
        """Take the lock. `blocking` may be a number of seconds, as `timeout`."""
        blocks, limit_s = convert_blocking(blocking, timeout)
        wait_s = limit_s if blocks else 0
        return self._run(lambda client: self._acquire(client, wait_s, shared=shared))

    def release(self) -> bool:
        """Give the newest grant back. False: there is none, or the store had taken it away."""
        if not self._grants:
            return False
        grant = self._grants.pop()
        return self._run(lambda _: grant.release())

    def break_(self) -> bool:
        """Take the lock from all who hold it."""
        return self._run(lambda client: client.lock(self._our_name).break_())

    def is_still_owner(self) -> bool:
        """Ask the store whether the session lives, and whether the lock was not broken."""
        return bool(self._grants) and self._run(lambda _: self._holds(self._grants[-1]))

    async def _acquire(self, client: Coordinator, limit_s: float | None, *, shared: bool) -> bool:
        lock = client.lock(self._our_name)
        try:
            self._grants.append(await lock.acquire(timeout=limit_s, shared=shared))
        except DeadlineExceeded:
            return False
        return True

    async def _holds(self, grant: Grant) -> bool:
        try:
            await grant.session.verify()
            grant.check()
        except CoordinationError:
            return False
        return True
