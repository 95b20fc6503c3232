"""Faults of the network: cuts of every shape, noise, and frames that arrive very late."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial

from runtime.simulated.fault_injector import FaultInjector
from runtime.simulated.network import LOSSY, PLAIN, SLOW, WILD, PathProfile
from runtime.simulated.world import US


class NetworkFaults:
    """The network faults. Each ends with the paths as before."""

    def __init__(self, injector: FaultInjector) -> None:
        self._injector = injector
        self._network = injector.network
        if "old_frames" in injector.fault_schedule.weights:
            injector.network.remember()
        self.acts: Mapping[str, Callable[[], None]] = {
            "whole": self._whole,
            "isolate_leader": self._isolate_leader,
            "bridge": self._bridge,
            "one_way": self._one_way,
            "flapping": self._flapping,
            "reset": self._reset,
            "lossy": partial(self._noise, "lossy", LOSSY),
            "slow_paths": partial(self._noise, "slow paths", SLOW),
            "wild": partial(self._noise, "wild", WILD),
            "stranded_leader": self._stranded_leader,
            "hold": self._hold,
            "old_frames": self._old_frames,
        }

    def _others(self, node_id: int) -> list[int]:
        return [n for n in self._injector.nodes() if n != node_id]

    def _cut(self, what: str, one: Sequence[int], other: Sequence[int]) -> None:
        self._injector.on([*one, *other])
        self._network.cut(one, other, hold=self._injector.dice.random() < 0.3)
        mend = partial(self._network.mend, one, other)
        self._injector.for_a_while(what, f"{list(one)} | {list(other)}", mend)

    def _whole(self) -> None:
        nodes = self._injector.some(len(self._injector.nodes()))
        at = self._injector.dice.randint(1, max(len(nodes) - 1, 1))
        self._cut("cut", nodes[:at], nodes[at:])

    def _isolate_leader(self) -> None:
        leader = self._injector.leader()
        self._cut("isolate", [leader], self._others(leader))

    def _stranded_leader(self) -> None:
        """Cut the leader off from its peers and pause it; it continues while still cut off."""
        leader = self._injector.leader()
        host = self._injector.host(leader)
        self._cut("strand", [leader], self._others(leader))
        host.pause()
        self._injector.for_a_while("while it pauses", leader, host.resume)

    def _bridge(self) -> None:
        """Cut the cluster into two halves. Only one node can still reach both."""
        nodes = self._injector.some(len(self._injector.nodes()))[1:]
        half = len(nodes) // 2
        self._cut("bridge", nodes[:half], nodes[half:])

    def _one_way(self) -> None:
        """Cut one direction between one node and some of the others."""
        injector = self._injector
        node_id = injector.any_or_leader()
        others = [n for n in injector.some(len(injector.nodes())) if n != node_id]
        others = others[: injector.dice.randint(1, max(len(others), 1))]
        outward = injector.dice.random() < 0.5
        pairs = [(node_id, n) if outward else (n, node_id) for n in others]
        self._block("one way", node_id, pairs, hold=False)

    def _hold(self) -> None:
        """Hold everything that one node sends, or receives; then deliver it all at once."""
        injector = self._injector
        node_id = injector.any_or_leader()
        outward = injector.dice.random() < 0.5
        pairs = [(node_id, n) if outward else (n, node_id) for n in self._others(node_id)]
        self._block("hold", node_id, pairs, hold=True)

    def _block(
        self, what: str, node_id: int, pairs: Sequence[tuple[int, int]], *, hold: bool
    ) -> None:
        self._injector.on([node_id])
        for source, target in pairs:
            self._network.block(source, target, hold=hold)

        def end() -> None:
            for source, target in pairs:
                self._network.unblock(source, target)

        self._injector.for_a_while(what, pairs, end)

    def _flapping(self) -> None:
        """Cut and mend the paths between two nodes again and again."""
        injector = self._injector
        one, other = injector.some(2) if len(injector.nodes()) > 1 else (0, 0)
        injector.on([one, other])
        state = {"cut": False, "over": False}

        def flip() -> None:
            if state["over"] or not injector.going:
                return
            state["cut"] = not state["cut"]
            act = self._network.cut if state["cut"] else self._network.mend
            act([one], [other])
            delay_us = int(injector.dice.uniform(0.1, 1.0) * US)
            injector.world.schedule(delay_us, flip, None, "flap")

        def end() -> None:
            state["over"] = True
            if state["cut"]:
                self._network.mend([one], [other])

        flip()
        injector.for_a_while("flapping", (one, other), end)

    def _reset(self) -> None:
        injector = self._injector
        if len(injector.nodes()) > 1:
            one, other = injector.some(2)
            injector.on([one, other])
            injector.record(f"reset {one} {other}")
            injector.cluster.reset_link(one, other)

    def _noise(self, what: str, profile: PathProfile) -> None:
        self._injector.on(self._injector.nodes())
        self._network.set_profile(profile)
        self._injector.for_a_while(what, "all", partial(self._network.set_profile, PLAIN))

    def _old_frames(self) -> None:
        """Let frames of any earlier time, and so of earlier terms, arrive on the present links."""
        injector = self._injector
        injector.on(injector.nodes())
        sent = sum(path.send_old(injector.dice) for path in self._network.paths())
        injector.record(f"old frames: {sent}")
