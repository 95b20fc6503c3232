"""An administrator changes the voters by requests, while brokers and clients work (`voters`).

It takes the controllers from one voter to three, to five and back, and round again: it asks
whichever controller leads to add and remove voters, and asks a leader that shall go to resign. Now
and then it wipes a voter's folder, and replaces it: the old directory is removed, and the new one
may be added. A request whose outcome is unknown is repeated with its id.

Rules (I24), beside V1 and V2 of `voter_checks`:

- An acknowledged change is in the log once.
- An image has the voters of the quorum's log at the same place. Only a batch that the fence skipped
  lets them differ, and then the leader writes the record again within a moment.
- Nothing is refused but for the reasons that the quorum has.
"""

import json
from collections import Counter
from typing import Any

from metadata.uuids import uuid7, uuid_text
from quorum.api import Voter
from runtime.http.requests import Caller, Reply, Request, Unreachable
from runtime.simulated.host import SimulatedHost
from runtime.simulated.world import US, Process
from tests.simulation.voter_checks import VoterChecks, may_wipe

HOST = 905
OPERATION = "ChangeVoters"
SIZES = (3, 5, 3, 1)
"""How many voters there shall be, one after another, and from the beginning again."""
_ACTS_PER_S = 2.0
_TRY_S = 2.0
_TRIES = 8
_SILENT = (421, 429, 503, 507)
_EXPECTED = ("VOTERS_NOT_READY", "INVALID_REQUEST")
_REPAIRED_WITHIN_S = 5.0


class VoterRequests:
    """Idle unless the shape asks for it."""

    def __init__(self, cluster: Any) -> None:
        self._cluster = cluster
        self.counts: Counter[str] = Counter()
        self.acknowledged: dict[str, bool] = {}
        """By the id of an acknowledged request, whether it certainly has a record."""
        self._place = 0
        self._busy = False
        self._wiped: set[bytes] = set()
        self._differs_since: dict[int, float] = {}
        """Since when an active controller's image has other voters than its log, by node."""

    def start(self) -> None:
        """Let it begin."""
        cluster = self._cluster
        self._dice = cluster.world.random("voter requests")
        self._host = SimulatedHost(cluster.world, cluster.network, HOST)
        self._process = self._host.boot()
        self._requests = self._host.requests(Caller("User:voters", "token", "10.0.0.13"))
        self._checks = VoterChecks(cluster.world, self.counts)
        cluster.world.after_event(self.after_event)
        self._plan()

    def _plan(self) -> None:
        delay = int(self._dice.expovariate(_ACTS_PER_S) * US)
        self._process.schedule(delay, self._act, "voters")

    # -- what it does -------------------------------------------------------------------------

    def _act(self) -> None:
        self._plan()
        leader = self._cluster.leader()
        if leader is None or self._busy or not self._cluster.busy:
            return
        voters = self._cluster.controllers[leader].quorum.voters()
        lost = [voter for voter in voters if voter.directory_id in self._wiped]
        if lost:
            self._remove(leader, lost[0])
            return
        wanted = SIZES[self._place]
        if len(voters) == wanted:
            self._place = (self._place + 1) % len(SIZES)
            if self._dice.random() < 0.6 and self._may_wipe():
                self._wipe(self._dice.choice(voters))
        elif len(voters) < wanted:
            known = {voter.node_id for voter in voters}
            node_id = self._dice.choice([n for n in self._cluster.hosts if n not in known])
            self._ask({"action": "add", "nodeId": node_id})
        else:
            self._remove(leader, self._dice.choice(voters))

    def _remove(self, leader: int, voter: Voter) -> None:
        if voter.node_id == leader:
            self.counts["resignations asked for"] += 1
            controller = self._cluster.controllers[leader]
            self._cluster.hosts[leader].process.schedule(
                0, lambda: controller.quorum.resign("it shall be removed"), "resignation"
            )
            return
        directory = uuid_text(voter.directory_id)
        self._ask({"action": "remove", "nodeId": voter.node_id, "directoryId": directory})

    def _ask(self, body: dict[str, Any]) -> None:
        bits = self._dice.getrandbits(74)
        request_id = uuid_text(uuid7(self._process.clock.wall_ms(), bits))
        headers = {
            "content-type": "application/json",
            "x-logberg-request-id": request_id,
            "x-logberg-reason": "simulation",
        }
        encoded = json.dumps(body).encode()
        self._busy = True
        self._try(Request("POST", "/v1/quorum/voters", encoded, headers=headers), body, 1)

    def _try(self, request: Request, body: dict[str, Any], tries: int) -> None:
        def answered(answer: Reply | Unreachable) -> None:
            status = answer.status if isinstance(answer, Reply) else 503
            if status in _SILENT and tries < _TRIES:
                again = int(self._dice.uniform(0.05, 0.5) * US)
                self._process.schedule(
                    again, lambda: self._try(request, body, tries + 1), "voters again"
                )
                return
            self._busy = False
            if status in _SILENT:
                self.counts["changes of voters with an unknown outcome"] += 1
                return
            assert isinstance(answer, Reply)
            self._answered(request, body, status, json.loads(answer.body))

        leader = self._cluster.leader() or self._dice.choice(list(self._cluster.hosts))
        self._requests.request(f"http://controller-{leader}", request, answered, _TRY_S)

    def _answered(
        self, request: Request, body: dict[str, Any], status: int, reply: dict[str, Any]
    ) -> None:
        if status == 200:
            self.counts[f"voters: {body['action']}"] += 1
            # Who is a voter already is added without one.
            certain = body["action"] == "remove"
            self.acknowledged[request.headers["x-logberg-request-id"]] = certain
            return
        code = reply["code"]
        self.counts[f"voters not changed: {code}"] += 1
        if code not in _EXPECTED and not code.startswith("REQUEST_"):
            self._cluster.world.fail(f"I24: refused with {reply}", None)

    # -- folders ------------------------------------------------------------------------------

    def _contexts(self) -> list[Any]:
        found = (getattr(c.quorum, "context", None) for c in self._cluster.running().values())
        return [context for context in found if context is not None]

    def _may_wipe(self) -> bool:
        return may_wipe(self._contexts(), len(self._cluster.hosts))

    def _wipe(self, voter: Voter) -> None:
        host = self._cluster.hosts[voter.node_id]
        self.counts["voters' folders wiped"] += 1
        self._wiped.add(voter.directory_id)
        host.lose_power()
        host.platter.wipe()
        self._cluster.invariants.forgot(voter.node_id)
        self._cluster.start(voter.node_id)

    # -- what must hold -----------------------------------------------------------------------

    def after_event(self, process: Process | None) -> None:
        """Check the controller whose process just ran."""
        controller = None if process is None else self._cluster.controllers.get(process.node_id)
        if process is None or controller is None or not process.alive:
            return
        context = getattr(controller.quorum, "context", None)
        self._checks.look(process.node_id, context)
        if context is not None and context.voters.known and controller.loaded:
            self._compare(process.node_id, controller, context)

    def _compare(self, node_id: int, controller: Any, context: Any) -> None:
        """The active controller's image has the voters of its log, but for a moment."""
        now = self._cluster.world.now
        if not controller.active or _same(controller, context):
            self._differs_since.pop(node_id, None)
            return
        since = self._differs_since.setdefault(node_id, now)
        if not self._cluster.controllers[node_id].quorum.voter_set().settled:
            # A change that can't commit, as without a majority, is not in the image.
            self._differs_since[node_id] = now
        elif now - since > _REPAIRED_WITHIN_S:
            self._cluster.world.fail(
                f"I24: the image has voters {_named(controller)}, the log has "
                f"{sorted(context.voters.members.items())}",
                node_id,
            )

    def judge(self, effects: Counter[str]) -> Counter[str]:
        """Judge the end: every image has the log's voters, and what was acknowledged is there.

        `effects`: how often each request is in the log.
        """
        for node_id, controller in self._cluster.running().items():
            if not _same(controller, controller.quorum.context):
                self._cluster.world.fail(f"I24: voters {_named(controller)} in the end", node_id)
        for request_id, certain in self.acknowledged.items():
            if not certain <= effects[request_id] <= 1:
                times = f"{effects[request_id]} times"
                self._cluster.world.fail(f"I24: {request_id} is in the log {times}", None)
        return self.counts


def _named(controller: Any) -> dict[int, bytes]:
    voters = controller.image.quorum.voters
    return {voter.voter_id: voter.voter_directory_id for voter in voters}


def _same(controller: Any, context: Any) -> bool:
    """Whether an image has the voters that the log has where the image stands."""
    at = context.voters.at(controller.place.index)
    return controller.image.offset == 0 or _named(controller) == at.members
