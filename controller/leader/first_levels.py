"""Finds the feature levels at which a new log begins: the newest that all voters support.

Source: ADR 0039.

Each controller announces which levels it supports, with every heartbeat, until the log has its
registration (`controller.leader.self_registration`). The first leader of an empty log writes
nothing before it has heard every voter. A voter of release 0.1 announces nothing. So the leader
waits, and says what the operator can do.

The operator may choose the levels (`initial_features`). If the setting names all features with
which a log begins, the leader waits for nobody.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Final

from structlog.typing import FilteringBoundLogger

from metadata.features import BASE, first_levels
from metadata.records import RegisterControllerRecord
from quorum.api import Voter
from runtime.clock import Clock, Timer

HEARD_S: Final = 2.0
"""An announcement counts for so long. Heartbeats come several times a second."""


class FirstLevels:
    """What the voters announced before the log began."""

    def __init__(
        self,
        own: RegisterControllerRecord,
        chosen: Mapping[str, int],
        clock: Clock,
        voters: Callable[[], Sequence[Voter]],
        log: FilteringBoundLogger,
    ) -> None:
        """`chosen`: the levels that the operator named."""
        self._own = own
        self._chosen = chosen
        self._clock = clock
        self._voters = voters
        self._log = log
        self._heard: dict[int, tuple[float, RegisterControllerRecord]] = {}
        self._then: Callable[[Mapping[str, int]], None] | None = None
        self._warning: Timer | None = None
        self.waits_for = ""
        """Why the log does not begin yet; empty while nothing is missing."""

    def hear(self, record: RegisterControllerRecord) -> None:
        """A controller announced which levels it supports."""
        self._heard[record.controller_id] = (self._clock.monotonic(), record)
        self._look()

    def when_known(self, then: Callable[[Mapping[str, int]], None]) -> None:
        """Call back once with the levels, now or when every voter has been heard."""
        self._then = then
        self._look()
        if self._then is not None:
            # Heartbeats bring the announcements soon: nobody needs to read of such a wait.
            self._warning = self._clock.call_later(HEARD_S, self._warn)

    def end(self) -> None:
        """Nobody waits for the levels any more."""
        self._then = None
        self.waits_for = ""
        if self._warning is not None:
            self._warning.cancel()
            self._warning = None

    def _look(self) -> None:
        then = self._then
        if then is None:
            return
        needed = set() if set(BASE) <= set(self._chosen) else self._voter_ids()
        since = self._clock.monotonic() - HEARD_S
        heard = {n: record for n, (at, record) in self._heard.items() if at >= since}
        heard[self._own.controller_id] = self._own
        silent = sorted(needed - set(heard))
        if silent:
            self.waits_for = _why(silent)
            return
        self.end()
        declared = (
            [(f.name, f.min_supported_version, f.max_supported_version) for f in record.features]
            for n, record in heard.items()
            if n in needed
        )
        then(first_levels(self._chosen, declared))

    def _voter_ids(self) -> set[int]:
        return {voter.node_id for voter in self._voters()}

    def _warn(self) -> None:
        self._log.warning("first_levels_wait", reason=self.waits_for)


def _why(silent: Sequence[int]) -> str:
    names = ", ".join(map(str, silent))
    levels = ", ".join(f'"{name}" = {level}' for name, level in sorted(BASE.items()))
    return (
        "the new cluster does not begin before each voter has said which feature levels it "
        f"supports, and these are silent: {names}. Start them on this release. To begin at the "
        f"levels of release 0.1, set initial_features = {{ {levels} }} on every controller"
    )
