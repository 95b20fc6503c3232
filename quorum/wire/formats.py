"""The formats of links between controllers.

How two nodes agree on one: `quorum.peers.format_negotiation`.
"""

from typing import Final

OLDEST_FORMAT: Final = 1
"""Release 0.1 speaks this one alone; every link begins with it."""
TOLERANT_FORMAT: Final = 2
"""From this format on, more fields and other kinds of frames are ignored."""
NEWEST_FORMAT: Final = 2
