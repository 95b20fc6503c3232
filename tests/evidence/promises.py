"""What Logberg promises, where each rule lives, and what proves it: the words of docs/safety.md.

Rule: only what holds today is here. A number is never given to another promise: mutants name the
promise that they break by it. Numbers that are missing stand in `NOT_MADE`, with the reason. Each
path exists, a test sees to it; figures come from runs and never stand here.
"""

from typing import NamedTuple


class Place(NamedTuple):
    """A file, and what it has to do with a promise."""

    path: str
    says: str


class Promise(NamedTuple):
    """One promise."""

    number: int
    title: str
    says: str
    rule: tuple[Place, ...]
    """Where it lives in the code."""
    proof: tuple[Place, ...]
    """What would fail if it did not hold."""
    faults: str
    """What is done to it meanwhile."""
    runs: tuple[str, ...] = ("seeds",)
    """Which kinds of evidence are about it."""


_QUORUM_INVARIANTS = "tests/simulation/quorum_invariants.py"
_INVARIANTS = "tests/simulation/invariants.py"

DURABLE = Promise(
    1,
    "What is acknowledged stays",
    "An acknowledged change survives the kill of all controllers at once, the loss of power of all "
    "of them at once, and the loss of any minority of disks. There is no setting that trades this "
    "for speed.",
    (
        Place("quorum/guard/outbox.py", "nothing leaves before what it promises is durable"),
        Place("quorum/guard/replication.py", "copies count as far as the leader's own is durable"),
        Place("quorum/raft/handing_up.py", "what goes up is committed, and durable here"),
        Place("quorum/journal/journal.py", "the journal, and when it is durable"),
        Place(
            "controller/storage/snapshotting.py", "the ledger is synced before the journal forgets"
        ),
        Place("runtime/real_disk.py", "syncs of files and of folders; none is repeated"),
    ),
    (
        Place(_QUORUM_INVARIANTS, "I3, I5: acknowledged is in every later log"),
        Place(_INVARIANTS, "I4, I9: the same on every node, an acknowledged request exactly once"),
        Place("model/Guard.tla", "the guard's protocol, explored whole within bounds"),
        Place("tests/crashpoints/__main__.py", "a kill at every write, sync, rename and unlink"),
        Place("tests/crashpoints/processes.py", "the same with real processes under load"),
        Place("tests/power/cuts.py", "power cut under real processes, by a forgetful file system"),
        Place("tests/kills/__main__.py", "real leaders killed under load"),
        Place("tests/unit/quorum/journal/test_crashes.py", "every crash of a small journal"),
        Place("tests/unit/ledger/test_power_loss.py", "what the ledger keeps without power"),
        Place("tests/process/test_failover.py", "in `make test`, with real processes"),
    ),
    "kills at any disk step, loss of power of one, some or all with any subset of unsynced "
    "sectors kept, partitions, frames that are late, doubled or of old connections",
    ("seeds", "crash points", "power cuts", "kills", "model"),
)

ONE_ORDER = Promise(
    2,
    "One order, and every answer is true at its offset",
    "Changes and linearizable reads are strictly serializable: there is one order of all of them, "
    "it is the log's, and it contradicts no order in time that a client could see. No clock is "
    "needed for it. A stale read says how old it may be, and a read with `minOffset` is not older.",
    (
        Place("quorum/guard/reads.py", "a majority confirms after the call"),
        Place("controller/replica/reads.py", "which reads wait for what"),
        Place("controller/leader/changes.py", "refusals are confirmed like reads"),
        Place("controller/replica/freshness.py", "how old an answer may be"),
        Place("ledger/ledger.py", "the fence: decided on this state, or not at all"),
    ),
    (
        Place("tests/checkers/revisions.py", "every answer held against the log, in linear time"),
        Place("tests/checkers/registers.py", "a search that is blind to offsets"),
        Place("tests/mutants/serving.py", "broken answers, which judges must see"),
        Place(_QUORUM_INVARIANTS, "I1, I2, I7: one leader an epoch, logs match, reads are current"),
        Place("model/reads.cfg", "reads of the model"),
        Place("tests/unit/controller/http/test_reads.py", "each kind of read, by hand"),
        Place("tests/unit/controller/leader/test_stalled_leader.py", "a leader that slept"),
    ),
    "leaders that are paused and wake among their clients, one-way and bridge partitions, "
    "delays, clients that compete for the same names",
    ("seeds", "model"),
)

FENCED = Promise(
    3,
    "One life for each broker id",
    "Of one broker id at most one process serves at a time. Broker epochs only grow, and what an "
    "older process asks for is refused when it is applied, not only when it arrives. A broker that "
    "nobody answers stops serving before its partitions are given away.",
    (
        Place("controller/managers/brokers.py", "what a broker may become, and by which request"),
        Place("controller/http/metadata_fetch.py", "whose request it is"),
        Place("broker_agent/lease.py", "0.8 sessions from the sending of what was answered"),
        Place("controller/leader/fencing.py", "who is silent is fenced, one at a time"),
    ),
    (
        Place(_INVARIANTS, "I8: at most one process may serve"),
        Place("tests/scenarios/two_processes_one_id.txt", "the story of a second process"),
        Place("tests/unit/broker_agent/test_lease.py", "the lease"),
        Place("tests/process/test_bad_brokers.py", "real processes with one id"),
    ),
    "brokers that are killed, paused, cut off and started twice; controllers that stand still",
)

COMPLETE_VIEWS = Promise(
    4,
    "Views without gaps that never go back",
    "What a broker has applied never goes back, has no gap and no other order than the log, "
    "across reconnects, new leaders, restarts and snapshots. It serves only once it has applied "
    "its own registration and what the controller had when they met.",
    (
        Place("broker_agent/view.py", "a batch that does not continue our chain is not applied"),
        Place("broker_agent/catching_up.py", "whoever differs stops serving and begins anew"),
        Place("controller/http/fetch_content.py", "what a fetch is given"),
    ),
    (
        Place(_INVARIANTS, "I4, I6: brokers' states and offsets, after every event"),
        Place("tests/reference/state.py", "a second state machine, told at twenty offsets"),
        Place("tests/unit/broker_agent/test_view.py", "gaps, other chains, other states"),
        Place("tests/unit/broker_agent/test_starting_over.py", "the way back"),
    ),
    "links that break, logs that are cut and jumped over, controllers that change meanwhile",
)

ONCE = Promise(
    5,
    "A request is executed once",
    "A change that is asked for again with its request id is executed once and answered alike, by "
    "any leader, after any restart. When the id is too old to be remembered it is refused, never "
    "executed again. The same id with another request is refused.",
    (
        Place("controller/leader/idempotency.py", "what was answered is a fact in the log"),
        Place("metadata/image/outcomes.py", "what is kept, and the floor below it"),
    ),
    (
        Place(_INVARIANTS, "I9: at most once; exactly once if acknowledged"),
        Place("tests/kills/judge.py", "each request once, at the offset that was told"),
        Place("tests/unit/controller/leader/test_changes.py", "retries, joined and remembered"),
        Place("tests/unit/image/test_outcomes.py", "what is forgotten, and in which order"),
    ),
    "answers that are lost, clients that retry at another controller, leaders that die between "
    "proposal and answer",
    ("seeds", "kills"),
)

DAMAGE = Promise(
    6,
    "Damage is found, contained and repaired",
    "A changed, lost or misplaced byte of journal, ledger, checkpoint or manifest is never taken "
    "for what was written. A node whose acknowledged data is damaged neither votes nor leads nor "
    "cuts it away; it fetches what it lacks from its peers and says so. Controllers compare "
    "their states, and the minority stops serving.",
    (
        Place("quorum/journal/opening.py", "a torn tail, or damage"),
        Place("quorum/guard/repair.py", "how a damaged node gets its voice back"),
        Place("quorum/guard/memory.py", "what peers remember of a folder that was put back"),
        Place("ledger/verify.py", "the first bad place, by name"),
        Place(
            "controller/storage/scrubbing.py", "what lies at rest is read through, about once a day"
        ),
        Place("controller/storage/mending.py", "a damaged segment comes anew from a peer"),
        Place("snapshots/checkpoint.py", "a checkpoint is believed whole or not"),
        Place("controller/replica/digests.py", "states and chains compared on heartbeats"),
    ),
    (
        Place("model/damage.cfg", "the model with damaged journals"),
        Place("tests/flips/__main__.py", "every bit of small files flipped, and a million drawn"),
        Place("tests/process/test_damaged_files.py", "real processes on damaged folders"),
        Place("tests/unit/quorum/guard/test_repair.py", "the way back of a voter"),
        Place("tests/unit/quorum/guard/test_memory.py", "folders of yesterday"),
        Place("tests/unit/controller/replica/test_digests.py", "states that differ"),
        Place("tests/unit/ledger/test_verify.py", "bad places, named"),
    ),
    "bits that rot at rest and while running, misdirected writes, lost, cut and swapped files, "
    "folders of another node and of yesterday",
    ("seeds", "flips", "model"),
)

EMPTY_DISK = Promise(
    7,
    "An empty disk does not vote",
    "A voter is a node id and a directory id. The same node id on another disk copies everything "
    "and observes: it can't take back a vote or an acknowledgement that the old disk gave.",
    (
        Place(
            "quorum/membership/formation.py", "who the voters are, written down before anyone votes"
        ),
        Place("quorum/membership/greeting.py", "which disk speaks"),
        Place("quorum/guard/replicas.py", "whose copies count"),
    ),
    (
        Place(_QUORUM_INVARIANTS, "I1, I3 with disks that were emptied"),
        Place("model/wipe.cfg", "the model with wiped disks"),
        Place("tests/unit/quorum/membership/test_formation.py", "formations, and who is let in"),
        Place(
            "tests/process/test_three_quorum_processes.py", "real processes, a real empty folder"
        ),
    ),
    "folders that are wiped while the node is down",
    ("seeds", "model"),
)

BOUNDED = Promise(
    8,
    "What comes from outside has a cap",
    "Requests, headers, bodies, frames, batches, queues and what is remembered of requests are "
    "bounded, and the bound is judged before memory is taken.",
    (
        Place("runtime/http_server.py", "requests"),
        Place("runtime/link_frames.py", "frames between controllers"),
        Place("metadata/image/outcomes.py", "remembered answers"),
        Place("controller/leader/proposer.py", "what waits for its turn, and what is on its way"),
    ),
    (
        Place("tests/process/test_bad_requests.py", "what real clients may try"),
        Place("tests/unit/runtime/test_http_server.py", "sizes and times"),
        Place("tests/unit/runtime/test_link_frames.py", "frames that claim too much"),
    ),
    "bodies and frames that are too large, too slow or that lie about their length",
    (),
)

RECOVERS = Promise(
    9,
    "A lost leader costs less than a second",
    "When the leader is killed and the others have caught up, the next one commits within a "
    "second, the 99th of 100 times, on a machine that is not starved. When faults end and a "
    "majority runs, there is a leader soon, all catch up, and the cluster comes to rest. A node "
    "that was cut off can't topple a sound leader.",
    (
        Place("quorum/guard/elections.py", "pre-vote; who is dead and who is only slow"),
        Place("quorum/guard/transfer.py", "a leader that can't go on hands over"),
        Place("controller/leader/activation.py", "what a new leader does first"),
    ),
    (
        Place("tests/kills/killing.py", "from the kill to the next commit that a client sees"),
        Place("tests/simulation/seeds.py", "I12: after the faults the cluster must come to rest"),
        Place("tests/unit/quorum/guard/test_elections.py", "votes and pre-votes"),
        Place("benchmarks/failover.py", "the figures of `make bench`"),
    ),
    "kills and pauses of leaders, two in a row, stuck disks, partitions of every shape",
    ("kills", "seeds"),
)

DEGRADED = Promise(
    10,
    "What can't be done is said",
    "Without a quorum, with a full or failing disk, with damage, each question has its answer: "
    "what goes on, what is refused, with which error and what to do. A failed sync is never "
    "repeated: the node stops.",
    (
        Place("controller/http/degraded.py", "each mode, each question, its answer"),
        Place("docs/degraded.md", "the same as a table to read"),
        Place("metadata/errors.py", "every error, whose fault it is and what to do"),
        Place("controller/http/status.py", "the sentence that says what holds a node back"),
        Place("quorum/node.py", "a disk that failed ends the node"),
        Place("docs/runbook.md", "what is seen, what it means, what to do"),
    ),
    (
        Place("tests/degraded/test_table.py", "every cell of the table, on real cores"),
        Place("tests/process/test_full_disks.py", "real full disks"),
        Place("tests/unit/controller/leader/test_no_room.py", "no room, on one and on all"),
        Place("tests/process/test_bad_starts.py", "what a start refuses"),
        Place("tests/docs/test_current.py", "the runbook quotes what is really said"),
    ),
    "full and read-only disks, EIO of writes, syncs and renames, no majority",
    ("seeds", "crash points"),
)

NOT_THEIR_FAULT = Promise(
    11,
    "No broker is fenced for a controller's slowness",
    "Sessions stand still while the controller does: a controller that was slow, paused or "
    "electing gives every broker the time to reach it before anyone is fenced.",
    (
        Place("controller/leader/heartbeats.py", "sessions run on the time in which we were awake"),
        Place("runtime/stalls.py", "how a stall is noticed"),
        Place("controller/leader/doubt.py", "whether we still lead, after we stood still"),
    ),
    (
        Place("tests/kills/judge.py", "brokers fenced while leaders were killed: none"),
        Place("tests/degraded/test_never_fenced.py", "each way in which a controller is slow"),
        Place("tests/unit/controller/leader/test_heartbeats.py", "sessions and stalls"),
        Place("tests/scenarios/paused_controller.txt", "the story of a paused controller"),
        Place("tests/process/test_failover.py", "brokers watched through kill and pause"),
    ),
    "controllers that are killed, paused and slow, under load",
    ("kills", "seeds"),
)

REPLAYABLE = Promise(
    12,
    "History replays to the same state, and can't be changed unseen",
    "The log alone gives the state at every offset, bit for bit, on every controller, on every "
    "supported Python. Each batch says who, when and why and holds the hash of the one before: "
    "what is edited, dropped, swapped or spliced is found by anyone who kept an earlier head.",
    (
        Place("metadata/image/delta.py", "replay; it reads no clock and no dice"),
        Place("ledger/chain.py", "the chain"),
        Place("metadata/state_hash.py", "how two nodes know that they agree"),
        Place("audit/questions/verification.py", "checkpoints held against replay"),
    ),
    (
        Place("tests/reference/folding.py", "a second state machine, from the pages alone"),
        Place("verifier/logberg_verify.py", "a verifier of one file that shares no code"),
        Place("tests/verifier/test_tampering.py", "ways to tamper, each found"),
        Place("tests/unit/ledger/test_golden.py", "logs of released formats"),
        Place("tests/properties/test_images.py", "image → records → image, in any split"),
    ),
    "histories that are edited, cut, swapped and sealed anew; other Pythons, other hash seeds",
    ("seeds", "flips", "replays"),
)

RELEASES_MEET = Promise(
    15,
    "Releases meet",
    "Controllers, agents and commands of this release and of the one before work side by side, in "
    "any order of upgrading. Nothing that the older release can't read is written before an "
    "operator raises a feature level, and a node that meets what it does not know says which "
    "release is needed and stops.",
    (
        Place("metadata/features.py", "the levels, and what this build supports"),
        Place("metadata/record_levels.py", "which level each record and field needs"),
        Place("controller/managers/level_gate.py", "nothing is written below its level"),
        Place(
            "controller/leader/registering.py", "who says what it supports, and the upgrade batch"
        ),
        Place("quorum/wire/formats.py", "what two controllers speak on a link"),
        Place("metadata/messages/versions.py", "what clients and controllers speak"),
    ),
    (
        Place(
            "tests/process/test_mixed_versions.py", "the old release's own processes beside ours"
        ),
        Place("tests/releases/README.md", "the old releases"),
        Place("tests/simulation/test_mixed_formats.py", "links of nodes that speak other formats"),
        Place(
            "tests/unit/controller/managers/test_features.py",
            "levels that are raised, lowered, refused",
        ),
        Place("tests/unit/ledger/test_golden.py", "logs of released formats"),
    ),
    "upgrades node by node under load, and back; restarts that change what a node speaks",
    ("seeds",),
)

REPEATABLE = Promise(
    16,
    "What was found can be found again",
    "A seed is a run: the same everywhere, for ever. A failure prints the line that runs it again. "
    "This page is made of what runs wrote down, and names the commit of each.",
    (
        Place("runtime/simulated/world.py", "one clock, one queue, dice by name"),
        Place("tests/evidence/pieces.py", "how figures are kept"),
    ),
    (
        Place("tests/simulation/replays.py", "the same digest on other Pythons and hash seeds"),
        Place("tests/simulation/test_seeds.py", "in `make test`, for two seeds"),
        Place("tests/mutants/table.py", "broken builds: each must be caught, or all this is vain"),
    ),
    "other hash seeds, other Pythons, other processes",
    ("replays",),
)

PROMISES = (
    DURABLE,
    ONE_ORDER,
    FENCED,
    COMPLETE_VIEWS,
    ONCE,
    DAMAGE,
    EMPTY_DISK,
    BOUNDED,
    RECOVERS,
    DEGRADED,
    NOT_THEIR_FAULT,
    REPLAYABLE,
    RELEASES_MEET,
    REPEATABLE,
)

NOT_MADE = {
    13: "changes of voters",
    14: "authorisation",
}
"""Numbers that are kept for what is not promised yet."""
