"""What Logberg does not promise, in the words of docs/safety.md, where it stands first.

Rule: a limit that somebody could meet is named before anything is promised. What is built later
leaves this list in the change that builds it.
"""

from typing import NamedTuple


class Limit(NamedTuple):
    """Something that is not promised."""

    title: str
    says: str


class Limits(NamedTuple):
    """Some of a kind."""

    title: str
    limits: tuple[Limit, ...]


OUTSIDE = Limits(
    "Outside of the model",
    (
        Limit(
            "Voters that lie.",
            "They trust each other's word. A voter (a controller's certificate and the folder that "
            "votes) that sends what is not true can lose what was acknowledged, or stop others: "
            "Raft is no protection against that. To use up the epochs would take it more than "
            "half an hour without a leader, see [the runbook](runbook.md#forged-epochs). A "
            "certificate alone, with any other folder, moves nothing.",
        ),
        Limit(
            "A majority of folders lost, stolen or put back at once.",
            "What is acknowledged lies on a majority of the voters' disks. If that majority is "
            "gone, so may be what it held.",
        ),
        Limit(
            "A folder put back a moment after it was copied.",
            "The other voters remember how far a folder was, and one that is older has no voice. "
            "They don't remember the last eighth of a second (a second, if they were restarted "
            "too), and can't speak while none of them can be reached: see "
            "[the runbook](runbook.md#folder-put-back).",
        ),
        Limit(
            "The file `accept-loss`.",
            "An operator who puts it there tells the controllers to go on with what is left, and "
            "gives up what is not. Who starts first decides what that is: the runbook has the "
            "order.",
        ),
        Limit(
            "Disks that lie.",
            "A disk that says that data is durable while it is not is found out by damage later, "
            "or, if a majority of disks do it and lose power together, not at all.",
        ),
        Limit(
            "The very end of a journal.",
            "Bytes there that were durable and went bad look like what a crash leaves, if the "
            "witness beside them is lost as well: nothing on the disk says that they were durable.",
        ),
        Limit(
            "Memory.",
            "A bit that flips in RAM before a batch is sealed is sealed with it. States are "
            "compared between controllers all the time, which finds many such flips, not all. "
            "Use ECC, and no swap.",
        ),
        Limit(
            "Root on a host, and whoever holds its keys.",
            "They can read everything, and write a history that fits together. "
            "It differs from the heads that others wrote down, and only they can tell.",
        ),
        Limit(
            "Clocks.",
            "Timestamps in the log are the leader's clock and never fall; they are no proof of "
            "when something happened, and they put nothing in order between two clusters. "
            "Nothing that must be right rests on wall clocks. A broker's lease rests on rates: "
            "it holds unless the broker's monotonic clock runs more than a fifth slower than "
            "the controller's.",
        ),
    ),
)

NOT_YET = Limits(
    "Not there yet",
    (
        Limit(
            "Voters can't be changed by a command.",
            "A voter whose folder is gone can't be replaced: its node observes, and the cluster "
            "bears one failure less. A majority of folders that is gone is the end of writing.",
        ),
        Limit(
            "Nothing is authorised.",
            "Who is let in may administer, and without `require_authentication` anybody is let in "
            "who reaches the listener. Access rules replay, and nobody asks them.",
        ),
        Limit(
            "Heads are not signed.",
            "Whoever can write a controller's folder can replace the last batches of that copy. "
            "It shows against the other controllers, the brokers, and a head that was kept.",
        ),
        Limit(
            "Personal data is in the clear.",
            "Names, addresses and reasons stand in the log for good, and no key that could be "
            "thrown away seals them.",
        ),
        Limit(
            "The way back from an upgrade.",
            "One controller at a time may go back to release 0.1 until the log has feature levels. "
            "A whole cluster that goes back, and one that goes back behind the levels, is not "
            "tried.",
        ),
        Limit(
            "Size.",
            "What was run is one, three and five controllers with a handful of brokers. Thousands "
            "of brokers that come back at once are bounded by caps, and not measured here.",
        ),
    ),
)

BY_DESIGN = Limits(
    "Not so by design",
    (
        Limit(
            "No majority, no change.",
            "Without a majority nothing is written, and linearizable reads are refused.",
        ),
        Limit(
            "Who has just started leads late.",
            "A node applies its journal anew at a start. If it is elected meanwhile, it commits "
            "once it has come to the end, and a long journal takes a while.",
        ),
        Limit(
            "`consistency=stale` is stale.",
            "Such a read says its offset and its age. So do watches and brokers' images: they "
            "follow, without gaps, as fast as they can.",
        ),
        Limit(
            "No answer is no answer.",
            "A change whose answer was lost may have been made, or may still be. Ask again with "
            "the same request id and it is made once. Without an id of your own you can't ask.",
        ),
        Limit(
            "Outcomes are forgotten.",
            "They are kept for 24 hours of the log's time, a million of them, 256 MiB. An older "
            "request id is refused, and whether it was executed is not known any more.",
        ),
        Limit(
            "Logberg does not hold your data.",
            "It says who leads. That a broker which lost its lease stops serving is the broker's "
            "doing: by asking `may_serve()`, and by checking broker epochs where it writes.",
        ),
        Limit(
            "Damage may wait for a day.",
            "Each controller reads what lies at rest through about once a day, so slowly that it "
            "disturbs nobody. Until then damage that nobody met is not known. "
            "`logberg log verify` looks at once.",
        ),
        Limit(
            "What was tried is not all that can happen.",
            "The figures below say how much was tried and how. They are no proof that nothing "
            "else goes wrong; the model, whose space is bounded, is one only within its bounds.",
        ),
    ),
)

NOT_PROMISED = (OUTSIDE, NOT_YET, BY_DESIGN)
