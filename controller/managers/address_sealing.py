"""Seals the addresses of callers before they enter the log (ADR 0093).

The leader seals in two places: where it makes the head of a batch, and where a report of attempts
becomes records. Requests are decided about with addresses in clear, because rights may name hosts.

Rule: all changes of one day from one address by one caller have the same sealed text. So a text is
made once a day, and an index or a table has one row for a caller and not one for each batch. The
next day has another text: after an erasure, equal texts show that two changes of a day came from
one place, and nothing about other days.

Rule: an address that a controller noted before an erasure is not sealed under the key that comes
after it. A report takes some seconds to the leader. So a recorded attempt of somebody who was ever
erased has no address if it came before the newest erasure that this controller knows, by the clock
of the controller that noted it. If the clocks of two controllers are further apart than
`_CLOCKS_APART_MS`, such an address may be left.
"""

from collections.abc import Callable, Generator, Sequence
from typing import Final

import msgspec

from controller.managers.sealing_key import current_number, keys_awaited, may_have_keys
from controller.result import ControllerResult
from ledger.batch import Provenance
from metadata.image import MetadataImage
from metadata.image.erasures import ErasuresImage
from metadata.image.quorum import QuorumImage
from metadata.records import AttemptsRecord
from metadata.sealed_addresses import FROM, address_place, subject_of_address
from metadata.sealed_blocks import SealingError
from metadata.sealed_texts import text_of_block
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys

_OF_CLUSTER: Final = ("Controller:", "Broker:")
_DAY_MS: Final = 24 * 3_600_000
_TEXTS_MAX: Final = 4_096
"""Sealed texts that are kept: for so many callers a day a text is made once."""
_CLOCKS_APART_MS: Final = 5_000
"""The clocks of controllers may be so far apart."""
_STEP: Final = 8
"""Records between two yields: sealing for another caller takes some tenths of a millisecond."""


class AddressSealer:
    """Seals addresses under the keys of the people whose they are."""

    def __init__(self, key: ClusterKey, wall_ms: Callable[[], int]) -> None:
        """`wall_ms`: the day of it is part of each text."""
        self._key = key
        self._wall_ms = wall_ms
        self._texts: dict[tuple[str, str], str] = {}
        self._made_for: tuple[ErasuresImage | None, QuorumImage | None, SubjectKeys | None, int] = (
            None,
            None,
            None,
            0,
        )
        """What was last looked at. Another erasure, tree or day ends the texts."""
        self._erasures = 0
        self._erased_ms = 0
        """When this controller learned of the newest erasure in the committed log."""

    def look(self, image: MetadataImage) -> None:
        """The committed image may have another erasure. After a start all of them are new."""
        erasures = len(image.erasures.erased)
        if erasures != self._erasures:
            self._erasures, self._erased_ms = erasures, self._wall_ms()

    def of_head(self, image: MetadataImage, said: Provenance) -> Provenance:
        """Return the provenance of a batch with its address sealed. Raises LogbergError."""
        address = self.sealed(image, said.on_behalf_of or said.principal, said.client_address)
        if address == said.client_address:
            return said
        return msgspec.structs.replace(said, client_address=address)

    def of_report(
        self, image: MetadataImage, records: Sequence[AttemptsRecord]
    ) -> Generator[None, None, ControllerResult]:
        """Return the records of a report with their addresses sealed. Raises LogbergError."""
        sealed = []
        for number, record in enumerate(records, 1):
            address = ""
            if not self._was_erased(image, record):
                address = self.sealed(image, record.principal, record.address)
            sealed.append(msgspec.structs.replace(record, address=address))
            if number % _STEP == 0:
                yield
        erasures = image.erasures
        return ControllerResult(tuple(sealed), rests_on=lambda later: later.erasures is erasures)

    def _was_erased(self, image: MetadataImage, record: AttemptsRecord) -> bool:
        """Return whether an attempt may be from before an erasure of whoever made it."""
        erasures = len(image.erasures.erased)
        newest_ms = self._erased_ms if erasures == self._erasures else self._wall_ms()
        if not erasures or record.first_ms > newest_ms + _CLOCKS_APART_MS:
            return False
        subject = subject_of_address(record.principal, record.address)
        if subject is None:
            return False
        if subject.startswith(FROM):
            # Nobody can say any more which address was erased.
            return image.erasures.addresses > 0
        return image.erasures.has(self._key.number_of(subject))

    def sealed(self, image: MetadataImage, who: str, address: str) -> str:
        """Return the sealed text of an address, or the address if it is not a person's.

        At a level without keys of subjects it stays in clear. Raises LogbergError while keys are
        awaited.
        """
        if not address or who.startswith(_OF_CLUSTER):
            return address
        keys, day = self._key.subjects.keys, self._wall_ms() // _DAY_MS
        erasures, quorum, tree, of_day = self._made_for
        if (
            keys is None
            or tree is not keys
            or erasures is not image.erasures
            or quorum is not image.quorum
            or of_day != day
        ):
            named = image.quorum.subject_keys_id
            if named is None and not may_have_keys(image, self._key):
                return address
            if keys is None or keys.id != named:
                raise keys_awaited()
            if erasures is not image.erasures or tree is not keys or of_day != day:
                self._texts.clear()
            self._made_for = (image.erasures, image.quorum, keys, day)
        text = self._texts.get((who, address))
        if text is None:
            text = self._make(image, who, address, day)
            if len(self._texts) >= _TEXTS_MAX:
                del self._texts[next(iter(self._texts))]
            self._texts[who, address] = text
        return text

    def _make(self, image: MetadataImage, who: str, address: str, day: int) -> str:
        subject = subject_of_address(who, address)
        if subject is None:
            return address
        try:
            number = current_number(self._key, image, subject)
            if image.erasures.has(number):
                # A person who was erased as a pseudonym. The address shall not outlive the key.
                return ""
            drawn = b"day %d" % day
            sealed = self._key.seal_for(number, address_place(who), address.encode(), drawn)
        except SealingError:
            # An erasure was applied here that the decision's image doesn't have yet.
            raise keys_awaited() from None
        return text_of_block(sealed.block)
