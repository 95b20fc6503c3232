"""Mutants of changes of the voters (ADR 0081), by the rules of model/Voters.tla."""

from quorum.api import Voter
from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, around, edited, gives, instead

_CHANGES = "quorum.guard.voter_changes.VoterChanges"
_HISTORY = "quorum.membership.voter_history.VoterHistory"
_MANAGER = "controller.managers.voters"
_IN_SEEDS = searched_in("quorum", "voters")
_IN_REQUESTS = searched_in("cluster", "voters")
_IN_MOVES = searched_in("quorum", "addresses")
_LINKS = "quorum.peers.links.Membership"
_HEARD = "quorum.guard.heard_voters.HeardVoters"

VOTERS = (
    Mutant(
        "two changes of the voters at once",
        "13, I3, V2",
        "A leader appends other voters while the set before is not committed.",
        (Patch(f"{_CHANGES}._while_another", gives("")),),
        _IN_SEEDS,
    ),
    Mutant(
        "two voters in one change",
        "13, I3, V2",
        "A folder is replaced in one step: the majorities before and after need not meet.",
        (Patch(f"{_CHANGES}._more_than_one", gives("")),),
        _IN_SEEDS,
    ),
    Mutant(
        "a removed voter votes on",
        "13, I1",
        "A candidate and a leader count whoever was a voter once.",
        (
            Patch(
                f"{_CHANGES}.take_effect",
                edited(("replica.is_voter = not replica.is_voter", "replica.is_voter = True")),
            ),
        ),
        _IN_SEEDS,
    ),
    Mutant(
        "a new voter need not catch up",
        "13, I12",
        "An empty node becomes a voter, and the next failure stops the cluster.",
        (Patch(f"{_CHANGES}._who_lags", gives("")),),
    ),
    Mutant(
        "a removal need not leave a majority",
        "13, I12",
        "A sound voter is removed beside a dead one, and nothing can be written.",
        (Patch(f"{_CHANGES}._too_few", gives("")),),
    ),
    Mutant(
        "voters are in force when something tells so, not when they are appended",
        "13, I1, I3",
        "An entry with voters changes nothing before the next start.",
        (Patch(f"{_HISTORY}.on_added", instead(lambda _self, _command, _index: None)),),
        _IN_SEEDS,
    ),
    Mutant(
        "voters that were cut stay in force",
        "13, I1, I3",
        "A change whose entry another leader cut is not undone.",
        (Patch(f"{_HISTORY}.on_cut", instead(lambda _self, _index: None)),),
        _IN_SEEDS,
    ),
    Mutant(
        "the core counts over the voters of its start",
        "13, I3",
        "The guard knows the new voters, and the core goes on with the old ones.",
        (Patch("quorum.raft.core.Core.set_others", instead(lambda _self, _others: None)),),
        _IN_SEEDS,
    ),
    Mutant(
        "a removed voter gets its removal at once",
        "13, I12",
        "It may then hold the newest log, must not stand, and refuses everybody else its vote.",
        (Patch(f"{_CHANGES}._hold_off", instead(lambda _self, _new: None)),),
    ),
    Mutant(
        "later voters are believed of anybody",
        "13, 9",
        "A node that is no voter says who may lead.",
        (Patch(f"{_HEARD}._believes", gives(True)),),
    ),
    Mutant(
        "a removal that is cut off hides who leads",
        "13, I12",
        "Only the newest voters of a node's log may lead it, though another leader may cut them.",
        (Patch(f"{_HEARD}._of_our_log", gives([])),),
        _IN_SEEDS,
    ),
    Mutant(
        "a removed voter may lead on",
        "13, 9",
        "Nobody judges again once a removal is committed: frames of the removed voter count.",
        (Patch(f"{_HEARD}.on_tick", edited(("!= self._judged_by", "== [-1]"))),),
    ),
    Mutant(
        "what is told must be later than what may be cut off",
        "13, I12",
        "A node whose newest voters are cut off believes no set with a lower index.",
        (
            Patch(
                f"{_HEARD}._is_news",
                edited(("voters.at(self._commit_index).index", "voters.newest.index")),
            ),
        ),
    ),
    Mutant(
        "an observer believes nobody while the voters may change",
        "13, I12",
        "It waits for the commit of a change that concerns it in no way.",
        (
            Patch(
                f"{_HEARD}._may_vote",
                edited(
                    (
                        "voters.is_leaving(*me, self._commit_index)",
                        "not voters.newest_is_committed(self._commit_index)",
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "nobody tells who votes since",
        "13, I12",
        "A node that slept through a change does not follow a leader that was added in it.",
        (Patch(f"{_HEARD}.on_tick", instead(lambda _self: None)),),
        _IN_SEEDS,
    ),
    Mutant(
        "two voters move in one change",
        "13, V2",
        "An entry may change the addresses of all voters.",
        (Patch(f"{_CHANGES}._more_than_one_move", gives("")),),
    ),
    Mutant(
        "a moved voter is looked for where it was",
        "13, I12",
        "Nodes dial the configured address, whatever the log names.",
        (
            Patch(
                "quorum.peers.dialling.Dialling._choices",
                edited(
                    ("said = [*context.heard_voters.voters]", "said = []"),
                    ("if newest.named or v.node_id not in known", "if v.node_id not in known"),
                ),
            ),
        ),
        _IN_MOVES,
    ),
    Mutant(
        "a manifest forgets that voters moved",
        "13, I12",
        "After a compaction the configured addresses count again.",
        (
            Patch(
                "quorum.peers.links.Membership.voters_at",
                around(lambda original, self, index: (original(self, index)[0], False)),
            ),
        ),
        _IN_MOVES,
    ),
    Mutant(
        "a request changes the record of the voters alone",
        "13, I24",
        "The quorum keeps its voters, and the log says that they changed.",
        (
            Patch(
                f"{_MANAGER}.VoterManager.change",
                edited(("._replace(reply=reply, voters=after)", "._replace(reply=reply)")),
            ),
        ),
        _IN_REQUESTS,
    ),
    Mutant(
        "a request changes the quorum's voters alone",
        "13, I24",
        "The record in the entry still names the voters from before.",
        (
            Patch(
                f"{_MANAGER}.set_voters",
                around(
                    lambda original, image, _voters: original(
                        image,
                        [
                            Voter(v.voter_id, v.voter_directory_id, "", 0)
                            for v in image.quorum.voters
                        ],
                    )
                ),
            ),
        ),
    ),
    Mutant(
        "nobody writes the voters again",
        "13, I24",
        "After the fence skipped a batch of voters the image keeps the earlier ones.",
        (
            Patch(
                "controller.leader.voters_projection.VotersProjection._differs",
                instead(lambda _self, _image: False),
            ),
        ),
        _IN_REQUESTS,
    ),
    Mutant(
        "a request asks nobody whether the voters may change",
        "13, I24",
        "The decision is made without the quorum's rules; the quorum refuses the entry behind it.",
        (
            Patch(
                f"{_MANAGER}.VoterManager.change",
                edited(("if refusal is not None", "if False")),
            ),
        ),
    ),
    Mutant(
        "the formation is told before it is durable",
        "13, I12",
        "A first voter forgets it in a loss of power, and the others, who don't write it, wait.",
        (
            Patch(
                "quorum.membership.formation.Formation.write",
                edited(("self._written_to = self._journal.position_of_vote", "pass")),
            ),
        ),
        _IN_SEEDS,
    ),
    Mutant(
        "the formation is told once",
        "13, I12",
        "If the frame is lost on a link that stays open, the peer waits for ever.",
        (
            Patch(
                f"{_LINKS}.tell_formation",
                edited(("+ context.config.election_timeout_s", "+ 1e9")),
            ),
        ),
        _IN_SEEDS,
    ),
    Mutant(
        "a memory of a wiped folder accuses the new one",
        "13, I12",
        "A frame from before the folder was wiped counts, whatever folder it names.",
        (Patch("quorum.guard.memory._names_another", gives(False)),),
        _IN_SEEDS,
    ),
)
