"""Real servers of one store on loopback: started, frozen, killed and started again.

Rule: the kernel ends a child process with the *thread* that started it. So `start_children` is
called in a thread that stays, as the main thread does; all other methods may wait in any thread.
"""

import signal
import time
from collections.abc import Callable
from typing import TypeVar

from logberg.local.child import Child, stop_all

LOOK_AGAIN_S = 0.05
LEADER_S = 30.0
T = TypeVar("T")


class ServerGroup:
    """The servers of one store. A subclass makes `ports` and `children`."""

    name: str
    """Of the store, for messages."""
    start_s: float = 60.0
    """How long they may take to serve."""
    stop_s: float = 20.0
    """How long they may take to end in good order."""
    ports: list[int]
    """Where clients reach them."""
    children: list[Child]

    @property
    def endpoints(self) -> list[str]:
        return [f"127.0.0.1:{port}" for port in self.ports]

    def start(self) -> None:
        """Start those that don't run, and wait until all serve. Call it in a thread that stays."""
        self.start_children()
        self.wait()

    def start_children(self) -> None:
        """Start those that don't run. Call it in a thread that stays."""
        for child in self.children:
            child.start()

    def wait(self) -> None:
        """Wait until all serve. Raises RuntimeError."""

        def serve() -> bool:
            return all(self.serves(n) for n in range(len(self.children)))

        self._until(serve, self.start_s, "it doesn't serve")

    def stop(self) -> None:
        """End all in good order."""
        stop_all(self.children, self.stop_s)

    def kill(self, *numbers: int) -> None:
        """End these servers at once; without a number, all."""
        for child in self._chosen(numbers):
            child.kill()

    def freeze(self, *numbers: int) -> None:
        """Hold these servers, as a long pause would; without a number, all."""
        for child in self._chosen(numbers):
            child.signal(signal.SIGSTOP)

    def thaw(self, *numbers: int) -> None:
        """Let frozen servers go on; without a number, all."""
        for child in self._chosen(numbers):
            child.signal(signal.SIGCONT)

    def leader(self, *, but: int | None = None) -> int:
        """Return the number of the server that leads, from 0. Raises RuntimeError.

        `but`: wait for another one than this.
        """

        def found() -> list[int]:
            running = [n for n, child in enumerate(self.children) if child.running and n != but]
            return [n for n in running if self.leads(n)]

        return self._until(found, LEADER_S, "nobody leads")[0]

    def serves(self, n: int) -> bool:
        """Whether a server answers, and knows who leads."""
        raise NotImplementedError

    def leads(self, n: int) -> bool:
        """Whether a server takes itself for the leader."""
        raise NotImplementedError

    def _chosen(self, numbers: tuple[int, ...]) -> list[Child]:
        return [self.children[n] for n in numbers] if numbers else self.children

    def _until(self, look: Callable[[], T], limit_s: float, trouble: str) -> T:
        """Return what `look` finds, once it is true."""
        end = time.monotonic() + limit_s
        while not (found := look()):
            if time.monotonic() > end:
                words = {child.name: child.last_words(20) for child in self.children}
                raise RuntimeError(f"{self.name}: {trouble} after {limit_s:.0f} s: {words}")
            time.sleep(LOOK_AGAIN_S)
        return found
