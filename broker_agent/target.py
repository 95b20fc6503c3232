"""Which controller to ask next.

Rule: follow the newest leadership that anyone told us of; without one, go round. A hint with an
older epoch than one we have seen is ignored, so a deposed controller can't pull us back.

An error makes us wait a little before the next try, longer each time up to half a heartbeat,
so that a cluster without a leader isn't hammered; the first retry is immediate, since the usual
cause is a leader that has just gone while another is there already.
"""

from runtime.randomness import Random

_FIRST_BACKOFF_S = 0.02


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

    def hint(self, leader_url: str | None, epoch: int) -> bool:
        """Somebody named a leader. True when it is news, worth asking at once."""
        if leader_url is None or epoch < self._epoch:
            return False
        news = epoch > self._epoch or leader_url != self.url
        self._epoch = epoch
        if leader_url not in self._urls:
            self._urls.append(leader_url)
        self._at = self._urls.index(leader_url)
        return news

    def failed(self) -> float:
        """The controller did not answer, or does not lead. Returns seconds to wait."""
        self._at = (self._at + 1) % len(self._urls)
        self._failures += 1
        if self._failures == 1:
            return 0.0
        rounds = min(self._failures - 2, 10)
        ceiling: float = min(self._backoff_max_s, _FIRST_BACKOFF_S * 2**rounds)
        return ceiling * (0.5 + 0.5 * self._random.random())
