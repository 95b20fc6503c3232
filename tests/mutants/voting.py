"""Mutants of the quorum: electing, counting, acknowledging, reading."""

from typing import Any

from quorum.guard import appends
from quorum.journal import Entry, LogView
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives, instead


def _give_the_core_everything(
    log: LogView, commit: int, previous: int, previous_term: int, entries: tuple[Entry, ...]
) -> Any:
    """What the core as it comes does: match at `previous`, then truncate, conflict or not."""
    if log.term_at(previous) == previous_term and entries:
        return appends.Append(previous, previous_term, entries)
    return appends.judge(log, commit, previous, previous_term, entries)


COUNT_UNSYNCED = Patch(
    "quorum.guard.replication.Replication.borne_out", instead(lambda _self, index: index)
)
HAND_UP_UNSYNCED = Patch(
    "quorum.guard.delivery.Delivery.limit", instead(lambda self: self._context.view.last)
)

VOTING = (
    Mutant(
        "an acknowledgement says nothing of the folder behind it",
        "1, I5",
        "The leader does not remember what a voter promised, so an older folder passes.",
        (Patch("quorum.guard.memory.Memory.with_acknowledgement", gives(())),),
    ),
    Mutant(
        "vote counted twice",
        "2, I1",
        "A voter's second answer in a term is counted like its first.",
        (Patch("quorum.guard.elections.Elections.first_vote_of", gives(True)),),
        searched_in("quorum", "wire", nodes=5),
    ),
    Mutant(
        "vote leaves before it is durable",
        "1, I1, I6",
        "A vote is sent at once; a loss of power forgets it, and it is cast again.",
        (
            Patch(
                "quorum.guard.elections.Elections.send_vote",
                edited(
                    ("context.outbox.hold(", "context.outbox.send("),
                    ("context.journal.position_of_vote, ", ""),
                ),
            ),
        ),
        searched_in("quorum", "power", "slow", nodes=3),
    ),
    Mutant(
        "candidate asks before its own vote is durable",
        "1, I1",
        "A vote request leaves at once; a candidate that lost power votes for another.",
        (
            Patch(
                "quorum.guard.elections.Elections.send_request",
                edited(
                    ("context.outbox.hold(", "context.outbox.send("),
                    ("    context.journal.position_of_vote,\n", ""),
                ),
            ),
        ),
        searched_in("quorum", "power", "slow", nodes=3),
    ),
    Mutant(
        "no pre-vote",
        "9",
        "Who hears no leader stands at once, and raises everybody's term.",
        (
            Patch(
                "quorum.guard.elections.Elections.on_turn",
                edited(("if context.voters.majority() == 1:", "if True:")),
            ),
        ),
        searched_in("quorum", "wire", "everything"),
    ),
    Mutant(
        "a leader that is heard may be replaced",
        "9",
        "A vote is given although the leader was heard a moment ago.",
        (Patch("quorum.guard.elections.Elections.leader_heard", gives(False)),),
        searched_in("quorum", "wire"),
    ),
    Mutant(
        "wiped disk may vote",
        "7, I1, I3",
        "A node id votes, whatever directory is behind it.",
        (
            Patch(
                "quorum.membership.voter_history.VoterHistory.votes",
                instead(lambda self, node_id, _directory: node_id in self.members),
            ),
        ),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "damaged node votes",
        "6, I1, I3",
        "A node whose journal lost what was durable votes as before.",
        (
            Patch(
                "quorum.guard.context.NodeContext.may_vote",
                edited((" and self.is_counted", "")),
            ),
            Patch(
                "quorum.guard.elections.Elections.on_vote_request",
                edited(("not context.is_counted or ", "")),
            ),
        ),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "damaged node is counted",
        "6, I3, I5",
        "Acknowledgements of a node whose journal is damaged count for the commit.",
        (
            Patch(
                "quorum.guard.following.Following._answer",
                edited(("context.is_counted", "True")),
            ),
        ),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "repaired by a majority",
        "6, I1",
        "A damaged node votes again when most voters, not all, have told their term.",
        (
            Patch(
                "quorum.guard.repair.Repair.on_answer",
                edited(
                    (
                        "not context.others_that_may_vote <= self._heard()",
                        "len(self._answers) < context.voters.majority() - 1",
                    )
                ),
            ),
        ),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "yesterday's folder has a voice",
        "1, 6",
        "A folder that was put back is not told from one that only slept.",
        (Patch("quorum.journal.lineage.Lineage.holds", gives(True)),),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "a loss counts again after its repair",
        "6",
        "A repair begins no generation: who recalls an older life holds it against the folder.",
        (
            Patch(
                "quorum.journal.lineage.Lineage.named_after_repair",
                edited(("1 + self._highest", "self._highest")),
            ),
        ),
        searched_in("quorum", "damage", nodes=5),
    ),
    Mutant(
        "a life is credited with what the next start wrote",
        "1, 6",
        "A life ends behind what the opening after it wrote: a copy lacking little seems whole.",
        (
            Patch(
                "quorum.journal.opening._write_tail_again",
                edited(("chain.state.lineage.end(chain.end)", "pass")),
            ),
            Patch(
                "quorum.journal.opening._begin_again",
                edited(("state.lineage.end(chain.end)", "pass")),
            ),
        ),
    ),
    Mutant(
        "a repair that nobody was told of stands",
        "1, 6",
        "A repair that was not durable when the process ended is read back as one.",
        (Patch("quorum.journal.opening._undo_unheard_repair", gives(None)),),
    ),
    Mutant(
        "voice not held back until the peers have spoken",
        "1, 6, I1",
        "A node votes at its start before anyone could tell it what it has forgotten.",
        (Patch("quorum.guard.context.NodeContext._is_compared", gives(True)),),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "current because a message has just come",
        "2, 10",
        "The age of an answer counts from a digest's arrival, however long it was on its way.",
        (
            Patch(
                "quorum.guard.freshness.DeliveryFreshness.heard",
                edited(("echo = echo_us / US\n", "echo = self._context.now\n")),
            ),
        ),
    ),
    Mutant(
        "stale ack accepted",
        "1, I3, I5",
        "Answers of another term count: acknowledgements, votes and probes.",
        (Patch("quorum.peers.dispatch.Dispatch.is_current", gives(True)),),
        searched_in("quorum", "wire"),
    ),
    Mutant(
        "ack beyond the log accepted",
        "1, I3",
        "An acknowledgement of an index that the leader does not have counts.",
        (
            Patch(
                "quorum.guard.replication.Replication.on_ack",
                edited(("if match > last or next_index > last + 1:", "if False:")),
            ),
        ),
        searched_in("quorum", "wire"),
    ),
    Mutant(
        "promise of another term is sent",
        "1, I3, I5",
        "An acknowledgement that waited for the disk leaves in a later term.",
        (Patch("quorum.guard.outbox.Outbox.still_holds", gives(True)),),
        searched_in("quorum", "slow"),
    ),
    Mutant(
        "higher term in an answer ignored",
        "2, I1",
        "A leader goes on although an answer names a term above its own.",
        (
            Patch(
                "quorum.peers.dispatch.Dispatch.take",
                edited(("core.raise_term(term, replica.node)", "pass")),
            ),
        ),
        searched_in("quorum", "wire", "stale"),
    ),
    Mutant(
        "an observer is counted",
        "7, I3",
        "The core is told that an observer votes: its copies count for the commit.",
        (
            Patch(
                "quorum.guard.replicas.PeerReplica.__init__",
                edited(("self.is_voter = is_voter", "self.is_voter = True")),
            ),
            Patch(
                "quorum.peers.links.Membership._voters_known",
                edited(
                    (
                        ("replica.is_voter = context.voters.votes(*replica.identity)"),
                        "replica.is_voter = True",
                    )
                ),
            ),
        ),
        searched_in("quorum", "damage", "drawn"),
    ),
    Mutant(
        "truncation without conflict",
        "1, I3, I5",
        "The core gets every append that matches, and truncates what stands behind.",
        (Patch("quorum.guard.following.judge", instead(_give_the_core_everything)),),
        searched_in("quorum", "wire"),
    ),
    Mutant(
        "a heartbeat commits more than it matched",
        "1, I4",
        "The leader's commit index is taken over for entries that it has not matched.",
        (
            Patch(
                "quorum.guard.following.Following.on_append",
                edited(("min(commit, judgement.match)", "commit")),
            ),
        ),
        searched_in("quorum", "wire", "lag"),
    ),
    Mutant(
        "commit before own copy is durable",
        "1, I5",
        "A leader counts and hands up what its own disk may lose. Guarded twice: both are off.",
        (COUNT_UNSYNCED, HAND_UP_UNSYNCED),
        searched_in("quorum", "power"),
    ),
    Mutant(
        "single voter commits before it is durable",
        "1, I5",
        "The core of one voter counts itself at once, and nothing holds back what it commits.",
        (HAND_UP_UNSYNCED,),
        searched_in("quorum", "power", nodes=1),
    ),
    Mutant(
        "stale read of the quorum",
        "2, I7",
        "A read index is given without asking anybody whether we still lead.",
        (Patch("quorum.guard.reads.ReadIndexes.is_confirmed", gives(True)),),
        searched_in("quorum", "stale"),
    ),
    Mutant(
        "read index before our first no-op",
        "2, I7",
        "A new leader grants reads before it knows what was committed before it.",
        (
            Patch(
                "quorum.node.QuorumNode.read_index",
                edited(
                    (
                        "core is None or self.guard.delivery.announced is None",
                        "core is None or core.role is not Role.LEADER",
                    )
                ),
            ),
        ),
        searched_in("quorum", "stale", "wire"),
    ),
    Mutant(
        "no check-quorum",
        "9",
        "A leader that hears no majority goes on leading.",
        (
            Patch(
                "quorum.raft.core._settings",
                edited(("leaderFallbackTimeout=timeout", "leaderFallbackTimeout=1e9")),
            ),
        ),
        searched_in("quorum", "wire", "stale"),
    ),
    Mutant(
        "an epoch is told before it is durable",
        "4, I6",
        "Who leads is told upward although a loss of power can still take the epoch back.",
        (
            Patch(
                "quorum.guard.delivery.Delivery.deliver_leader",
                edited(
                    (
                        " and context.outbox.is_durable(context.journal.position_of_vote)",
                        "",
                    )
                ),
            ),
        ),
        searched_in("quorum", "power", "slow"),
    ),
    Mutant(
        "an entry is handed up twice",
        "1, 5, I4",
        "What was handed up with the last entry comes once more.",
        (
            Patch(
                "quorum.guard.delivery.Delivery.deliver_committed",
                edited(
                    (
                        "    context.listener.on_committed(index, epoch, payloads)\n",
                        (
                            "    context.listener.on_committed(index, epoch, payloads)\n"
                            "        if index % 5 == 0:\n"
                            "            context.listener.on_committed(index, epoch, payloads)\n"
                        ),
                    )
                ),
            ),
        ),
        searched_in("quorum", "everything"),
    ),
    Mutant(
        "jump over what we hold",
        "1, I5",
        "A log that holds the mark's entry is cleared for a jump all the same.",
        (Patch("quorum.guard.catch_up.FollowerCatchUp._holds", gives(False)),),
        searched_in("quorum", "lag"),
    ),
)
