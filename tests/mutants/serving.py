"""Mutants of how brokers are served: fencing, sessions, leases, and the agent's image."""

from typing import Any

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead


def _registered(image: Any, broker_id: int, _epoch: int) -> Any:
    """Whoever has the id speaks for it."""
    return image.cluster.brokers[broker_id]


SERVING = (
    Mutant(
        "broker epoch ignored",
        "3, I8",
        "A request of an older incarnation is taken for the registered one's.",
        (
            Patch("controller.managers.brokers.registered", instead(_registered)),
            Patch("controller.leader.identity.registered", instead(_registered)),
            Patch("controller.leader.identity.check_incarnation", gives(None)),
            Patch("controller.http.metadata_fetch.check_incarnation", gives(None)),
        ),
        searched_in("cluster", "everything"),
    ),
    Mutant(
        "second process with a living id",
        "3, I8",
        "A broker id is given to another process while the first one is alive.",
        (
            Patch(
                "controller.managers.brokers.BrokerManager.register",
                edited(
                    (
                        "and self._heartbeats.is_alive(before.broker_id, before.broker_epoch)",
                        "and False",
                    )
                ),
            ),
        ),
        searched_in("cluster", "twins"),
    ),
    Mutant(
        "an amendment says a new epoch",
        "3, I14",
        "A process that registers again is written down as if it were a new one.",
        (
            Patch(
                "controller.managers.brokers.BrokerManager.register",
                edited(("if before is not None and same:", "if False:")),
            ),
        ),
        searched_in("cluster", "cuts"),
    ),
    Mutant(
        "the body says who asks",
        "12, I15",
        "The principal of a registration is the broker of the body, whoever sent it.",
        (
            Patch(
                "controller.http.metadata_fetch.MetadataFetch._register",
                edited(
                    (
                        "asker.provenance(",
                        "asker._replace(caller=Caller(f'Broker:{request.broker_id}')).provenance(",
                    )
                ),
            ),
        ),
        searched_in("cluster", ""),
    ),
    Mutant(
        "what nobody asked for is said to be asked for",
        "12, I15",
        "What another broker's progress releases is written as the held request's.",
        (
            Patch(
                "controller.http.metadata_fetch.MetadataFetch._reconsider_stopping",
                edited(
                    (
                        "operation, None)",
                        "operation, FetchAsker(Caller(f'Broker:{held.request.broker_id}'), None))",
                    )
                ),
            ),
        ),
        searched_in("cluster", ""),
    ),
    Mutant(
        "heartbeat to a deposed controller counts",
        "3, I8",
        "An agent takes answers of an older epoch than it has seen.",
        (
            Patch(
                "broker_agent.fetch_loop.FetchLoop._judge",
                edited(("elif reply.leader_epoch < self._choice.epoch:", "elif False:")),
            ),
        ),
        searched_in("cluster", "stranded", "cuts"),
    ),
    Mutant(
        "a deposed controller sends brokers away",
        "3, 11",
        "An order to leave is obeyed whatever epoch it comes from.",
        (
            Patch(
                "broker_agent.fetch_loop.FetchLoop._on_error",
                edited((" and (foreign or epoch >= self._choice.epoch)", "")),
            ),
        ),
        searched_in("cluster", "stranded"),
    ),
    Mutant(
        "a controller that stood still answers brokers at once",
        "3, I8",
        "A leader that woke from a stall renews leases before it knows that it still leads.",
        (Patch("controller.leader.leadership_check.LeadershipCheck.begin", gives(None)),),
        searched_in("cluster", "stranded", "rivals"),
    ),
    Mutant(
        "a broker that is being fenced is told that it is online",
        "3, I19",
        "A reply says what is committed, though the controller has decided to fence the broker.",
        (Patch("controller.leader.heartbeats.Heartbeats.is_being_fenced", gives(False)),),
        searched_in("cluster", "stranded", "twins"),
    ),
    Mutant(
        "a new leader begins no sessions",
        "3, I19",
        "A new leader fences at once whoever it has not heard yet.",
        (
            Patch(
                "controller.leader.heartbeats.Heartbeats._find",
                edited(("else self._session_s", "else 0.0")),
            ),
        ),
        searched_in("cluster", "twins"),
    ),
    Mutant(
        "own stalls count as silence",
        "11",
        "Sessions run on while the controller stands still.",
        (
            Patch("controller.leader.heartbeats.AwakeTime._overdue", gives(0.0)),
            Patch(
                "controller.leader.heartbeats.AwakeTime._beat",
                edited(("self._stalled += late", "pass")),
            ),
            Patch("controller.leader.heartbeats.Heartbeats.after_stall", gives(None)),
        ),
        searched_in("cluster", "stranded"),
    ),
    Mutant(
        "fenced broker goes on leading",
        "3",
        "A silent broker is fenced, and its partitions keep it as leader and in the ISR.",
        (
            Patch(
                "controller.managers.brokers.BrokerManager.fence_silent",
                edited(("ControllerResult((*moved, fence)", "ControllerResult((fence,)")),
            ),
        ),
        searched_in("cluster", "twins"),
    ),
    Mutant(
        "new leader knows only who is in its table",
        "3",
        "A new leader takes a broker for silent that its table of sessions does not have yet.",
        (
            Patch(
                "controller.leader.heartbeats.Heartbeats._find",
                edited(("if contact is not None or", "if True or")),
            ),
        ),
    ),
    Mutant(
        "registrations without a bound",
        "3",
        "All registrations of a storm are let in at once, and fencings wait behind them.",
        (
            Patch(
                "controller.http.registration_queue.RegistrationQueue.refusal",
                edited(("if len(self._under_way) < UNDER_WAY_MAX:", "if True:")),
            ),
        ),
    ),
    Mutant(
        "a watcher is told that there is nothing",
        "4",
        "A watcher whose group has read something about other resources is answered, and not held.",
        (
            Patch(
                "controller.http.watch_groups.WatchGroups._released",
                edited(("group.finder.read_to > watcher.seen", "False")),
            ),
        ),
    ),
    Mutant(
        "held longer than asked",
        "3",
        "A random part is added to the wait of a held request, and not left out.",
        (
            Patch(
                "controller.http.held_requests.HeldRequests.park",
                edited(("1.0 - SPREAD", "1.0 + SPREAD")),
            ),
        ),
    ),
    Mutant(
        "controlled shutdown ignores lag",
        "3, 4",
        "A stopping broker may go before the others have seen that its leaders moved.",
        (
            Patch(
                "controller.managers.brokers.BrokerManager.state_change",
                edited(("waits or behind", "waits")),
            ),
        ),
    ),
    Mutant(
        "unfenced before it has caught up",
        "4",
        "A broker is put in service before it has applied its own registration.",
        (Patch("controller.managers.brokers.has_caught_up", gives(True)),),
    ),
    Mutant(
        "agent serves after its lease",
        "3, I8",
        "An agent that nobody answers does not fence itself.",
        (Patch("broker_agent.lease.Lease.expired", gives(False)),),
        searched_in("cluster", "twins"),
    ),
    Mutant(
        "lease from the answer's arrival",
        "3, I8",
        "The lease is counted from when an answer came, not from when it was asked for.",
        (
            Patch(
                "broker_agent.agent.AgentCore.on_reply",
                edited(
                    ("self._lease.renew(sent_at)", "self._lease.renew(self._clock.monotonic())")
                ),
            ),
        ),
        searched_in("cluster", "twins"),
    ),
    Mutant(
        "agent serves with an old image",
        "4",
        "A broker that comes back serves before it has what the controller had when they met.",
        (Patch("broker_agent.catching_up.CatchingUp.caught_up", gives(True)),),
    ),
    Mutant(
        "agent applies batches with a gap",
        "4, I4",
        "A batch is applied whatever it follows.",
        (Patch("broker_agent.view._check_continues", gives(None)),),
    ),
    Mutant(
        "agent's state is not held against the controllers'",
        "4, 6, I10",
        "A difference of log or state that a reply tells of is not looked at.",
        (Patch("broker_agent.view._compare", gives(None)),),
    ),
    Mutant(
        "readers see a part of an answer",
        "4, I4",
        "An agent publishes each image that it builds while it follows an answer.",
        (
            Patch(
                "broker_agent.view.MetadataView._replayed",
                edited(
                    (
                        "self._on_replaced(OldPages([], pages.published + pages.unread))",
                        "self._published = image",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "a later answer overtakes the one that is followed",
        "4, I4, I6",
        "An agent begins to follow an answer while it still follows another.",
        (
            Patch(
                "broker_agent.agent.AgentCore._follow",
                edited(("if not self._catching_up.following:", "if True:")),
            ),
            Patch(
                "broker_agent.catching_up.CatchingUp._in_slices",
                edited(("assert self._following is None", "assert True")),
            ),
        ),
    ),
    Mutant(
        "an image counts as applied before the host knows it",
        "4",
        "The applied offset grows when an image is published, not after the last publisher.",
        (
            Patch(
                "broker_agent.view.MetadataView.applied_offset",
                edited(("self._told", "self._published")),
            ),
        ),
    ),
    Mutant(
        "a fenced broker serves until it has followed the answer",
        "3, I8",
        "The state in an answer counts only when its batches are applied.",
        (
            Patch(
                "broker_agent.agent.AgentCore._follow",
                edited(("if reply.state is SeenState.FENCED:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "agent merges an image instead of replacing",
        "4",
        "Publishers are told a loaded image as if it were one step: what is gone stays.",
        (
            Patch(
                "broker_agent.view.MetadataView.replace_in_steps",
                edited(("self._continues = False", "pass")),
            ),
        ),
    ),
    Mutant(
        "agent goes back to an older snapshot",
        "4, I6",
        "A snapshot that ends before what is here is loaded.",
        (
            Patch(
                "broker_agent.catching_up.CatchingUp._load",
                edited(("if offset <= self._view.fetched_offset:", "if False:")),
            ),
        ),
    ),
    Mutant(
        "agent's image loaded unchecked",
        "6, I10",
        "The state hash of an image from disk or from a controller is not compared.",
        (
            Patch(
                "broker_agent.image_store._placed",
                edited(
                    (
                        "if newest.state_hash.shared_bytes() != header.state_hash[:_HASH_BYTES]:",
                        "if False:",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "watch and fetch know no divergence",
        "4, I4",
        "A fetcher whose history is not ours gets our batches as if it were.",
        (Patch("controller.http.fetch_content.FetchContent._diverging", gives(None)),),
    ),
    Mutant(
        "an epoch from before the log is believed",
        "4, I4",
        "A leader that has no older log takes a fetcher's lost epoch for its own history.",
        (
            Patch(
                "controller.http.fetch_content._is_before",
                edited(("return ledger.log_start > 0 and", "return False and")),
            ),
        ),
    ),
)
