-------------------------------- MODULE Guard --------------------------------
(* The protocol of the quorum: what stands around PySyncObj, and the core's own rules as far as
   they meet it. A model checker walks through every interleaving within the bounds.

   Rule: where this file and the code differ, it is this file that allows more. So a message is
   never lost here and never used up (nobody has to take it, anybody may take it again, late, in
   any order: loss, delay, duplication, reordering and replay from old connections are all that);
   pre-vote, "a leader was heard" and every timeout are left out, hence a node may stand whenever
   it likes; a sync may end, and a node crash, between any two steps.

   What is sent is put on the wire as soon as it may be, for to be there early obliges to
   nothing, and taken off when nobody could take it any more: see Settle. An entry is the term it was proposed in: with its index that says which
   entry it is, while no term has two leaders. Entry 1 here is the first behind the core's own.
   Every action names the code that it stands for. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Nodes,        \* the voters as they were formed
    Nobody,       \* no vote
    Forgotten,    \* a vote that a damaged journal may have held
    MaxTerm,      \* terms 1..MaxTerm
    MaxLog,       \* entries 1..MaxLog
    Faults,       \* what happens: "power" (a crash, and what was not synced is gone), "kill" (a
                  \* crash that finds all on the disk), "wipe", "damage", and "jump" and "read"
    Drop          \* the rules that a mutant goes without; {} is the protocol

VARIABLES
    \* of each node, in memory
    standing,     \* "voter", "damaged" (a voter that may have forgotten) or "observer" (wiped)
    role,         \* "follower", "candidate" or "leader"
    term, vote,   \* the current term, and whom this node voted for in it
    log,          \* the entries
    commit,       \* the core's commit index
    jumping,      \* the manifest that is being installed; <<>> none
    \* of each node, on disk
    disk,         \* standing, term, vote and log: what a loss of power leaves
    manifest,     \* what the manifest says is in the ledger; <<>> none
    \* on the wire
    votes,        \* votes: <<term, from, to>>
    acks,         \* [term][from]: the highest index that was acknowledged
    book,         \* [term]: the log of that term's leader; its appends hold pieces of this
    borne,        \* [term]: the highest commit index that this leader sent
    \* what happened, for the invariants
    elected,      \* [term]: who became leader
    truth,        \* the longest sequence of entries that anybody handed up
    broken,       \* a node found something that can't happen, and stopped
    \* one read, and one round of questions of a damaged node
    read, answers

memory == <<standing, role, term, vote, log, commit, jumping>>
wire == <<votes, acks, book, borne>>
vars == <<memory, disk, manifest, wire, elected, truth, broken, read, answers>>

Terms == 1..MaxTerm
Keeps(rule) == rule \notin Drop
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Upto(s, k) == SubSeq(s, 1, k)
IsPrefix(s, t) == Len(s) <= Len(t) /\ \A k \in 1..Len(s) : s[k] = t[k]
LastTerm(s) == IF s = <<>> THEN 0 ELSE s[Len(s)]
Common(s, t) ==  \* how many entries two logs share
    CHOOSE k \in 0..Min(Len(s), Len(t)) :
        /\ \A n \in 1..k : s[n] = t[n]
        /\ k < Min(Len(s), Len(t)) => s[k + 1] # t[k + 1]
IsMajority(some) == 2 * Cardinality(some) > Cardinality(Nodes)
NoRead == [by |-> Nobody, term |-> 0, index |-> 0, needed |-> 0, voices |-> {}, done |-> FALSE]

(* quorum/inside.py may_vote, quorum/membership/formation.py votes: a voice counts if the directory is the
   one that the quorum was formed with, and its journal sound. *)
Counts(i) == \/ standing[i] = "voter"
             \/ standing[i] = "observer" /\ ~Keeps("identity")

(* quorum/journal durable_index: the frames up to that entry are synced. *)
Durable(i) == Common(log[i], disk[i].log)

(* quorum/guard/delivery.py: committed, and durable here. *)
HandedUp(i) == Upto(log[i], IF Keeps("own copy") THEN Min(commit[i], Durable(i)) ELSE commit[i])

InMemory(i) == [standing |-> standing[i], term |-> term[i], vote |-> vote[i], log |-> log[i]]

Init ==
    /\ standing = [i \in Nodes |-> "voter"]
    /\ role = [i \in Nodes |-> "follower"]
    /\ term = [i \in Nodes |-> 0]
    /\ vote = [i \in Nodes |-> Nobody]
    /\ log = [i \in Nodes |-> <<>>]
    /\ commit = [i \in Nodes |-> 0]
    /\ jumping = [i \in Nodes |-> <<>>]
    /\ disk = [i \in Nodes |-> [standing |-> "voter", term |-> 0, vote |-> Nobody, log |-> <<>>]]
    /\ manifest = [i \in Nodes |-> <<>>]
    /\ votes = {}
    /\ acks = [t \in Terms |-> [i \in Nodes |-> 0]]
    /\ book = [t \in Terms |-> <<>>]
    /\ borne = [t \in Terms |-> 0]
    /\ elected = [t \in Terms |-> {}]
    /\ truth = <<>>
    /\ broken = FALSE
    /\ read = NoRead
    /\ answers = {}

(* What a step wrote to the journal: on the disk at once, unless power may be lost (see Sync). *)
Written(i) ==
    disk' = IF "power" \in Faults THEN disk ELSE [disk EXCEPT ![i] = InMemory(i)']

--------------------------------------------------------------------------------
(* Terms and elections *)

(* quorum/peers/dispatch.py take: a higher term in any frame makes the core step down; core.raise_term.
   Also quorum/guard/transfer.py _step_down, which needs no frame. What a frame of a higher term
   does besides is another step here. A term that nobody is in and nobody led need not be entered:
   there is nothing to take there. Nor need it be forgotten by a crash: who forgets it is as one
   that has not heard of it yet. *)
RaiseTerm(i, t) ==
    /\ t > term[i]
    /\ \/ \E j \in Nodes : term[j] = t
       \/ book[t] # <<>>
    /\ term' = [term EXCEPT ![i] = t]
    /\ vote' = [vote EXCEPT ![i] = Nobody]
    /\ role' = [role EXCEPT ![i] = "follower"]
    /\ UNCHANGED <<standing, log, commit, jumping, manifest, broken, read, answers>>
    /\ disk' = [disk EXCEPT ![i] = InMemory(i)']

(* quorum/guard/elections.py _stand: after a pre-vote, or told by a leader that transfers. A
   leader that stands is one that stepped down before (the core's check-quorum). *)
Stand(i) ==
    /\ Counts(i)
    /\ term[i] < MaxTerm
    /\ term' = [term EXCEPT ![i] = @ + 1]
    /\ vote' = [vote EXCEPT ![i] = i]
    /\ role' = [role EXCEPT ![i] = "candidate"]
    /\ UNCHANGED <<standing, log, commit, jumping, manifest, broken, read, answers>>
    /\ Written(i)

(* quorum/guard/elections.py on_vote_request, then the core's request_vote. The request left
   when the candidate's own vote was durable, and says where its log ended, which stays so while
   it is a candidate. When it is none any more its request could only cost the voter a vote. *)
GrantVote(i, j) ==
    /\ Counts(i)
    /\ role[j] = "candidate"
    /\ term[j] = term[i]
    /\ Keeps("hold votes") => disk[j].term = term[j] /\ disk[j].vote = j
    /\ vote[i] = Nobody
    /\ \/ LastTerm(log[j]) > LastTerm(log[i])
       \/ LastTerm(log[j]) = LastTerm(log[i]) /\ Len(log[j]) >= Len(log[i])
       \/ ~Keeps("log check")
    /\ vote' = [vote EXCEPT ![i] = j]
    /\ UNCHANGED <<standing, role, term, log, commit, jumping, manifest, broken, read, answers>>
    /\ Written(i)

(* quorum/guard/elections.py on_vote: of the current term, of voters, one a voter. The core
   begins its term with a no-op. *)
Win(i) ==
    LET t == term[i]
        voters == {j \in Nodes : <<t, j, i>> \in votes}
    IN  /\ role[i] = "candidate"
        /\ Len(log[i]) < MaxLog
        /\ \/ IsMajority(voters)
           \/ ~Keeps("one vote a voter") /\ voters \ {i} # {}
        /\ role' = [role EXCEPT ![i] = "leader"]
        /\ log' = [log EXCEPT ![i] = Append(@, t)]
        /\ UNCHANGED <<standing, term, vote, commit, jumping, manifest, broken, read, answers>>
        /\ Written(i)

--------------------------------------------------------------------------------
(* The log *)

(* quorum/node.py _propose_waiting, core.append. The code waits for the last entry's sync. *)
Propose(i) ==
    /\ role[i] = "leader"
    /\ Len(log[i]) < MaxLog
    /\ log' = [log EXCEPT ![i] = Append(@, term[i])]
    /\ UNCHANGED <<standing, role, term, vote, commit, jumping, manifest, broken, read, answers>>
    /\ Written(i)

(* quorum/guard/appends.py judge and quorum/guard/following.py on_append. The frame holds the
   leader's entries up to `last` and a commit index; without entries it is a heartbeat. Where it
   begins makes no difference: a gap or a mismatch there leaves the log alone, and where it fits,
   the entries before are the same (LogMatching). The answer is put on the wire by Settle. *)
TakeAppend(i, last, said) ==
    LET theirs == book[term[i]]
        mine == log[i]
        at == Common(mine, Upto(theirs, last))  \* what we have already
        merged == IF at = last /\ Keeps("append normalisation")
                  THEN mine
                  ELSE Upto(theirs, last)
        matched == IF Keeps("commit what matched") THEN last ELSE Len(merged)
    IN  /\ theirs # <<>>
        /\ role[i] # "leader"
        /\ jumping[i] = <<>>
        /\ role' = [role EXCEPT ![i] = "follower"]
        /\ IF Len(mine) > at /\ last > at /\ at < commit[i]
           THEN broken' = TRUE /\ UNCHANGED <<log, commit>>
           ELSE /\ log' = [log EXCEPT ![i] = merged]
                /\ commit' = [commit EXCEPT ![i] =
                                 Min(Max(@, Min(said, matched)), Len(merged))]
                /\ UNCHANGED broken
        /\ UNCHANGED <<standing, term, vote, jumping, manifest, read, answers>>
        /\ Written(i)

(* quorum/guard/replication.py on_ack, _feed and borne_out, then the core's commit rule: counted
   in the current term, of entries of the current term, with our own copy durable. *)
AckedBy(i, j) ==
    IF Keeps("stamp")
    THEN acks[term[i]][j]
    ELSE LET all == {acks[t][j] : t \in 1..term[i]} IN CHOOSE a \in all : \A b \in all : b <= a

Commit(i, k) ==
    /\ role[i] = "leader"
    /\ k > commit[i]
    /\ log[i][k] = term[i]
    /\ Keeps("own copy") => k <= Durable(i)
    /\ IsMajority({i} \union {j \in Nodes : AckedBy(i, j) >= k})
    /\ commit' = [commit EXCEPT ![i] = k]
    /\ UNCHANGED <<standing, role, term, vote, log, jumping, manifest, broken, read, answers>>
    /\ Written(i)

--------------------------------------------------------------------------------
(* The disk *)

(* quorum/journal sync: all that was written is durable. That it comes in groups adds nothing: a
   frame that survives may as well be synced at once, one that is lost never. Where power is not
   lost, what is written counts as durable at once. *)
Sync(i) ==
    /\ disk[i] # InMemory(i)
    /\ "power" \in Faults
    /\ disk' = [disk EXCEPT ![i] = InMemory(i)]
    /\ UNCHANGED <<memory, manifest, broken, read, answers>>

(* quorum/journal/opening.py _Fit: entries begin where the manifest says; a jump is finished. *)
Fitted(entries, said) ==
    IF Len(entries) >= Len(said) /\ (said # <<>> => entries[Len(said)] = LastTerm(said))
    THEN entries
    ELSE said

Restart(i, left, said) ==
    LET entries == Fitted(left.log, said)
        later == LastTerm(entries) > left.term
        opened == [left EXCEPT !.log = entries,
                               !.term = IF later THEN LastTerm(entries) ELSE @,
                               !.vote = IF later THEN Nobody ELSE @]
    IN  /\ standing' = [standing EXCEPT ![i] = opened.standing]
        /\ role' = [role EXCEPT ![i] = "follower"]
        /\ term' = [term EXCEPT ![i] = opened.term]
        /\ vote' = [vote EXCEPT ![i] = opened.vote]
        /\ log' = [log EXCEPT ![i] = entries]
        /\ commit' = [commit EXCEPT ![i] = Len(said)]
        /\ jumping' = [jumping EXCEPT ![i] = <<>>]
        /\ disk' = [disk EXCEPT ![i] = opened]

(* Power is lost, or the process: what was not synced is gone. The commit index is written
   lazily, so it may be any lower one; none at all is the worst, for it only forbids. *)
Crash(i) ==
    /\ {"power", "kill"} \intersect Faults # {}
    /\ Restart(i, disk[i], manifest[i])
    /\ UNCHANGED <<manifest, broken, read>>
    /\ answers' = IF standing[i] = "damaged" THEN {} ELSE answers

(* quorum/membership/formation.py: an empty folder under a known node id is another directory; it learns
   the formation, is not in it, and observes. *)
Wipe(i) ==
    LET empty == [standing |-> "observer", term |-> 0, vote |-> Nobody, log |-> <<>>]
    IN  /\ "wipe" \in Faults
        /\ standing[i] = "voter"
        /\ Restart(i, empty, <<>>)
        /\ manifest' = [manifest EXCEPT ![i] = <<>>]
        /\ UNCHANGED <<broken, read, answers>>

--------------------------------------------------------------------------------
(* A damaged journal, and the way back (quorum/journal/opening.py, quorum/guard/repair.py) *)

(* The end of the journal is lost, though it was durable: entries, terms and votes. One voter at
   a time: what two of three lost, nobody can give back. *)
Damage(i, k, t) ==
    LET left == [standing |-> "damaged", term |-> t, vote |-> Forgotten,
                 log |-> Upto(disk[i].log, k)]
    IN  /\ "damage" \in Faults
        /\ \A j \in Nodes : standing[j] = "voter" /\ disk[j].standing = "voter"
        /\ LastTerm(left.log) <= t
        /\ Restart(i, left, <<>>)
        /\ answers' = {}
        /\ UNCHANGED <<manifest, broken, read>>

(* repair.on_tick: the round begins anew. *)
AskAgain(i) ==
    /\ standing[i] = "damaged"
    /\ answers # {}
    /\ answers' = {}
    /\ UNCHANGED <<memory, disk, manifest, broken, read>>

(* dispatch._answer_probe and repair.on_answer. *)
Hear(i, j) ==
    /\ standing[i] = "damaged"
    /\ j # i
    /\ \A a \in answers : a.from # j
    /\ answers' = answers \union {[from |-> j, term |-> term[j], last |-> Len(log[j])]}
    /\ UNCHANGED <<memory, disk, manifest, broken, read>>

(* repair.on_matched: every other voter answered, none knows a later term than the leader we
   follow, and what that leader held then is durable here. We vote in later terms only: that
   matters where a leader loses its no-op with the power. *)
Repair(i) ==
    /\ standing[i] = "damaged"
    /\ Keeps("ask every voter") => Cardinality(answers) = Cardinality(Nodes) - 1
    /\ \A a \in answers : a.term <= term[i]
    /\ \E a \in answers :
        /\ a.term = term[i]
        /\ term[i] > 0
        /\ a.from \in elected[term[i]]
        /\ Common(disk[i].log, book[term[i]]) >= a.last
        /\ Durable(i) >= a.last
    /\ standing' = [standing EXCEPT ![i] = "voter"]
    /\ vote' = [vote EXCEPT ![i] = Forgotten]
    /\ answers' = {}
    /\ UNCHANGED <<role, term, log, commit, jumping, manifest, broken, read>>
    /\ Written(i)

--------------------------------------------------------------------------------
(* The jump (quorum/guard/catch_up.py, quorum/journal/manifest.py). A leader cuts its journal at a place that it
   handed up, and offers it; all behind it is fetched from a peer before the installation begins.
   A manifest may be an old leader's, of a term that the follower has reached: so it is any piece
   of what was handed up until then. *)

Holds(i, said) ==
    \/ Len(said) <= commit[i]
    \/ Len(log[i]) >= Len(said) /\ log[i][Len(said)] = LastTerm(said)

(* jump.installed: the manifest is on its way to the disk; appends wait. *)
Jump(i, index) ==
    LET said == Upto(truth, index)
    IN  /\ "jump" \in Faults
        /\ role[i] # "leader"
        /\ jumping[i] = <<>>
        /\ Len(said) > Len(manifest[i])
        /\ LastTerm(said) <= term[i]
        /\ Keeps("jump over what is held") => ~Holds(i, said)
        /\ jumping' = [jumping EXCEPT ![i] = said]
        /\ UNCHANGED <<standing, role, term, vote, log, commit, disk, manifest, broken, read,
                       answers>>

(* manifest.ManifestStore: written whole, synced, renamed. This is the commit point. *)
JumpDurable(i) ==
    /\ jumping[i] # <<>>
    /\ manifest[i] # jumping[i]
    /\ manifest' = [manifest EXCEPT ![i] = jumping[i]]
    /\ UNCHANGED <<memory, disk, broken, read, answers>>

(* jump.finish: the core clears its log and begins at the manifest. *)
JumpDone(i) ==
    /\ jumping[i] # <<>>
    /\ role[i] = "follower"
    /\ manifest[i] = jumping[i]
    /\ log' = [log EXCEPT ![i] = jumping[i]]
    /\ commit' = [commit EXCEPT ![i] = Len(jumping[i])]
    /\ jumping' = [jumping EXCEPT ![i] = <<>>]
    /\ UNCHANGED <<standing, role, term, vote, manifest, broken, read, answers>>
    /\ Written(i)

--------------------------------------------------------------------------------
(* Reads (quorum/guard/reads.py): one at a time here. *)

(* node.read_index: a leader that has handed up an entry of its own term, for which
   handing_up.tell_leading waits. *)
AskRead(i) ==
    /\ "read" \in Faults
    /\ role[i] = "leader"
    /\ Keeps("no-op first") => LastTerm(HandedUp(i)) = term[i]
    /\ read' = [by |-> i, term |-> term[i], index |-> commit[i], needed |-> Len(truth),
                voices |-> IF ~Keeps("a round of its own") /\ read.by = i /\ read.term = term[i]
                           THEN read.voices
                           ELSE {i},
                done |-> FALSE]
    /\ UNCHANGED <<memory, disk, manifest, broken, answers>>

(* dispatch._answer_probe, reads.on_answer: the answer is sent at once, in the voter's term. *)
AnswerRead(j) ==
    /\ read.by # Nobody
    /\ ~read.done
    /\ j \notin read.voices
    /\ Counts(j)
    /\ term[j] = read.term \/ ~Keeps("stamp of reads")
    /\ read' = [read EXCEPT !.voices = @ \union {j}]
    /\ UNCHANGED <<memory, disk, manifest, broken, answers>>

EndRead(i) ==
    /\ read.by = i
    /\ ~read.done
    /\ role[i] = "leader"
    /\ term[i] = read.term
    /\ Keeps("confirm reads") => IsMajority(read.voices)
    /\ read' = [read EXCEPT !.done = TRUE]
    /\ UNCHANGED <<memory, disk, manifest, broken, answers>>

--------------------------------------------------------------------------------
(* What every step ends with: what may be sent is on the wire (quorum/guard/outbox.py: held until
   durable, dropped when the term has passed), what nobody could take any more is not, and what
   went up is noted. *)

VoteIsDurable(i) == disk'[i].term = term'[i] /\ disk'[i].vote = vote'[i]

(* following._answer: exactly what was matched, when it is durable. *)
Acknowledged(i, theirs) ==
    LET common == Common(log'[i], theirs)
        match == IF Keeps("answer what matched") \/ common = 0 THEN common ELSE Len(log'[i])
    IN  CASE role'[i] # "follower" \/ ~Counts(i)' -> 0
          [] ~Keeps("hold acks") -> match
          [] VoteIsDurable(i) -> Min(match, Durable(i)')
          [] OTHER -> 0

(* A term in which nobody is, and to which nobody falls back. *)
IsOver(t) ==
    /\ "damage" \notin Faults
    /\ \A i \in Nodes : term'[i] > t /\ disk'[i].term > t

Settle ==
    LET over == {t \in Terms : IsOver(t)}
        leads == [t \in Terms |-> {i \in Nodes : role'[i] = "leader" /\ term'[i] = t}]
        led == {t \in Terms : leads[t] # {}}
        TheLeader(t) == CHOOSE i \in leads[t] : TRUE
        voices == votes \union
            {<<term'[i], i, vote'[i]>> :
                i \in {n \in Nodes : /\ vote'[n] \in Nodes
                                     /\ Counts(n)'
                                     /\ Keeps("hold votes") => VoteIsDurable(n)}}
        up == {HandedUp(i)' : i \in Nodes}
    IN  /\ elected' = [t \in Terms |-> IF t \in over THEN {} ELSE elected[t] \union leads[t]]
        /\ book' = [t \in Terms |-> IF t \in led THEN log'[TheLeader(t)]
                                    ELSE IF t \in over THEN <<>> ELSE book[t]]
        /\ borne' = [t \in Terms |-> IF t \in led THEN commit'[TheLeader(t)]
                                     ELSE IF t \in over THEN 0 ELSE borne[t]]
        /\ votes' = IF "damage" \in Faults \/ ~Keeps("hold votes")
                    THEN voices
                    ELSE {v \in voices : role'[v[3]] = "candidate" /\ term'[v[3]] = v[1]}
        /\ acks' = [t \in Terms |->
               IF t \notin led /\ Keeps("stamp")
               THEN [i \in Nodes |-> 0]
               ELSE [i \in Nodes |->
                        IF term'[i] = t
                        THEN Max(acks[t][i], Acknowledged(i, book'[t]))
                        ELSE acks[t][i]]]
        /\ truth' = CHOOSE s \in up \union {truth} :
               /\ IsPrefix(truth, s)
               /\ \A other \in up : IsPrefix(truth, other) => Len(other) <= Len(s)

(* Every step, by a name that a trace shows. *)
RaisesTerm == \E i \in Nodes, t \in Terms : RaiseTerm(i, t) /\ Settle
Stands == \E i \in Nodes : Stand(i) /\ Settle
GrantsVote == \E i, j \in Nodes : GrantVote(i, j) /\ Settle
Wins == \E i \in Nodes : Win(i) /\ Settle
Proposes == \E i \in Nodes : Propose(i) /\ Settle
TakesAppend ==
    \E i \in {n \in Nodes : term[n] > 0} :
        \E last \in 0..Len(book[term[i]]), said \in 0..borne[term[i]] :
            /\ said = 0 \/ said > commit[i]
            /\ TakeAppend(i, last, said)
            /\ Settle
Commits == \E i \in Nodes : \E k \in 1..Len(log[i]) : Commit(i, k) /\ Settle
Syncs == \E i \in Nodes : Sync(i) /\ Settle
Crashes == \E i \in Nodes : Crash(i) /\ Settle
IsWiped == \E i \in Nodes : Wipe(i) /\ Settle
IsDamaged ==
    \E i \in Nodes : \E k \in 0..Len(disk[i].log), t \in 0..disk[i].term : Damage(i, k, t) /\ Settle
AsksAgain == \E i \in Nodes : AskAgain(i) /\ Settle
Hears == \E i, j \in Nodes : Hear(i, j) /\ Settle
IsRepaired == \E i \in Nodes : Repair(i) /\ Settle
BeginsJump == \E i \in Nodes : \E index \in 1..Len(truth) : Jump(i, index) /\ Settle
WritesManifest == \E i \in Nodes : JumpDurable(i) /\ Settle
EndsJump == \E i \in Nodes : JumpDone(i) /\ Settle
AsksRead == \E i \in Nodes : AskRead(i) /\ Settle
AnswersRead == \E i \in Nodes : AnswerRead(i) /\ Settle
EndsRead == \E i \in Nodes : EndRead(i) /\ Settle

Next ==
    \/ RaisesTerm \/ Stands \/ GrantsVote \/ Wins
    \/ Proposes \/ TakesAppend \/ Commits
    \/ Syncs \/ Crashes \/ IsWiped
    \/ IsDamaged \/ AsksAgain \/ Hears \/ IsRepaired
    \/ BeginsJump \/ WritesManifest \/ EndsJump
    \/ AsksRead \/ AnswersRead \/ EndsRead

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------
(* What must hold in every state *)

OneLeaderATerm == \A t \in Terms : Cardinality(elected[t]) <= 1

LogMatching ==
    LET logs == {log[i] : i \in Nodes} \union {book[t] : t \in Terms}
    IN  \A one, other \in logs :
            \A k \in 1..Min(Len(one), Len(other)) :
                one[k] = other[k] => Upto(one, k) = Upto(other, k)

(* The newest leader has in its log all that was ever handed up. *)
LeaderCompleteness ==
    \A i \in Nodes :
        (role[i] = "leader" /\ \A t \in Terms : t > term[i] => elected[t] = {})
            => IsPrefix(truth, log[i])

(* All hand up the same entries, in the same order. *)
StateMachineSafety == \A i \in Nodes : IsPrefix(HandedUp(i), truth)

(* Whichever majority of the voters survives: one of its disks holds all that was ever handed
   up. Without wiped and damaged disks this says that a majority holds it. *)
NothingAcknowledgedIsLost ==
    \A some \in SUBSET {i \in Nodes : disk[i].standing = "voter"} :
        IsMajority(some) => \E i \in some : IsPrefix(truth, Fitted(disk[i].log, manifest[i]))

(* A leader commits no more than its own disk holds. *)
OwnCopyFirst == \A i \in Nodes : role[i] = "leader" => commit[i] <= Durable(i)

(* A read shows all that anybody had been told before it was asked. *)
NoStaleRead == read.done => read.index >= read.needed

(* A wiped directory neither votes nor leads, and nobody counts it. *)
WipedNeverCounts ==
    \A i \in Nodes : standing[i] = "observer" => vote[i] \notin Nodes /\ role[i] = "follower"

(* No node finds a leader that contradicts what it committed. *)
NoBrokenPromise == ~broken

TypeOK ==
    /\ standing \in [Nodes -> {"voter", "damaged", "observer"}]
    /\ role \in [Nodes -> {"follower", "candidate", "leader"}]
    /\ term \in [Nodes -> 0..MaxTerm]
    /\ vote \in [Nodes -> Nodes \union {Nobody, Forgotten}]
    /\ \A i \in Nodes : Len(log[i]) <= MaxLog /\ commit[i] <= Len(log[i])
    /\ \A t \in Terms : borne[t] <= Len(book[t])
==============================================================================
