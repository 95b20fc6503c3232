"""How the core asks its backend: within the session, with names in the client's namespace.

Rule: a call begins only while the session lives, and its result counts only if the session still
lives then. So a process that was stopped learns of the loss before any call of it succeeds.
"""

from collections.abc import Awaitable, Callable
from typing import TypeVar

from structlog.typing import FilteringBoundLogger

from coordination.backend import Backend, Resource, ResourceKind
from coordination.errors import InvalidKey, SessionLost, ValueTooLarge
from coordination.session import Session
from coordination.types import SessionId
from runtime.clock import Clock
from runtime.randomness import Random

T = TypeVar("T")


class SessionCalls:
    """One client's backend, present session and namespace."""

    def __init__(
        self,
        backend: Backend,
        session: Session,
        namespace: str,
        clock: Clock,
        dice: Random,
        request_timeout_s: float,
        log: FilteringBoundLogger,
    ) -> None:
        self.backend = backend
        self.session = session
        """The present one; another object once the client has a new session."""
        self.clock = clock
        self.dice = dice
        self.request_timeout_s = request_timeout_s
        self.log = log
        self._namespace = f"{namespace.rstrip('/')}/" if namespace.rstrip("/") else ""

    async def call(self, ask: Callable[[SessionId], Awaitable[T]], *, changes: bool = False) -> T:
        """Ask the backend. Raises what it raises, and SessionLost when the session is over.

        `changes`: the call changes the store, so losing the session meanwhile leaves it open
        whether the change was made.
        """
        session = self.session
        session.check()
        try:
            async with session.scope():
                return await ask(session.id)
        except SessionLost as lost:
            if changes:
                lost.outcome = "unknown"
            session.lose(str(lost))
            raise

    def key(self, key: str) -> str:
        """Return a key as the backend knows it. Raises InvalidKey."""
        return self._namespace + self._checked(key, "a key")

    def resource(self, kind: ResourceKind, name: str) -> Resource:
        """Return a resource as the backend knows it. Raises InvalidKey."""
        return Resource(kind, self._namespace + self._checked(name, f"the name of a {kind}"))

    def id(self, id_: str) -> str:
        """Return an entry's id. Raises InvalidKey."""
        return self._checked(id_, "an id")

    def prefix(self, namespace: str) -> str:
        """Return what the keys below a namespace begin with. Raises InvalidKey."""
        if not namespace:
            return self._namespace
        below = namespace if namespace.endswith("/") else f"{namespace}/"
        return self._namespace + self._checked(below, "a namespace")

    def own_key(self, key: str) -> str:
        """Return a key as the caller knows it, from the backend's."""
        return key.removeprefix(self._namespace)

    def data(self, data: bytes | str) -> bytes:
        """Return a value as bytes. Raises ValueTooLarge."""
        value = data.encode() if isinstance(data, str) else bytes(data)
        limit = self.backend.capabilities.max_value_bytes
        if len(value) > limit:
            raise ValueTooLarge(
                f"a value has {len(value)} bytes; the store takes {limit}", limit=limit
            )
        return value

    def _checked(self, text: str, what: str) -> str:
        if not text:
            raise InvalidKey(f"{what} is empty")
        try:
            size = len((self._namespace + text).encode())
        except UnicodeEncodeError as error:
            raise InvalidKey(f"{what} holds a lone surrogate: {text!r}") from error
        limit = self.backend.capabilities.max_key_bytes
        if size > limit:
            raise InvalidKey(f"{what} has {size} bytes with its namespace; the limit is {limit}")
        return text
