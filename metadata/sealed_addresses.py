"""Client addresses that the log holds sealed: about whom they are, and who opens them (ADR 0093).

The field of an address stays a string. A sealed address is a text in it that holds a block, as the
value of a config does (`metadata.sealed_places`).

Rule: an address is about the user who came from it. Where nobody was authenticated, it is about
itself: its subject is `from:` and the address, or the network of an IPv6 address. Addresses of
brokers and controllers are the cluster's own and stay in clear.
"""

from collections.abc import Callable
from ipaddress import IPv6Address, IPv6Network, ip_address, ip_network
from typing import Final

import msgspec

from metadata.records import AttemptsRecord, Record
from metadata.sealed_blocks import SealingError
from metadata.sealed_places import user_subject
from metadata.sealed_texts import SEALED_TEXT, block_of_text, number_of_text
from metadata.sealing import ClusterKey
from metadata.subject_keys import SubjectKeys

FROM: Final = "from:"
NETWORK_OF_V6: Final = 64
TEXT_BYTES: Final = 145
"""About how many bytes a sealed address is longer than the address."""
_USER: Final = "User:"
_NOBODY: Final = frozenset({"", "*", "User:ANONYMOUS"})
_NO_ADDRESS: Final = frozenset({"", "*", "unix socket"})
_OPENED_MAX: Final = 4_096


def network_of_address(address: str) -> str | None:
    """Return the network that stands for an address; None: it is no address of IP.

    Whoever has IPv6 usually has all addresses of a /64 network.
    """
    try:
        found = ip_address(address.partition("%")[0])
    except ValueError:
        return _given_network(address)
    if not isinstance(found, IPv6Address) or found.is_loopback:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(IPv6Network((found, NETWORK_OF_V6), strict=False))


def is_nobody(who: str) -> bool:
    """Return whether a principal names nobody who was authenticated."""
    return who in _NOBODY


def subject_of_address(who: str, address: str) -> str | None:
    """Return the subject that an address is about; None: it is about no person, or no address.

    `who`: the principal that came from there, or for which somebody came.
    """
    if address in _NO_ADDRESS or address.startswith(SEALED_TEXT):
        return None
    if who in _NOBODY:
        return FROM + (network_of_address(address) or address)
    return user_subject(who.removeprefix(_USER)) if who.startswith(_USER) else None


def address_place(who: str) -> str:
    """Return the place that a sealed address is bound to."""
    return "address/" + ("" if who in _NOBODY else who)


def is_sealed(address: str) -> bool:
    """Return whether a text in an address's place is a sealed one."""
    return address.startswith(SEALED_TEXT)


def shown_address(address: str) -> str:
    """Return an address as people read it: a sealed one by the number of its subject."""
    if not is_sealed(address):
        return address
    number = number_of_text(address)
    return "a sealed address" if number is None else f"a sealed address of {number.hex()}"


def opened_address(key: ClusterKey, who: str, address: str) -> str:
    """Return an address in clear. Raises SealingError if nobody can open it, or not here."""
    block = block_of_text(address)
    if block is None:
        return address
    return key.open(address_place(who), block).decode(errors="replace")


class AddressOpener:
    """Opens sealed addresses while somebody looks at them.

    It keeps a bounded number of them in memory, and none of them once a key is destroyed.
    """

    def __init__(self, key: ClusterKey | None) -> None:
        """`key` None: nothing can be opened."""
        self.key = key
        self._keys: SubjectKeys | None = None
        self._opened: dict[tuple[str, str], str] = {}

    def opened(self, who: str, address: str) -> str:
        """Return an address in clear if it can be opened, else as it is."""
        key = self.key
        if key is None or not address.startswith(SEALED_TEXT):
            return address

        def in_clear() -> str | None:
            try:
                return opened_address(key, who, address)
            except SealingError:
                return None

        return self.remembered(address_place(who), address, in_clear) or address

    def remembered(self, place: str, sealed: str, in_clear: Callable[[], str | None]) -> str | None:
        """Return what was opened at a place, or open it now; None: nobody here can open it."""
        self.look_at_keys()
        found = self._opened.get((place, sealed))
        if found is None:
            found = in_clear()
            if found is None:
                return None
            if len(self._opened) >= _OPENED_MAX:
                self._opened.pop(next(iter(self._opened)), None)
            self._opened[place, sealed] = found
        return found

    def look_at_keys(self) -> None:
        """Forget what was opened if the keys are not those of before."""
        keys = None if self.key is None else self.key.subjects.keys
        if keys is not self._keys:
            self._keys = keys
            self._opened.clear()

    def cause(self, words: dict[str, str]) -> dict[str, str]:
        """Open the address in the words of a batch's cause (`BatchHeader.cause`)."""
        address = words.get("clientAddress", "")
        if self.key is not None and address.startswith(SEALED_TEXT):
            who = words.get("onBehalfOf") or words.get("principal", "")
            words["clientAddress"] = self.opened(who, address)
        return words

    def record(self, record: Record) -> Record:
        """Return a record with its address in clear, if it has one that can be opened."""
        return self.attempts(record) if isinstance(record, AttemptsRecord) else record

    def attempts(self, record: AttemptsRecord) -> AttemptsRecord:
        """Return a record of attempts with its address in clear, if that can be opened."""
        if not record.address.startswith(SEALED_TEXT):
            return record
        address = self.opened(record.principal, record.address)
        return msgspec.structs.replace(record, address=address)


def _given_network(text: str) -> str | None:
    try:
        found = ip_network(text)
    except ValueError:
        return None
    if isinstance(found, IPv6Network) and found.prefixlen == NETWORK_OF_V6:
        return str(found)
    return None
