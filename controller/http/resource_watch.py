"""Answers `GET /v1/watch`: the records about one resource, and waits for more of them.

Any node answers, from its own ledger, as for `/v1/log`. A reading ends when it has enough records
or has read enough of the log; then it may have none, and its `nextFrom` says where to go on. A
watcher that waits is looked at again when something is committed (`watch_groups`).

A person's name is looked up anew before each reading, in a state that has all that is read. For a
person may get a pseudonym while a watcher waits, and an erasure may end it. The request was allowed
by then, so a caller who may not watch users does not hear who has a pseudonym.

A watcher sees what its rights show (`controller.access.watch_rights`). If they are others when the
answer is ready than when the reading began, the reading begins again.
"""

from collections.abc import Callable, Generator
from typing import Final

from controller.access.watch_rights import WatchRights
from controller.http.describe import readable_offset
from controller.http.held_requests import HeldRequests
from controller.http.queries import whole_number
from controller.http.watch_groups import Log, OnAnswer, Outcome, WatchGroups
from controller.http.watched_records import Place, RecordFinder, WatchedResource
from controller.storage.history import ReadableHistory
from ledger.batch import parse
from ledger.errors import DamagedLedgerError, HistoryMissingError, LedgerError, SegmentAwayError
from metadata.codec import RecordDecodeError
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.messages import WatchReply
from metadata.messages.parts import EncodedOnce, LongMessage
from metadata.person_opener import PersonOpener
from runtime.clock import Clock
from runtime.http.requests import Request
from runtime.loop.slices import run_in_slices

FOUND_MAX: Final = 1_000
"""A reading ends behind the batch or transaction with so many records."""
READ_MAX_BYTES: Final = 4 * 1024 * 1024
WAIT_MS_MAX: Final = 60_000
_PIECE_BYTES: Final = 64 * 1024


class ResourceWatch:
    """Answers `GET /v1/watch`."""

    def __init__(
        self,
        clock: Clock,
        history: ReadableHistory,
        image: Callable[[], MetadataImage],
        held_requests: HeldRequests,
        at_least: Callable[[int, Callable[[bool], None]], None],
        on_damaged: Callable[[DamagedLedgerError], None],
        opener: PersonOpener,
        also: Callable[[str], str | None],
    ) -> None:
        """`at_least` waits a while for an offset, and says whether it is applied here.

        `opener` opens sealed addresses and names in answers. `also` returns a resource with the
        pseudonym of the person whom it names, if there is one (`PeopleDoor.also`).
        """
        self._opener = opener
        self._also = also
        self._at_least = at_least
        self._clock = clock
        self._history = history
        self._image = image
        self._on_damaged = on_damaged
        self._groups = WatchGroups(
            clock, held_requests, Log(self._end, self._read_on, self._message)
        )

    def read(
        self, request: Request, rights: Callable[[str], WatchRights], on_answer: OnAnswer
    ) -> None:
        """Answer with records. If there are none, wait for some, or until the wait is over.

        `rights` returns what the asker may see now, by the name of the watched topic.
        """
        try:
            end = readable_offset(self._image())
            resource = WatchedResource.read(request.query.get("resource", ""))
            wait_ms = min(whole_number(request.query, "waitMs", 0), WAIT_MS_MAX)
            place = Place.read(request.query.get("from", str(end)))
        except LogbergError as error:
            on_answer(error)
            return

        def begin(until: float) -> None:
            seen = rights(resource.topic)
            finder = RecordFinder(resource, place, self._image(), seen, self._opener)

            def answer(outcome: Outcome) -> None:
                if isinstance(outcome, LogbergError) or rights(resource.topic) == seen:
                    on_answer(outcome)
                else:
                    begin(until)

            self._go_on(finder, until, answer)

        def reached(ok: bool) -> None:
            if ok:
                begin(self._clock.monotonic() + wait_ms / 1000)
            else:
                on_answer(_beyond(place.offset, readable_offset(self._image())))

        # A controller that answered before may have been ahead of this one.
        self._at_least(place.offset, reached)

    def _go_on(self, finder: RecordFinder, until: float, on_answer: OnAnswer) -> None:
        """Read what there is, in slices. Then answer, or wait."""
        failed: list[LogbergError] = []

        def recalled(why: str) -> None:
            if why:
                on_answer(LogbergError(ErrorCode.STORAGE_ERROR, why))
            else:
                self._go_on(finder, until, on_answer)

        def done() -> None:
            at_end = finder.next_offset >= self._end()
            if self._history.holds_away(finder.read_to) and not finder.found and not failed:
                self._history.recall(finder.read_to, recalled)
            elif failed:
                on_answer(failed[0])
            elif finder.found or not at_end or until <= self._clock.monotonic():
                on_answer(self._message(finder))
            else:
                self._groups.wait(finder, until, on_answer)

        run_in_slices(self._clock, self._read_on(finder, failed), done)

    def _end(self) -> int:
        return readable_offset(self._image())

    def _read_on(
        self, finder: RecordFinder, failed: list[LogbergError]
    ) -> Generator[None, None, None]:
        """Read up to a limit, but no part of a transaction. Puts an error into `failed`."""
        size, up_to = 0, readable_offset(self._image())
        try:
            finder.look_also_for(self._also(finder.resource.word))
            while finder.in_transaction or (
                size < READ_MAX_BYTES and len(finder.found) < FOUND_MAX
            ):
                piece = self._history.read_from(finder.read_to, _PIECE_BYTES, up_to)
                yield
                for encoded in piece:
                    yield from finder.take(parse(encoded))
                    size += len(encoded)
                if not piece:
                    return
        except SegmentAwayError:
            return  # `_go_on` has it read back, unless there is enough for an answer
        except LogbergError as error:
            failed.append(error)  # names can't be opened here now
        except HistoryMissingError as error:
            failed.append(_compacted(finder.read_to, error))
        except DamagedLedgerError as error:
            self._on_damaged(error)
            failed.append(LogbergError(ErrorCode.STORAGE_ERROR, str(error)))
        except (LedgerError, RecordDecodeError, OSError) as error:
            failed.append(LogbergError(ErrorCode.STORAGE_ERROR, f"the log can't be read: {error}"))

    def _message(self, finder: RecordFinder) -> EncodedOnce:
        image = self._image()
        head = WatchReply(
            resource=finder.resource.word,
            next_from=finder.place.text(),
            log_start=self._history.log_start,
            high_watermark=readable_offset(image),
            epoch=image.epoch,
        )
        return EncodedOnce(LongMessage(head, "records", finder.found, len(finder.found)))


def _beyond(offset: int, end: int) -> LogbergError:
    return LogbergError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"from: {offset} is beyond {end}, the end of what can be read here",
        {"field": "from"},
    )


def _compacted(offset: int, error: HistoryMissingError) -> LogbergError:
    return LogbergError(
        ErrorCode.OFFSET_OUT_OF_RANGE,
        f"from: the log here begins at offset {error.log_start}, behind {offset}; read the present "
        "state, and watch from its offset, or ask a controller that has the history",
        {"field": "from", "logStart": str(error.log_start)},
    )
