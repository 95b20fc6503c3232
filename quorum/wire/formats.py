"""The wire formats; `quorum.peers.format_negotiation` says how two nodes choose one."""

from typing import Final

OLDEST_FORMAT: Final = 1
"""Every link begins with this format. Release 0.1 speaks no other."""
TOLERANT_FORMAT: Final = 2
"""From this format on, a reader ignores unknown fields and unknown kinds of frames."""
CONTACTS_FORMAT: Final = 3
"""From this format on, a node takes CONTACTS and CONFIRMED frames."""
NEWEST_FORMAT: Final = 3
