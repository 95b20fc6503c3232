-------------------------------- MODULE Voters --------------------------------
(* Who votes changes while the cluster runs: one voter at a time, through the log (ADR 0081).

   Guard.tla is about what may leave a node and what a crash leaves. Here all of that holds: what a
   node promised is durable, so a crash takes a role and a commit index, and whoever goes on as a leader
   can do all that a crashed one can, and more. The question here is another: which
   voters are counted, by whom, and when.

   Rule: as in Guard, this file allows more than the code does. No message is lost or used up;
   pre-vote, "a leader was heard" and timeouts are left out. So a removed voter stands whenever it
   likes, and everybody gives everybody a vote: what keeps the cluster safe from it is
   the log, and whom a candidate counts. A frame of a later term is taken together with its term; to enter a
   term and do nothing there only forbids.

   A node here is a directory: an empty folder under a known node id is another node, which was there
   from the beginning and has an empty log. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Nodes,        \* every directory that ever was
    Formed,       \* the voters as they were formed
    Nobody,
    MaxTerm,      \* terms 1..MaxTerm
    MaxLog,       \* entries 1..MaxLog
    MaxChanges,   \* so many of them in one log may change the voters
    AtOnce,       \* TRUE: an election is one step, for more nodes; FALSE: each vote is one
    Faults,       \* "wipe"
    Drop          \* the rules that a mutant goes without; {} is the protocol

VARIABLES
    gone,         \* its folder was wiped: this directory never comes back
    role,         \* "follower", "candidate" or "leader"
    term, vote,
    log,          \* entries: the term, and the voters from there on ({}: as before)
    commit,       \* of a leader; who does not lead need not know one
    votes,        \* on the wire: <<term, from, to>>
    acks,         \* [term][from]: the highest index that was acknowledged
    book,         \* [term]: the log of that term's leader; its appends hold pieces of this
    elected,      \* [term]: who became leader
    truth         \* the longest sequence of entries that any leader committed

vars == <<gone, role, term, vote, log, commit, votes, acks, book, elected, truth>>

Terms == 1..MaxTerm
Keeps(rule) == rule \notin Drop
Min(a, b) == IF a < b THEN a ELSE b
Max(a, b) == IF a > b THEN a ELSE b
Upto(s, k) == SubSeq(s, 1, k)
IsPrefix(s, t) == Len(s) <= Len(t) /\ \A k \in 1..Len(s) : s[k] = t[k]
LastTerm(s) == IF s = <<>> THEN 0 ELSE s[Len(s)].term
Common(s, t) ==  \* how many entries two logs share
    CHOOSE k \in 0..Min(Len(s), Len(t)) :
        /\ \A n \in 1..k : s[n] = t[n]
        /\ k < Min(Len(s), Len(t)) => s[k + 1] # t[k + 1]
IsMajority(some, voters) == 2 * Cardinality(some) > Cardinality(voters)
Apart(one, other) == Cardinality((one \ other) \union (other \ one))
Changes(s) == {k \in 1..Len(s) : s[k].voters # {}}

(* The history of voters: the newest voters that a log names. They follow from the log and
   from nothing else, so what is cut is undone. *)
VotersOf(s) ==
    IF Changes(s) = {} THEN Formed
    ELSE s[CHOOSE k \in Changes(s) : \A other \in Changes(s) : other <= k].voters

VotersNow(i) ==
    VotersOf(IF Keeps("in force when appended") THEN log[i] ELSE Upto(log[i], commit[i]))

(* quorum/guard/elections.py on_vote_request: the candidate's log is as good as ours. *)
AsGood(theirs, mine) ==
    \/ LastTerm(theirs) > LastTerm(mine)
    \/ LastTerm(theirs) = LastTerm(mine) /\ Len(theirs) >= Len(mine)

(* elections.py on_vote, on_prevote: whose votes a candidate counts. *)
VotesCountedBy(i) == IF Keeps("votes of voters") THEN VotersNow(i) ELSE Nodes

(* replication.py on_ack: whose acknowledgements a leader counts. *)
AcksCountedBy(i) == IF Keeps("acknowledgements of voters") THEN VotersNow(i) ELSE Nodes

Init ==
    /\ gone = [i \in Nodes |-> FALSE]
    /\ role = [i \in Nodes |-> "follower"]
    /\ term = [i \in Nodes |-> 0]
    /\ vote = [i \in Nodes |-> Nobody]
    /\ log = [i \in Nodes |-> <<>>]
    /\ commit = [i \in Nodes |-> 0]
    /\ votes = {}
    /\ acks = [t \in Terms |-> [i \in Nodes |-> 0]]
    /\ book = [t \in Terms |-> <<>>]
    /\ elected = [t \in Terms |-> {}]
    /\ truth = <<>>

--------------------------------------------------------------------------------
(* Elections *)

Lead(i, t) ==  \* the core begins its term with a no-op
    /\ role' = [role EXCEPT ![i] = "leader"]
    /\ log' = [log EXCEPT ![i] = Append(@, [term |-> t, voters |-> {}])]
    /\ commit' = [commit EXCEPT ![i] = 0]

(* elections.py _stand: who finds itself in its own newest voters, in any later term. *)
Stand(i, t) ==
    /\ ~AtOnce
    /\ ~gone[i]
    /\ i \in VotersNow(i)
    /\ t > term[i]
    /\ term' = [term EXCEPT ![i] = t]
    /\ vote' = [vote EXCEPT ![i] = i]
    /\ role' = [role EXCEPT ![i] = "candidate"]
    /\ commit' = [commit EXCEPT ![i] = 0]
    /\ UNCHANGED <<gone, log>>

(* Everybody may vote for everybody: who was added may not know it yet, nor may the others. *)
GrantVote(i, j) ==
    /\ ~AtOnce
    /\ ~gone[i]
    /\ i # j
    /\ role[j] = "candidate"
    /\ \/ term[j] > term[i]
       \/ term[j] = term[i] /\ vote[i] = Nobody
    /\ AsGood(log[j], log[i])
    /\ term' = [term EXCEPT ![i] = term[j]]
    /\ vote' = [vote EXCEPT ![i] = j]
    /\ role' = [role EXCEPT ![i] = "follower"]
    /\ commit' = [commit EXCEPT ![i] = 0]
    /\ UNCHANGED <<gone, log>>

Win(i) ==
    LET voters == {j \in VotesCountedBy(i) : <<term[i], j, i>> \in votes}
    IN  /\ role[i] = "candidate"
        /\ ~gone[i]
        /\ Len(log[i]) < MaxLog
        /\ IsMajority(voters, VotersNow(i))
        /\ Lead(i, term[i])
        /\ UNCHANGED <<gone, term, vote>>

(* The three in one step, with no more voters than needed: more would only bind more. *)
Elect(i, t, some) ==
    /\ AtOnce
    /\ ~gone[i]
    /\ i \in VotersNow(i)
    /\ i \in some
    /\ some \subseteq VotesCountedBy(i)
    /\ Cardinality(some) = Cardinality(VotersNow(i)) \div 2 + 1
    /\ \A j \in some : ~gone[j] /\ term[j] < t /\ AsGood(log[i], log[j])
    /\ Len(log[i]) < MaxLog
    /\ term' = [j \in Nodes |-> IF j \in some THEN t ELSE term[j]]
    /\ role' = [j \in Nodes |->
           IF j = i THEN "leader" ELSE IF j \in some THEN "follower" ELSE role[j]]
    /\ commit' = [j \in Nodes |-> IF j \in some THEN 0 ELSE commit[j]]
    /\ log' = [log EXCEPT ![i] = Append(@, [term |-> t, voters |-> {}])]
    /\ UNCHANGED <<gone, vote>>

--------------------------------------------------------------------------------
(* The log *)

Propose(i) ==
    /\ role[i] = "leader"
    /\ ~gone[i]
    /\ Len(log[i]) < MaxLog
    /\ log' = [log EXCEPT ![i] = Append(@, [term |-> term[i], voters |-> {}])]
    /\ UNCHANGED <<gone, role, term, vote, commit>>

(* What a leader asks before it appends other voters. *)
Change(i, new) ==
    LET now == VotersNow(i)
        holders == {i} \union {j \in Nodes : acks[term[i]][j] >= commit[i]}
    IN  /\ role[i] = "leader"
        /\ ~gone[i]
        /\ Len(log[i]) < MaxLog
        /\ Cardinality(Changes(log[i])) < MaxChanges
        /\ new # now
        /\ Keeps("one voter") => Apart(new, now) = 1
        /\ Keeps("a leader stays") => i \in new
        /\ Keeps("one change at a time") => \A k \in Changes(log[i]) : k <= commit[i]
        /\ Keeps("an entry of its own first") => commit[i] > 0
        /\ Keeps("catch up first") => new \ now \subseteq holders
        \* With a voter added that has caught up a majority holds it anyway.
        /\ Keeps("a majority stays") /\ new \subseteq now => IsMajority(holders \intersect new, new)
        /\ log' = [log EXCEPT ![i] = Append(@, [term |-> term[i], voters |-> new])]
        /\ UNCHANGED <<gone, role, term, vote, commit>>

(* quorum/guard/following.py on_append, as in Guard: cut on a conflict only. Observers and removed
   voters take appends, too. *)
TakeAppend(i, t, last) ==
    LET theirs == Upto(book[t], last)
        merged == IF Common(log[i], theirs) = last THEN log[i] ELSE theirs
    IN  /\ ~gone[i]
        /\ t >= term[i]
        /\ book[t] # <<>>
        /\ i \notin elected[t]
        /\ merged # log[i] \/ (last = 0 /\ t > term[i])
        /\ log' = [log EXCEPT ![i] = merged]
        /\ term' = [term EXCEPT ![i] = t]
        /\ vote' = [vote EXCEPT ![i] = IF t > term[i] THEN Nobody ELSE @]
        /\ role' = [role EXCEPT ![i] = "follower"]
        /\ commit' = [commit EXCEPT ![i] = 0]
        /\ UNCHANGED gone

(* The core's commit rule, over the newest voters of the leader's log. The core counts itself. *)
Commit(i, k) ==
    /\ role[i] = "leader"
    /\ ~gone[i]
    /\ k > commit[i]
    /\ log[i][k].term = term[i]
    /\ IsMajority({i} \union {j \in AcksCountedBy(i) : acks[term[i]][j] >= k}, VotersNow(i))
    /\ commit' = [commit EXCEPT ![i] = k]
    /\ UNCHANGED <<gone, role, term, vote, log>>

(* A folder is lost, one: who is gone acts no more, and so does who is only slow. With "directories" what
   comes back is another node; without, an empty one that bears the name of the voter that it was. *)
Wipe(i) ==
    /\ "wipe" \in Faults
    /\ \A j \in Nodes : ~gone[j]
    /\ role' = [role EXCEPT ![i] = "follower"]
    /\ commit' = [commit EXCEPT ![i] = 0]
    /\ IF Keeps("directories")
       THEN /\ gone' = [gone EXCEPT ![i] = TRUE]
            /\ UNCHANGED <<term, vote, log>>
       ELSE /\ log[i] # <<>>
            /\ log' = [log EXCEPT ![i] = <<>>]
            /\ term' = [term EXCEPT ![i] = 0]
            /\ vote' = [vote EXCEPT ![i] = Nobody]
            /\ UNCHANGED gone

--------------------------------------------------------------------------------
(* What every step ends with: see Guard. *)

IsOver(t) == \A i \in Nodes : gone'[i] \/ term'[i] > t

Settle ==
    LET over == {t \in Terms : IsOver(t)}
        leads == [t \in Terms |-> {i \in Nodes : role'[i] = "leader" /\ term'[i] = t}]
        led == {t \in Terms : leads[t] # {}}
        TheLeader(t) == CHOOSE i \in leads[t] : TRUE
        up == {Upto(log[i], commit[i])' : i \in {n \in Nodes : role'[n] = "leader"}}
    IN  /\ elected' = [t \in Terms |-> IF t \in over THEN {} ELSE elected[t] \union leads[t]]
        /\ book' = [t \in Terms |-> IF t \in led THEN log'[TheLeader(t)]
                                    ELSE IF t \in over THEN <<>> ELSE book[t]]
        /\ votes' = {v \in votes \union {<<term'[i], i, vote'[i]>> :
                                            i \in {n \in Nodes : vote'[n] \in Nodes}} :
                        role'[v[3]] = "candidate" /\ term'[v[3]] = v[1]}
        /\ acks' = [t \in Terms |->
               IF t \notin led
               THEN [i \in Nodes |-> 0]
               ELSE [i \in Nodes |->
                        IF term'[i] = t /\ role'[i] = "follower" /\ ~gone'[i]
                        THEN Max(acks[t][i], Common(log'[i], book'[t]))
                        ELSE acks[t][i]]]
        /\ truth' = CHOOSE s \in up \union {truth} :
               /\ IsPrefix(truth, s)
               /\ \A other \in up : IsPrefix(truth, other) => Len(other) <= Len(s)

Stands == \E i \in Nodes, t \in Terms : Stand(i, t) /\ Settle
GrantsVote == \E i, j \in Nodes : GrantVote(i, j) /\ Settle
Wins == \E i \in Nodes : Win(i) /\ Settle
IsElected ==
    \E i \in Nodes, t \in Terms : \E some \in SUBSET Nodes : Elect(i, t, some) /\ Settle
Proposes == \E i \in Nodes : Propose(i) /\ Settle
ChangesVoters == \E i \in Nodes : \E new \in SUBSET Nodes \ {{}} : Change(i, new) /\ Settle
TakesAppend ==
    \E i \in Nodes, t \in Terms : \E last \in 0..Len(book[t]) : TakeAppend(i, t, last) /\ Settle
Commits == \E i \in Nodes : \E k \in 1..Len(log[i]) : Commit(i, k) /\ Settle
IsWiped == \E i \in Nodes : Wipe(i) /\ Settle

Next ==
    \/ Stands \/ GrantsVote \/ Wins \/ IsElected
    \/ Proposes \/ ChangesVoters \/ TakesAppend \/ Commits
    \/ IsWiped

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------
(* What must hold in every state *)

TypeOK ==
    /\ \A i \in Nodes :
        /\ role[i] \in {"follower", "candidate", "leader"}
        /\ term[i] \in 0..MaxTerm
        /\ vote[i] \in Nodes \union {Nobody}
        /\ commit[i] \in 0..Len(log[i])
        /\ \A k \in 1..Len(log[i]) :
            log[i][k].term \in Terms /\ log[i][k].voters \subseteq Nodes
    /\ \A t \in Terms, i \in Nodes : acks[t][i] \in 0..Len(book[t])

OneLeaderATerm == \A t \in Terms : Cardinality(elected[t]) <= 1

LogMatching ==
    LET logs == {log[i] : i \in Nodes} \union {book[t] : t \in Terms}
    IN  \A one, other \in logs :
            \A k \in 1..Min(Len(one), Len(other)) :
                one[k].term = other[k].term => Upto(one, k) = Upto(other, k)

(* Leaders commit the same entries, in the same order. *)
StateMachineSafety ==
    \A i \in Nodes : role[i] = "leader" => IsPrefix(Upto(log[i], commit[i]), truth)

IsNewestLeader(i) ==
    role[i] = "leader" /\ ~gone[i] /\ \A t \in Terms : t > term[i] => elected[t] = {}

(* The newest leader has in its log all that was ever committed. *)
LeaderCompleteness == \A i \in Nodes : IsNewestLeader(i) => IsPrefix(truth, log[i])

(* The majorities that can still elect somebody meet those that committed: whoever could win now, by
   the votes of its own voters, has all that was ever committed. *)
WhoCanWinHasAll ==
    \A i \in Nodes :
        (/\ ~gone[i]
         /\ i \in VotersNow(i)
         /\ IsMajority({j \in VotesCountedBy(i) : ~gone[j] /\ AsGood(log[i], log[j])}, VotersNow(i)))
            => IsPrefix(truth, log[i])

(* Two sets of voters that follow each other differ by one, so their majorities meet. *)
NeighboursDifferByOne ==
    \A i \in Nodes : \A k \in Changes(log[i]) :
        Apart(log[i][k].voters, VotersOf(Upto(log[i], k - 1))) = 1

(* A change never leaves what was committed on fewer of the voters than a majority. *)
MajorityHolds ==
    \A i \in Nodes :
        IsNewestLeader(i) /\ commit[i] > 0 =>
            IsMajority({j \in VotersNow(i) : IsPrefix(Upto(log[i], commit[i]), log[j])}, VotersNow(i))

================================================================================
