"""A history: the requests of clients, their answers, and the effects of the log, as JSON lines.

    {"run": {...}}                                  what was run
    {"operation": {"kind": "create", ...}}          a request and its answer
    {"effect": {"end": 17, "topics": {...}}}        what a batch of the log changed

`call` and `back` number all requests and answers in the order in which they happened: one
operation ended before another began if its `back` is less than the other's `call`. Times are
in microseconds of simulated time.
"""

import json
from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass, field
from typing import Any

CREATE, DELETE, LIST, STALE, AT_LEAST = "create", "delete", "list", "stale", "at_least"
WRITES = (CREATE, DELETE)
OK, REFUSED, UNKNOWN = "ok", "refused", "unknown"
EXISTS, UNKNOWN_TOPIC = "TOPIC_ALREADY_EXISTS", "UNKNOWN_TOPIC_OR_PARTITION"
STALE_CONDITION = "STALE_EXPECTED_OFFSET"

Summary = list[Any]
"""Of a topic: id (32 hex digits), partitions, replicas of partition 0, how many partitions have no
leader, how many are under-replicated."""


@dataclass(slots=True)
class Operation:
    """One request of a client, through all its tries."""

    kind: str
    call: int
    call_us: int
    client: str = ""
    topic: str = ""
    """Of a write: what it is about."""
    request_id: str = ""
    """Of a write: 32 hex digits, the same in all tries."""
    asked: int = 0
    """Of `at_least`: the offset that the answer must have reached."""
    expected: int | None = None
    """Of a conditional write: the offset at which its client had read."""
    outcome: str = UNKNOWN
    """A write of unknown outcome may take effect at any time after its call, or never."""
    back: int | None = None
    back_us: int | None = None
    offset: int | None = None
    """The log's end that the answer speaks of."""
    code: str = ""
    """Why it was refused."""
    age_ms: int | None = 0
    """Of a read that may be old: how old the node said that it is; None: it didn't know."""
    topics: dict[str, Summary] | None = None
    """What a read was told."""

    def told(self, tick: int, now_us: int, outcome: str, offset: int | None) -> None:
        """Whether the client got an answer."""
        self.back, self.back_us, self.outcome, self.offset = tick, now_us, outcome, offset


@dataclass(slots=True)
class Effect:
    """What one batch made visible."""

    end: int
    """The log's end behind it."""
    epoch: int
    request_id: str
    operation: str
    topics: dict[str, Summary | None] = field(default_factory=dict)
    """Topics that are other than before; None: gone."""


@dataclass
class Log:
    """The effects of a log, from a state on."""

    begin: int
    topics: dict[str, Summary]
    """What was there at `begin`."""
    effects: list[Effect]

    @property
    def end(self) -> int:
        return self.effects[-1].end if self.effects else self.begin


def to_lines(run: dict[str, Any], operations: Iterable[Operation], log: Log) -> Iterator[str]:
    """Write a history down."""
    head = {**run, "begin": log.begin, "topics": log.topics}
    yield json.dumps({"run": head})
    for operation in operations:
        yield json.dumps({"operation": asdict(operation)})
    for effect in log.effects:
        yield json.dumps({"effect": asdict(effect)})


def from_lines(lines: Iterable[str]) -> tuple[list[Operation], Log]:
    """Read a history that was written down."""
    log = Log(0, {}, [])
    operations: list[Operation] = []
    for line in lines:
        read = json.loads(line)
        if "run" in read:
            log.begin, log.topics = read["run"]["begin"], read["run"]["topics"]
        elif "operation" in read:
            operations.append(Operation(**read["operation"]))
        else:
            log.effects.append(Effect(**read["effect"]))
    return operations, log
