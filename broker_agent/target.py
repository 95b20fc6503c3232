"""Which controller to ask next, and when.

Rule: follow the newest leader that any answer named; if none is known, ask each controller in turn.
Ignore a hint with an older epoch than the newest seen, so that a deposed controller can't mislead
the agent.

After an error the agent waits before the next try, longer each time up to half a heartbeat, so that
it doesn't flood a cluster without a leader. The first retry is immediate, since usually the old
leader has just gone and a new one is there already. Two controllers that name each other are an
error too: the agent follows a hint without a wait only if its epoch is newer. A leader's URL
is followed only over the scheme of the answer that names it: never from https to http.
"""

from runtime.http.origins import may_follow
from runtime.randomness import Random

_FIRST_BACKOFF_S = 0.02
_URLS_MAX = 64
"""A cluster has a handful of controllers; more than this is somebody's nonsense."""


class Target:
    """The controllers that an agent knows, and the one to ask."""

    def __init__(self, controllers: tuple[str, ...], random: Random, backoff_max_s: float) -> None:
        self._urls = list(controllers)
        self._random = random
        self._backoff_max_s = backoff_max_s
        self._at = random.randrange(len(self._urls))
        self._epoch = -1
        self._failures = 0

    @property
    def url(self) -> str:
        """Whom to ask."""
        return self._urls[self._at]

    @property
    def epoch(self) -> int:
        """The newest epoch seen; an answer from an older one is refused."""
        return self._epoch

    def answered(self, epoch: int) -> None:
        """The controller answered as the leader of `epoch`."""
        self._epoch = max(self._epoch, epoch)
        self._failures = 0

    def hinted(self, leader_url: str | None, epoch: int) -> float:
        """The controller does not lead, and may have said who does. Returns seconds to wait."""
        if leader_url is None or epoch < self._epoch or not may_follow(self.url, leader_url):
            return self.failed()
        news = epoch > self._epoch
        self._epoch = epoch
        if leader_url == self.url:
            # It leads, and has yet to begin its epoch.
            return self.refused()
        if leader_url not in self._urls:
            if len(self._urls) >= _URLS_MAX:
                return self.failed()
            self._urls.append(leader_url)
        self._at = self._urls.index(leader_url)
        return 0.0 if news else self._backoff_s()

    def failed(self) -> float:
        """The controller did not answer, or can't. Ask another; returns seconds to wait."""
        self._at = (self._at + 1) % len(self._urls)
        return self._backoff_s()

    def refused(self, retry_after_s: float = 0.0) -> float:
        """The controller refuses for now. Ask it again; returns seconds to wait.

        `retry_after_s` is what it asked for; some is added by lot, so that not all come at once.
        """
        self._failures = max(self._failures, 1)
        return max(self._backoff_s(), retry_after_s * (1 + 0.5 * self._random.random()))

    def _backoff_s(self) -> float:
        self._failures += 1
        if self._failures == 1:
            return 0.0
        ceiling: float = min(self._backoff_max_s, _FIRST_BACKOFF_S * 2 ** min(self._failures, 20))
        return ceiling * (0.25 + 0.25 * self._random.random())
