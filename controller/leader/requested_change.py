"""What a route asks of the leader: a decision, and what all changes need to know of it."""

from collections.abc import Callable, Generator
from typing import Any, NamedTuple, Protocol

from controller.access.guard import RequestAccess
from controller.leader.conditions import Concerns
from controller.managers.sweep import Sweep
from controller.result import ControllerResult, Decide
from metadata.image import MetadataImage
from metadata.messages.wire import canonical

Counting = Generator[None, None, int]


class ResumableRounds(Protocol):
    """The rounds of a request whose answers the log remembers."""

    @property
    def number(self) -> int:
        """How many rounds are known: decided by this controller, or found in the log."""
        ...

    @property
    def progress(self) -> tuple[int, int]:
        """How many topics or partitions those rounds decided about, of how many."""
        ...

    def resume(self, answer: bytes) -> None:
        """Take over what the next round answered, from the log."""
        ...


class RequestedChange(NamedTuple):
    """A change that a request asks for."""

    operation: str
    meaning: Callable[[], bytes]
    """Returns the request's message in canonical bytes. A request id is valid for one meaning."""
    reply_type: type[Any]
    decide: Decide
    dry_run: bool
    mutations: Callable[[MetadataImage], int | Counting] = lambda _image: 0
    """Counts the partitions that the change touches, for the quota. May raise LogbergError."""
    in_rounds: bool = False
    """The decision may be `unfinished`; its next round goes on from there."""
    rounds: ResumableRounds | None = None
    """If the answers of rounds are remembered: who takes them over."""
    sweep: Sweep | None = None
    """How far the rounds are, if the request is an event of a broker."""
    undivided: Decide | None = None
    """Decides everything in one round, where each round would have to meet a condition."""
    complete: Callable[[Any], Any] = lambda reply: reply
    """Adds to a reply what the log must not remember, each time that it is given."""
    acted_as: str = ""
    """The broker for which the caller spoke, if that isn't its own."""
    concerns: Concerns = lambda _image: ()
    """Names what a conditional change must find unchanged, beside what it writes. Needed where the
    first of several rounds doesn't write all of it."""

    @classmethod
    def of(
        cls,
        message: Any,
        operation: str,
        reply_type: type[Any],
        decide: Decide,
        mutations: Callable[[MetadataImage], int | Counting] = lambda _image: 0,
        *,
        in_rounds: bool = False,
        concerns: Concerns = lambda _image: (),
        rounds: ResumableRounds | None = None,
    ) -> "RequestedChange":
        """Return the change of a message with `dry_run`. A dry run shows all rounds at once."""
        return cls(
            operation,
            lambda: canonical(message),
            reply_type,
            decide,
            message.dry_run,
            mutations,
            in_rounds=in_rounds and not message.dry_run,
            concerns=concerns,
            rounds=None if message.dry_run else rounds,
        )


def if_allowed(decide: Decide, access: RequestAccess | None) -> Decide:
    """Return a decision that is refused if the image that it reads does not allow it.

    A decision that is prepared beside others is judged again when it is written.
    """
    if access is None:
        return decide

    def decide_if(image: MetadataImage) -> Generator[None, None, ControllerResult]:
        yield from access.check(image)
        decided = decide(image)
        result = (yield from decided) if isinstance(decided, Generator) else decided
        if (rests_on := result.rests_on) is not None:
            return result._replace(rests_on=lambda later: access.allows(later) and rests_on(later))
        return result

    return decide_if


def with_force(*, force: bool) -> bytes:
    """Return the meaning of a request without a body that may have the parameter `force`.

    Without `force` it is empty, as in the logs of release 0.1.
    """
    return b"force" if force else b""
