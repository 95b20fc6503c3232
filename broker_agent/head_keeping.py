"""Keeps the newest signed head that the agent saw, and holds the broker when a log contradicts it.

Rule: the agent may follow another history than the one it followed only after a look has shown that
the cluster's signed head extends the kept one. A head that contradicts the kept one, signed by the
believed keys, holds the broker fenced, for good: both heads are kept as evidence, and people
decide. Where nothing can be shown (no head, nobody answers), the broker waits, fenced.

Which keys are believed: those of the configuration; else those under the first head that was seen.

A restored or recovered cluster has another origin: a later generation. The agent follows it and
keeps the old head as evidence, or holds the broker if the configuration says `hold`. It does either
only if a majority of the believed keys signed a head of that generation. There is one exception,
because a restore draws new keys, and a recovery may keep one of three. If the configuration names
no keys, the new keys are enough once no other controller that answers objects (`other_heads`).
Whoever holds all controllers can claim a generation like that. With keys in the configuration no
claim counts.
"""

from collections.abc import Callable, Collection
from typing import Final

import structlog

from broker_agent.config import AgentConfig, NewGenerations
from broker_agent.evidence import FOLDER as EVIDENCE
from broker_agent.head_file import (
    HEADS_FILE,
    KeptHead,
    RememberedHeads,
    encode_heads,
    read_heads,
)
from broker_agent.head_look import FoundHead, HeadLook, HeadVerdict
from broker_agent.other_heads import (
    OtherHeads,
    ShownByOther,
    objections_to_generation,
    objections_to_shorter_log,
)
from ledger.merkle.notes import NoteKey
from runtime.clock import Clock, Timer
from runtime.disk.interface import Disk
from runtime.http.requests import Requester

HEAD_KEYS_PINNED = "head_keys_pinned"
HEAD_NOT_BELIEVED = "head_not_believed"
HEAD_CONTRADICTED = "head_contradicted"
HEAD_GENERATION_FOLLOWED = "head_generation_followed"
HEAD_FILE_FAILED = "head_file_failed"
_FIRST_S: Final = 2.0
"""So long after the start, or after a look of no use while the broker waits, comes the next."""
_SHOWN_S: Final = 30.0
"""So long the last look counts for a snapshot that the agent is told to load."""
_SMALLER_MAX: Final = 30
"""While the broker waits: so many looks may find a smaller head than the kept one. Then the log is
taken to be a shorter one, and not a controller that lags, unless another controller objects."""


class HeadKeeping:
    """One agent's heads."""

    def __init__(
        self,
        config: AgentConfig,
        clock: Clock,
        disk: Disk,
        requester: Requester,
        url: Callable[[], str],
        urls: Callable[[], Collection[str]],
        on_contradicted: Callable[[str], None],
        log: structlog.typing.FilteringBoundLogger,
    ) -> None:
        """`url`: of the controller that is asked next. `urls`: of all that the agent knows.

        `on_contradicted` gets a sentence.
        """
        self._config = config
        self._clock = clock
        self._disk = disk
        self._requester = requester
        self._url = url
        self._urls = urls
        self._on_contradicted = on_contradicted
        self._log = log
        self._kept = RememberedHeads()
        self._look: HeadLook | None = None
        self._others: OtherHeads | None = None
        self._timer: Timer | None = None
        self._holding = False
        self._smaller = 0
        self._shown_at: float | None = None
        self._writing = self._write_again = False
        self._ended = False
        self.problem = ""
        """Why the last look was of no use."""

    @property
    def newest(self) -> KeptHead | None:
        """The newest head that was seen and believed."""
        return self._kept.newest

    @property
    def contradiction(self) -> str:
        """Why the kept head is not one of the cluster's log; empty: no such thing is known."""
        return self._kept.contradiction

    @property
    def holding(self) -> bool:
        """Whether the agent may not follow another history now."""
        return self._holding or bool(self._kept.contradiction)

    def shown_lately(self) -> bool:
        """Whether a look has just shown that the cluster's head extends the kept one."""
        now = self._clock.monotonic()
        return self._shown_at is not None and now - self._shown_at <= _SHOWN_S

    def open(self) -> None:
        """Read what earlier processes kept. Raises HeadFileError, OSError."""
        if not self._config.head_check_ms:
            return
        self._kept = read_heads(self._disk, self._config.cluster_id)
        if self._config.head_keys:
            self._kept = RememberedHeads(
                self._kept.newest, self._config.head_keys, self._kept.contradiction
            )

    def begin(self) -> None:
        """Look soon, and then at each interval."""
        if self._config.head_check_ms and not self._ended:
            self._look_in(_FIRST_S)

    def end(self) -> None:
        """Look no more."""
        self._ended = True
        self._cancel()

    def hold(self) -> bool:
        """The history that the agent followed is not the controllers', or it can't compare them.

        Returns whether the agent must wait until `holding` is false.
        """
        if self._kept.newest is None or not self._config.head_check_ms:
            return False
        if not self._holding:
            self._holding, self._smaller = True, 0
            self._cancel()
            self._look_in(0.0)
        return True

    # -- looking ------------------------------------------------------------------------------

    @property
    def _looking(self) -> bool:
        return self._look is not None or self._others is not None

    def _look_in(self, delay_s: float) -> None:
        if self._timer is None and not self._looking and not self._ended:
            self._timer = self._clock.call_later(delay_s, self._begin_look)

    def _begin_look(self) -> None:
        self._timer = None
        if self._kept.contradiction:
            return
        self._look = HeadLook(
            self._requester,
            self._url(),
            self._config.cluster_id,
            self._kept.keys,
            self._kept.newest,
            self._looked,
        )
        self._look.begin()

    def _cancel(self) -> None:
        if self._look is not None:
            self._look.abandon()
            self._look = None
        if self._others is not None:
            self._others.abandon()
            self._others = None
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _looked(self, looked: FoundHead) -> None:
        self._look = None
        if self._ended:
            return
        match looked.kind:
            case HeadVerdict.GROWN:
                self._believe(looked)
            case HeadVerdict.CONTRADICTS:
                self._contradicted(looked)
            case HeadVerdict.GENERATION:
                self._later_generation(looked)
            case HeadVerdict.CLAIMED:
                self._claimed(looked)
            case HeadVerdict.STALE:
                self._stale(looked)
            case HeadVerdict.UNUSABLE:
                self._of_no_use(looked.why)
        self._look_again()

    def _look_again(self) -> None:
        if not self._kept.contradiction:
            self._look_in(_FIRST_S if self._holding else self._config.head_check_ms / 1000)

    def _believe(self, looked: FoundHead) -> None:
        self._shown()
        keys = self._kept.keys
        if not keys:
            keys = looked.keys
            self._log.info(HEAD_KEYS_PINNED, keys=[NoteKey("", key).id.hex() for key in keys])
        before, found = self._kept.newest, looked.found
        if found is not None and (before is None or before.head != found.head):
            self._keep(RememberedHeads(found, keys))

    def _shown(self) -> None:
        self.problem, self._holding = "", False
        self._shown_at = self._clock.monotonic()

    def _stale(self, looked: FoundHead) -> None:
        if not self._holding:
            return
        self._smaller += 1
        self.problem = f"{looked.why}, fewer than this broker has seen"
        if self._smaller < _SMALLER_MAX:
            return
        kept = self._kept.newest
        assert kept is not None

        def asked(shown: list[ShownByOther]) -> None:
            if why := objections_to_shorter_log(shown, self._kept.keys, kept):
                self._smaller = 0
                self._of_no_use(f"{self.problem}; {why}")
                return
            self._contradicted(
                looked._replace(
                    why=f"this broker has seen a signed head of {kept.head.size} batches, and the "
                    f"cluster's log is shorter: {looked.why}"
                )
            )

        self._ask_others(looked, asked)

    def _of_no_use(self, why: str) -> None:
        if why != self.problem:
            # A cluster that has not signed a head yet, or never does, is nothing to warn of.
            if self._kept.newest is None:
                self._log.debug(HEAD_NOT_BELIEVED, why=why)
            else:
                self._log.warning(HEAD_NOT_BELIEVED, why=why)
        self.problem = why

    def _claimed(self, looked: FoundHead) -> None:
        """Too few of the believed keys signed a head of a later generation."""
        claim = f"{looked.url}: its head is of {looked.why}, and too few believed keys signed it"
        known = self._kept.newest
        assert known is not None
        if self._config.head_keys:
            self._of_no_use(f"{claim}. If the cluster has new keys, write them into head_keys")
            return

        def asked(shown: list[ShownByOther]) -> None:
            cluster_id, keys = self._config.cluster_id, self._kept.keys
            if why := objections_to_generation(shown, cluster_id, keys, known, looked):
                self._of_no_use(f"{claim}; {why}")
            else:
                self._later_generation(looked)

        self._ask_others(looked, asked)

    def _ask_others(
        self, looked: FoundHead, on_asked: Callable[[list[ShownByOther]], None]
    ) -> None:
        """Ask the controllers that the look did not ask, and look again after `on_asked`."""

        def asked(shown: list[ShownByOther]) -> None:
            self._others = None
            on_asked(shown)
            self._look_again()

        others = [url for url in self._urls() if url != looked.url]
        self._others = OtherHeads(self._requester, others, asked)
        self._others.begin()

    def _later_generation(self, looked: FoundHead) -> None:
        if self._config.new_generations is NewGenerations.HOLD:
            kept = self._kept.newest
            before = "" if kept is None else kept.head.origin
            self._contradicted(
                looked._replace(
                    why=f"the cluster's log is {looked.why}, and this broker followed {before}; "
                    "new_generations is hold, so people decide"
                )
            )
            return
        self._log.error(HEAD_GENERATION_FOLLOWED, origin=looked.why)
        self._write_evidence(looked, f"followed {looked.why}")
        self._shown()
        self._keep(RememberedHeads(looked.found, looked.keys))

    def _contradicted(self, looked: FoundHead) -> None:
        self._log.critical(HEAD_CONTRADICTED, why=looked.why)
        self._write_evidence(looked, looked.why)
        self._keep(RememberedHeads(self._kept.newest, self._kept.keys, looked.why))
        self._on_contradicted(looked.why)

    # -- files --------------------------------------------------------------------------------

    def _keep(self, kept: RememberedHeads) -> None:
        self._kept = kept
        if self._writing:
            self._write_again = True
            return
        self._writing = True

        def done(_: None, error: OSError | None) -> None:
            self._writing = False
            if error is not None:
                self._log.error(HEAD_FILE_FAILED, why=error.strerror or str(error))
            if self._write_again:
                self._write_again = False
                self._keep(self._kept)

        data = encode_heads(kept, self._config.cluster_id)
        self._disk.in_background(lambda: self._disk.replace(HEADS_FILE, data), done)

    def _write_evidence(self, looked: FoundHead, why: str) -> None:
        kept = self._kept.newest
        ours = "" if kept is None else kept.note
        theirs = "" if looked.found is None else looked.found.note
        size = 0 if kept is None else kept.head.size
        stem = f"{EVIDENCE}/heads-{size:019d}"

        def write() -> None:
            self._disk.make_folder(EVIDENCE)
            if self._disk.exists(f"{stem}.why"):
                return  # the first evidence stays
            for ending, text in (("kept", ours), ("theirs", theirs), ("why", f"{why}\n")):
                self._disk.replace(f"{stem}.{ending}", text.encode())

        def done(_: None, error: OSError | None) -> None:
            if error is not None:
                self._log.error(HEAD_FILE_FAILED, why=error.strerror or str(error))

        self._disk.in_background(write, done)
