"""Chooses the controller to ask next, and how long to wait before.

Rule: ask the newest leader that any answer named; if none is known, ask each controller in turn.
Ignore a hint with an older epoch than the newest seen, so that a deposed controller can't mislead
the agent. Use a leader's URL only if its scheme is that of the controller that named it: never
change from https to http.

After an error the agent waits before the next try, longer each time, up to half a heartbeat. So it
doesn't flood a cluster without a leader. The first retry is immediate, since usually the old leader
has just gone and a new one is there already. Two controllers may name each other as the leader. So
the agent follows a hint without a wait only if its epoch is newer.
"""

from runtime.http.origins import may_follow
from runtime.randomness import Random

_FIRST_BACKOFF_S = 0.02
_URLS_MAX = 64
"""The most URLs that an agent remembers. A cluster has a handful of controllers; an answer that
names more is wrong."""


class ControllerChoice:
    """The controllers that an agent knows, and the one to ask next."""

    def __init__(self, controllers: tuple[str, ...], random: Random, backoff_max_s: float) -> None:
        self._urls = list(controllers)
        self._random = random
        self._backoff_max_s = backoff_max_s
        self._at = random.randrange(len(self._urls))
        self._epoch = -1
        self._failures = 0

    @property
    def url(self) -> str:
        """The controller to ask next."""
        return self._urls[self._at]

    @property
    def urls(self) -> tuple[str, ...]:
        """All controllers that the agent knows."""
        return tuple(self._urls)

    @property
    def epoch(self) -> int:
        """The newest epoch seen; -1: none yet."""
        return self._epoch

    def answered(self, epoch: int) -> None:
        """The controller answered as the leader of `epoch`."""
        self._epoch = max(self._epoch, epoch)
        self._failures = 0

    def hinted(self, leader_url: str | None, epoch: int) -> float:
        """The controller does not lead, and may have named the leader. Returns seconds to wait."""
        if leader_url is None or epoch < self._epoch or not may_follow(self.url, leader_url):
            return self.failed()
        news = epoch > self._epoch
        self._epoch = epoch
        if leader_url == self.url:
            # It leads but has not begun its epoch yet.
            return self.refused()
        if not self._turn_to(leader_url):
            return self.failed()
        return 0.0 if news else self._backoff_s()

    def follow(self, answerer: str, leader_url: str | None, epoch: int) -> None:
        """A controller gave a usable answer for the leader of `epoch`: turn to that leader.

        The agent's other requests need the leader, also if its heartbeats don't.
        """
        if leader_url is not None and epoch >= self._epoch and may_follow(answerer, leader_url):
            self._turn_to(leader_url)

    def _turn_to(self, url: str) -> bool:
        """Ask this controller next. Returns False if the agent knows too many already."""
        if url not in self._urls:
            if len(self._urls) >= _URLS_MAX:
                return False
            self._urls.append(url)
        self._at = self._urls.index(url)
        return True

    def failed(self) -> float:
        """The controller gave no usable answer: ask the next one. Returns seconds to wait."""
        self._at = (self._at + 1) % len(self._urls)
        return self._backoff_s()

    def refused(self, retry_after_s: float = 0.0) -> float:
        """The controller refuses for now: ask it again. Returns seconds to wait.

        `retry_after_s` is the wait that it named. A random part of up to a half is added, so that
        not all agents ask at the same moment.
        """
        self._failures = max(self._failures, 1)
        return max(self._backoff_s(), retry_after_s * (1 + 0.5 * self._random.random()))

    def _backoff_s(self) -> float:
        self._failures += 1
        if self._failures == 1:
            return 0.0
        ceiling: float = min(self._backoff_max_s, _FIRST_BACKOFF_S * 2 ** min(self._failures, 20))
        return ceiling * (0.25 + 0.25 * self._random.random())
