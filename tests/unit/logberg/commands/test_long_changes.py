"""A change in rounds is sent again, with its id, as long as it goes on."""

import asyncio
from collections.abc import Iterator

import pytest

from logberg.client.client_errors import ClientError, unknown_outcome
from logberg.commands.long_changes import carried_out
from metadata.messages.quorum import RequestUnderWay


class Controllers:
    """Answer each try, at last, and each look."""

    def __init__(self, tries: list[str | Exception], looks: list[int | None]) -> None:
        self._tries: Iterator[str | Exception] = iter(tries)
        self._looks = looks
        self._looked = asyncio.Event()
        self.sent = 0

    async def send(self) -> str:
        self.sent += 1
        answer = next(self._tries)
        if self._looks:
            self._looked.clear()
            await self._looked.wait()
        if isinstance(answer, Exception):
            raise answer
        return answer

    async def look(self) -> RequestUnderWay | None:
        done = self._looks.pop(0)
        self._looked.set()
        if done == -1:
            raise ClientError("NO_ANSWER", "it is not there")
        return None if done is None else RequestUnderWay("Any", "the-id", done, 90)


UNKNOWN = unknown_outcome("the-id", "no answer")
REFUSED = ClientError("THROTTLED", "too many")


@pytest.mark.parametrize(
    ("tries", "looks", "told", "ends"),
    [
        (["fine"], [], [], "fine"),
        (["fine"], [30], [30], "fine"),
        (["fine"], [None], [], "fine"),
        (["fine"], [-1], [], "fine"),
        ([UNKNOWN, UNKNOWN, "fine"], [30, 60, 89], [30, 60, 89], "fine"),
        ([UNKNOWN, UNKNOWN], [30, 30], [30], "REQUEST_TIMED_OUT"),
        ([UNKNOWN], [None], [], "REQUEST_TIMED_OUT"),
        ([UNKNOWN], [-1], [], "REQUEST_TIMED_OUT"),
        ([REFUSED], [30], [30], "THROTTLED"),
    ],
)
def test_tries(
    tries: list[str | Exception], looks: list[int | None], told: list[int], ends: str
) -> None:
    heard: list[int] = []

    async def run() -> tuple[str, int]:
        controllers = Controllers(tries, list(looks))

        def tell(done: int, total: int) -> None:
            assert total == 90
            heard.append(done)

        try:
            found = await carried_out(controllers.send, controllers.look, tell, 0.001)
        except ClientError as error:
            found = error.code
        return found, controllers.sent

    found, sent = asyncio.run(run())
    assert (found, heard, sent) == (ends, told, len(tries))
