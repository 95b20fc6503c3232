"""A witness that answers controllers of a simulated cluster, and one that misbehaves."""

from collections.abc import Callable
from pathlib import Path

from ledger.merkle.notes import COSIGNATURE, NoteKey, SigningKey
from ledger.merkle.submissions import PATH, path_of
from logberg.witness.state import WitnessState
from logberg.witness.witness import Witness, WitnessedLog
from runtime.disk.real import RealDisk
from runtime.http.requests import OnReply, Reply, Request, Unreachable

LATENCY_S = 0.02


class WitnessServer:
    """The witness itself; `of(clock)` is a `Requester` that reaches it."""

    def __init__(self, folder: Path, origin: str, keys: list[NoteKey], name: str = "w") -> None:
        self.key = SigningKey(name, bytes((9,)) * 32, COSIGNATURE)
        disk = RealDisk(folder)
        disk.make_folder("")
        WitnessState.begin(disk)
        self.state = WitnessState(disk)
        self.state.open(self.key.public)
        needed = len(keys) // 2 + 1
        log = WitnessedLog(origin, tuple(keys), needed)
        self.witness = Witness(self.key, [log], self.state, lambda: 1_800_000_000)
        self.origin = origin
        self.gone = False
        self.shows_heads = True
        self.instead: Callable[[Request, Reply], Reply] | None = None
        """Changes each answer."""
        self.asked = 0

    @property
    def size(self) -> int:
        newest = self.state.newest(self.origin)
        return 0 if newest is None else newest.head.size

    def of(self, clock) -> "_Reached":
        return _Reached(self, clock)

    def answer(self, request: Request) -> Reply | Unreachable:
        if self.gone:
            return Unreachable("no connection (simulated)", refused=True)
        self.asked += 1
        if request.path == PATH:
            judged = self.witness.add(request.body)
            reply = Reply(judged.status, judged.body)
        else:
            newest = self.state.newest(self.origin)
            is_here = request.path == path_of(self.origin) and newest and self.shows_heads
            reply = Reply(200, newest.note.encode()) if is_here else Reply(404, b"not here\n")
        return reply if self.instead is None else self.instead(request, reply)


class _Reached:
    def __init__(self, server: WitnessServer, clock) -> None:
        self._server = server
        self._clock = clock

    def request(self, target: str, request: Request, on_reply: OnReply, deadline_s: float):
        def arrive() -> None:
            answer = self._server.answer(request)
            self._clock.call_later(LATENCY_S, lambda: on_reply(answer))

        return self._clock.call_later(LATENCY_S, arrive)
