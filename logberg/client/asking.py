"""What every client can do: read, change, and ask one controller.

Operations are made of these three. The client decides how a request reaches the active controller.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import Any, TypeVar

T = TypeVar("T")


class Asking(ABC):
    """Every method raises ClientError."""

    @abstractmethod
    async def get(self, path: str, reply: type[T], query: Mapping[str, str] | None = None) -> T:
        """Read, and return the answer as a `reply`; for routes that have no method here.

        Linearizable unless the query says otherwise. Raises ClientError.
        """

    @abstractmethod
    async def change(
        self,
        method: str,
        path: str,
        reply: type[T],
        body: Mapping[str, Any] | None = None,
        reason: str = "",
        *,
        request_id: str | None = None,
        query: Mapping[str, str] | None = None,
    ) -> T:
        """Change something, at most once, however often the answer is lost.

        `reason`: kept in the log. `request_id`: that of an earlier call whose outcome is unknown,
        to find it out. Raises ClientError; REQUEST_TIMED_OUT means that the outcome is unknown.
        """

    @abstractmethod
    async def from_one(
        self,
        url: str,
        path: str,
        reply: type[T],
        query: Mapping[str, str] | None = None,
        deadline_s: float = 2.0,
    ) -> T:
        """Ask exactly the controller at `url`, once. Raises ClientError."""
