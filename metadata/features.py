"""Feature levels: their names.

Rule: a name written here stands in logs for ever.
"""

from typing import Final

METADATA_VERSION: Final = "metadata.version"
"""Kafka's: which of Kafka's records, and in which versions, a log may hold (KIP-584, 778)."""
LOGBERG_VERSION: Final = "logberg.version"
"""Ours: the same for our own records, and for what our own rules of replay are. Written under this
name for ever, although the project is still called Quorate."""

LITERAL_AMENDMENTS_FROM: Final = 1
"""The level of `logberg.version` from which replay takes an amended registration at its word. Below
it, replay restores epoch and flags of the registration before, as release 0.1 did (ADR 0015)."""
