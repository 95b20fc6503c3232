"""Ports for tests, which no other program takes before the test listens on them.

A port that the system hands out on request can be taken again at once, by any program's outgoing
connection. The ports here lie below the range that the system hands out.
"""

import itertools
import os
import socket
from collections import deque

_FIRST, _LAST = 10_000, 18_999
_turns = itertools.count(os.getpid() * 97)
_kept: deque[socket.socket] = deque(maxlen=32)


def free_port() -> int:
    """A port on 127.0.0.1 that nobody listens on now.

    The process keeps the UDP port of the same number for a while, so that other test processes,
    which ask in the same way, choose another one.
    """
    for _ in range(_LAST - _FIRST):
        port = _FIRST + next(_turns) % (_LAST - _FIRST + 1)
        if _keep(port):
            return port
    raise OSError(f"All ports from {_FIRST} to {_LAST} are taken; end the programs that hold them.")


def _keep(port: int) -> bool:
    """Reserve the port by its UDP twin, unless somebody has it."""
    reservation = socket.socket(type=socket.SOCK_DGRAM)
    try:
        reservation.bind(("127.0.0.1", port))
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(("127.0.0.1", port))
    except OSError:
        reservation.close()
        return False
    if len(_kept) == _kept.maxlen:
        _kept.popleft().close()
    _kept.append(reservation)
    return True
