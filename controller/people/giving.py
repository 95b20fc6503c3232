"""Finds the pseudonyms of principals, and has the leader write those that are missing.

Rule: two pseudonyms are never given to one name. The decision that gives one looks into its own
image, which has all that this leader and those before it wrote.
"""

from collections.abc import Callable, Container, Generator, Iterable
from collections.abc import Set as AbstractSet
from contextlib import suppress
from itertools import islice
from operator import is_
from typing import Final, NamedTuple

from controller.leader.decisions import Decision, LeadershipLost, Outcome
from controller.leader.proposer import Proposer
from controller.managers.pseudonym_covering import Covering
from controller.managers.sealing_key import keys_awaited, may_have_keys, usable_key
from controller.result import ControllerResult, Decide
from ledger.batch import Provenance
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.people import USER, People, as_sealed
from metadata.pseudonyms import UNKNOWN, name_place, pseudonym_of
from metadata.records import PseudonymRecord
from metadata.sealing import ClusterKey
from metadata.subject_keys import NUMBER_BYTES
from metadata.uuids import uuid_text
from runtime.clock import Clock
from runtime.loop.slices import run_in_slices

OPERATION: Final = "GivePseudonyms"
_AT_ONCE: Final = 64
"""Steps of opening names that a request may wait for, of a tenth of a millisecond each."""
_SALT_BYTES: Final = 16
_STEP: Final = 8
_ENTRIES_STEP: Final = 1_000
_NAME_MAX: Final = 1_000
_KEPT_MAX: Final = 4_096
OnGiven = Callable[[LogbergError | None], None]


class _Standing(NamedTuple):
    """What stands for a principal."""

    pseudonym: str | None
    """As a principal; None: the principal itself."""
    lacks: bool
    """It shall have a pseudonym, and has none."""


class Giving:
    """Pseudonyms on one controller."""

    def __init__(
        self,
        covering: Covering,
        key: ClusterKey | None,
        clock: Clock,
        proposer: Proposer,
        provenance: Callable[[str], Provenance],
        image: Callable[[], MetadataImage],
        draw: Callable[[int], bytes],
    ) -> None:
        """`image`: the committed one. `draw`: returns bytes of the system's random source."""
        self.covering = covering
        self.people = People(key)
        self._key = key
        self._clock = clock
        self._proposer = proposer
        self._provenance = provenance
        self._image = image
        self._draw = draw
        self._following = False
        self._standings: dict[str, _Standing] = {}
        self._rests_on: tuple[object, ...] = (None, None, None, None)

    @property
    def idle(self) -> bool:
        """Nobody has a pseudonym, and nobody gets one."""
        return self.covering.nobody and not self._newest().erasures.pseudonyms

    def look(self) -> None:
        """The image may have changed: open what is new, beside other work if it is much.

        Answers of before are forgotten at once, because an erased name may stand in them.
        """
        self._keep_standings_of(self._newest())
        if self.people.has_keys:
            with suppress(LogbergError):
                self._follow_at_once(self._newest())

    def principal(self, principal: str) -> str:
        """Return what stands for a principal.

        Raises LogbergError while the names can't be opened yet, and NOT_CONTROLLER for a person who
        has no pseudonym: only the leader gives them. Here nobody knows what entries are about them.
        """
        if self.lacks(principal):
            raise LogbergError(ErrorCode.NOT_CONTROLLER)
        return self.found(principal) or principal

    def found(self, principal: str) -> str | None:
        """Return the pseudonym of a principal as a principal; None: it has none.

        Raises LogbergError while the names can't be opened yet.
        """
        return self._standing(principal).pseudonym

    def lacks(self, principal: str) -> bool:
        """Return whether a principal shall have a pseudonym, and has none. Raises LogbergError."""
        return self._standing(principal).lacks

    def check_given(self, image: MetadataImage, principals: Iterable[str]) -> None:
        """Refuse pseudonyms that are nobody's by an image. Raises LogbergError."""
        for principal in principals:
            if principal.removeprefix(USER) not in image.erasures.pseudonyms:
                raise LogbergError(
                    ErrorCode.NOT_FOUND,
                    f"{principal} is nobody's pseudonym: it was erased, or never given",
                    {"principal": principal},
                )

    def recorded(self, principal: str) -> str:
        """Return what stands for a principal in the trail, whatever is known now."""
        try:
            return self.principal(principal)
        except LogbergError:
            return UNKNOWN if self.covering.covers(principal) else principal

    def has_scram(self, name: str) -> bool:
        """Return whether a user of this name has SCRAM credentials."""
        after = next(self._newest().scram.order.after((name, -1)), None)
        return after is not None and after[0] == name

    @property
    def leads(self) -> bool:
        """Whether this controller can give pseudonyms."""
        return self._proposer.pending is not None

    def give(self, principals: Iterable[str], then: OnGiven, decide: Decide | None = None) -> None:
        """Write pseudonyms for principals that have none; `then` hears how it ended.

        `decide`: the decision that names them. If it raises an error, nothing is written, and
        `then` hears the error. Raises LogbergError INVALID_REQUEST.
        """
        names = {principal.removeprefix(USER) for principal in principals}
        if any(len(name) > _NAME_MAX for name in names):
            raise LogbergError(
                ErrorCode.INVALID_REQUEST, f"a name has more than {_NAME_MAX} characters"
            )

        def done(outcome: Outcome) -> None:
            if isinstance(outcome, LeadershipLost):
                then(LogbergError(ErrorCode.NOT_CONTROLLER))
            else:
                then(outcome if isinstance(outcome, LogbergError) else None)

        self._proposer.submit(
            Decision(
                lambda image: self._given(image, names, decide), self._provenance(OPERATION), done
            )
        )

    def _given(
        self, image: MetadataImage, names: Iterable[str], decide: Decide | None
    ) -> Generator[None, None, ControllerResult]:
        if decide is not None:
            # Only the decision knows some reasons to refuse, such as whose tokens the caller makes.
            tried = decide(image)
            if isinstance(tried, Generator):
                yield from tried
        key = usable_key(self._key, image)
        keys = key.subjects.keys
        if keys is None or keys.id != image.quorum.subject_keys_id:
            raise keys_awaited()
        self._follow_at_once(image)
        if not self.people.opened_all:
            raise LogbergError(
                ErrorCode.SECURITY_DISABLED,
                "there are pseudonyms whose names no key here opens, so nobody can say who has one "
                "already: erase those that `logberg pseudonyms list` shows without a name",
            )
        missing = {name for name in names if self.people.pseudonym_of(name) is None}
        yield from _check_no_entries(image, missing)
        made: dict[str, tuple[PseudonymRecord, bytes]] = {}
        for place, name in enumerate(sorted(missing), 1):
            number = self._new_number(image, made)
            pseudonym = pseudonym_of(number)
            drawn = self._draw(_SALT_BYTES)
            sealed = key.seal_for(number, name_place(pseudonym), as_sealed(name), drawn)
            made[pseudonym] = PseudonymRecord(pseudonym, sealed.block), sealed.salted_hash
            self.people.expect(pseudonym, name)
            if place % _STEP == 0:
                yield
        # In the order of what was drawn: another order could tell something about the names.
        given = [made[pseudonym] for pseudonym in sorted(made)]
        return ControllerResult(
            tuple(record for record, _ in given), salted_hashes=tuple(each for _, each in given)
        )

    def _new_number(self, image: MetadataImage, made: Container[str]) -> bytes:
        erasures = image.erasures
        while True:
            number = self._draw(NUMBER_BYTES)
            pseudonym = pseudonym_of(number)
            if not (pseudonym in made or pseudonym in erasures.pseudonyms or erasures.has(number)):
                return number

    def _newest(self) -> MetadataImage:
        pending = self._proposer.pending
        return self._image() if pending is None else pending.image

    def _standing(self, principal: str) -> "_Standing":
        """Return what stands for a principal. Raises LogbergError.

        Each request asks several times, mostly for the same few. So answers are kept while what
        they rest on is the same. No open group has any of that (`metadata.image.delta.OPEN_KINDS`),
        so these parts of a pending image may be kept.
        """
        image = self._newest()
        self._keep_standings_of(image)
        found = self._standings.get(principal)
        if found is None:
            found = self._found_in(image, principal)
            if len(self._standings) >= _KEPT_MAX:
                self._standings.clear()
            self._standings[principal] = found
        return found

    def _keep_standings_of(self, image: MetadataImage) -> None:
        """Forget what stands for whom, unless it rests on what is in this image."""
        keys = None if self._key is None else self._key.subjects.keys
        rests_on = (image.erasures.pseudonyms, image.quorum, image.features, keys)
        if not all(map(is_, rests_on, self._rests_on)):
            self._standings.clear()
            self._rests_on = rests_on

    def _found_in(self, image: MetadataImage, principal: str) -> "_Standing":
        if not self.covering.may_be_person(principal) or not self._may_have(image, principal):
            return _Standing(None, lacks=False)
        name = principal.removeprefix(USER)
        pseudonym = self.people.pseudonym_of(name)
        if pseudonym is None or pseudonym not in image.erasures.pseudonyms:
            self._follow_at_once(image)
            pseudonym = self.people.pseudonym_of(name)
        if pseudonym is None:
            return _Standing(None, lacks=self.covering.covers(principal))
        return _Standing(USER + pseudonym, lacks=False)

    def _may_have(self, image: MetadataImage, principal: str) -> bool:
        """Return whether a principal may have a pseudonym. Raises LogbergError without the keys.

        At a level without keys of subjects, names stay in clear. Before the log is loaded nobody
        knows the level.
        """
        named = image.quorum.subject_keys_id
        if not self.covering.covers(principal) and not image.erasures.pseudonyms:
            return False
        may = self._key is not None and may_have_keys(image, self._key)
        if named is None and image.features.levels and not may:
            return False
        keys = usable_key(self._key, image).subjects.keys
        if keys is None or keys.id != named:
            raise keys_awaited()
        return True

    def _follow_at_once(self, image: MetadataImage) -> None:
        """Open what is new, if it is little. Raises LogbergError."""
        if self.people.has_followed(image.erasures):
            return
        if not self._following:
            steps = self.people.follow(image.erasures)
            for _ in islice(steps, _AT_ONCE):
                pass
            if self.people.has_followed(image.erasures):
                return
            self._follow_beside(steps)
        raise keys_awaited()

    def _follow_beside(self, steps: Generator[None, None, None]) -> None:
        """Run to its end what follows an image; nothing else follows one meanwhile."""
        self._following = True

        def followed() -> Generator[None, None, None]:
            try:
                yield from steps
            finally:
                self._following = False

        run_in_slices(self._clock, followed(), lambda: None)


def _check_no_entries(image: MetadataImage, names: AbstractSet[str]) -> Generator[None, None, None]:
    """Refuse names about which there are entries in clear: they would not count any more.

    Raises LogbergError.
    """
    for place, (_, entry) in enumerate(image.acls.entries.unordered_items(), 1):
        if entry.principal.removeprefix(USER) in names:
            raise LogbergError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"entry {uuid_text(entry.id)} names somebody in clear, from before the setting "
                "`pseudonyms`: delete the entries about this name, and create them again",
                {"lacks": "a pseudonym"},
            )
        if place % _ENTRIES_STEP == 0:
            yield
