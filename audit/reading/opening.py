"""Sealed addresses and names in what people look at, opened for as long as they look (ADR 0093).

Rule: what is opened is shown and not kept. Indexes, tables, exports and reports hold the sealed
text and the pseudonym, so that an erasure reaches them.
"""

from typing import Any, Final

import msgspec

from ledger.batch import Batch, BatchHeader
from metadata.person_opener import NO_OPENER, PersonOpener
from metadata.sealed_addresses import is_sealed

_ADDRESSES: Final = ("clientAddress", "address")
"""The names that addresses have in JSON: of batches and findings, and of records of attempts."""


def opened_header(opener: PersonOpener, header: BatchHeader) -> BatchHeader:
    """Return a batch's header with its address in clear, if that can be opened."""
    said = header.provenance
    address = opener.opened(said.on_behalf_of or said.principal, said.client_address)
    if address == said.client_address:
        return header
    said = msgspec.structs.replace(said, client_address=address)
    return msgspec.structs.replace(header, provenance=said)


def opened_words(opener: PersonOpener, words: Any) -> Any:
    """Return values for JSON with addresses in clear, and with names beside principals.

    What can't be opened stays as it is.
    """
    if isinstance(words, list):
        return [opened_words(opener, each) for each in words]
    if not isinstance(words, dict):
        return words
    found = {name: opened_words(opener, value) for name, value in words.items()}
    for name in _ADDRESSES:
        address = found.get(name)
        if isinstance(address, str) and is_sealed(address):
            who = found.get("onBehalfOf") or found.get("principal") or ""
            found[name] = opener.opened(str(who), address)
    return opener.named(found)


def shown_header(opener: PersonOpener, header: BatchHeader) -> BatchHeader:
    """Return a batch's header as text shows it: with names, and with its address in clear."""
    header = opened_header(opener, header)
    said = header.provenance
    who, whose = opener.shown(said.principal), opener.shown(said.on_behalf_of)
    if (who, whose) == (said.principal, said.on_behalf_of):
        return header
    said = msgspec.structs.replace(said, principal=who, on_behalf_of=whose)
    return msgspec.structs.replace(header, provenance=said)


class OpenedHeads:
    """Opens the addresses in the heads of batches, and counts those that stay sealed."""

    def __init__(self, opener: PersonOpener = NO_OPENER) -> None:
        self._opener = opener
        self.left_sealed = 0
        """Batches whose address nobody here can open."""

    def __call__(self, batch: Batch) -> Batch:
        """Return a batch with the address of its head in clear, if that can be opened."""
        header = opened_header(self._opener, batch.header)
        if is_sealed(header.provenance.client_address):
            self.left_sealed += 1
        return batch if header is batch.header else msgspec.structs.replace(batch, header=header)
