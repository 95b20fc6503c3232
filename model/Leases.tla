-------------------------------- MODULE Leases --------------------------------
(* The leases of brokers: may a broker still believe that it serves when a controller has fenced it?

   A broker counts its lease on its own clock, from the sending of its last answered request. A
   leader counts the broker's silence on its own clock, from the arrival of the last contact. No
   clock is compared with another. The protocol relies on two things only: clocks run about equally
   fast, and a leader that was deposed notices it soon, unless it was stalled.

   There is one broker, since what is noted of one says nothing of another. Each leader is named by
   its epoch: it keeps nothing of what it knew when it led before. The standby is none of the
   leaders, for the same reason.

   Rule: where this file and the code differ, it is this file that allows more. A message is never
   lost here and never used up: nobody has to take it, anybody may take it again, late, in any
   order. A leader may be elected at any moment, and lose its leadership at any moment.

   Younger requests hide older ones. Whoever holds two requests of the broker forgets the older one:
   the answer to the younger one renews the lease for longer. For the same reason a request is taken at the
   moment of its sending, and a broker that may have sent one has sent one. An answer that says "fenced"
   is none here: it only makes the broker stop sooner. *)
EXTENDS Naturals, Sequences, FiniteSets

CONSTANTS
    Session,      \* a leader fences the broker after so much silence, on the leader's clock
    Lease,        \* the broker serves for so long after a sending, on its own clock
    BrokerRates,  \* how far the broker's clock may move in one tick of real time
    LeaderRates,  \* how far a leader's clock may move in it
    Overlap,      \* ticks for which a deposed leader that does not stall may not know it yet
    MaxEpoch,     \* epochs 1..MaxEpoch
    MaxBulks,     \* bulks that a standby forwards in one epoch; 0: there is no standby
    MaxLives,     \* processes of the standby, one after the other
    Drop          \* the rules that a mutant goes without; {} is the protocol

VARIABLES
    \* the broker
    sent,         \* age of the newest request that was answered "online"; Lease: too old
    \* the log
    newest,       \* the newest epoch that has begun
    since,        \* ticks since it began, as far as Overlap
    fenced,       \* what is committed of the broker
    \* the newest leader
    silent,       \* how long it has not heard the broker
    proposed,     \* what it decided and is not committed, in order: fenced or not
    \* the leader of each epoch
    mode,         \* "leads", "stalled" (a deposed one) or "no"
    online,       \* it may say "online"; of the newest leader see Online
    held,         \* age of the newest request that it noted; Lease: none
    \* on the wire
    answer,       \* age of the newest request with an answer "online"; Lease: none
    \* the standby
    known,        \* the epoch in which it forwards
    life,         \* which of its processes runs
    count,        \* bulks that this process forwarded in this epoch
    taken,        \* by bulk, the age of the newest request that waits in it; 0: not forwarded yet
    bulks,        \* on the wire, to leaders: life, epoch, number
    confirmed     \* on the wire, back: life, epoch, number, and whether they say "online"

log == <<newest, since, fenced>>
leaders == <<silent, proposed, mode, online, held>>
standby == <<known, life, count, taken, bulks, confirmed>>
vars == <<sent, answer, log, leaders, standby>>

Epochs == 1..MaxEpoch
Numbers == 0..MaxBulks
Keeps(rule) == rule \notin Drop
Min(a, b) == IF a < b THEN a ELSE b
NothingTaken == [n \in Numbers |-> Lease]
Unless(rule, some) == IF Keeps(rule) THEN {} ELSE some  \* a message that nobody takes any more

(* broker_agent/lease.py, broker_agent/agent.py may_serve: asked before each answer to a client. *)
Believes == sent < Lease

Init ==
    /\ sent = 0
    /\ newest = 1
    /\ since = Overlap
    /\ fenced = FALSE
    /\ silent = 0
    /\ proposed = <<>>
    /\ mode = [e \in Epochs |-> IF e = 1 THEN "leads" ELSE "no"]
    /\ online = [e \in Epochs |-> FALSE]
    /\ held = [e \in Epochs |-> Lease]
    /\ answer = Lease
    /\ known = 1
    /\ life = 1
    /\ count = 0
    /\ taken = NothingTaken
    /\ bulks = {}
    /\ confirmed = {}

--------------------------------------------------------------------------------
(* Time. Each clock moves as its rate in this tick says. A deposed leader that does not stall
   notices it within Overlap: a leader that no majority acknowledges for an election timeout steps
   down (leaderFallbackTimeout in quorum/raft/core.py), and a voter that heard its leader within an
   election timeout votes for nobody else (quorum/guard/elections.py). So Overlap is how long an
   acknowledgement was under way, a tick of the core, and the longest stall that goes unnoticed. *)
Tick(ours, theirs) ==
    /\ \A e \in Epochs : mode[e] = "leads" /\ e < newest => since < Overlap
    /\ since' = Min(since + 1, Overlap)
    /\ sent' = Min(sent + ours, Lease)
    /\ answer' = Min(answer + ours, Lease)
    /\ held' = [e \in Epochs |-> Min(held[e] + ours, Lease)]
    /\ taken' = [n \in Numbers |-> Min(taken[n] + ours, Lease)]
    /\ silent' = Min(silent + theirs, Session)
    /\ UNCHANGED <<newest, fenced, mode, online, proposed, known, life, count, bulks, confirmed>>

--------------------------------------------------------------------------------
(* The broker (broker_agent/agent.py on_reply): its lease is counted from the sending. *)
TakeAnswer ==
    /\ answer < Lease
    /\ sent' = IF Keeps("count from the sending") THEN Min(sent, answer) ELSE 0
    /\ UNCHANGED <<answer, log, leaders, standby>>

--------------------------------------------------------------------------------
(* The leader of an epoch (controller/leader/, controller/http/metadata_fetch.py) *)

(* What a leader says of the broker: it is not "online" once its fencing is decided, though that is
   not committed, and though it was decided since to unfence it again. A deposed leader learns
   nothing more. What it decides is never committed, and would only make it say "fenced". *)
Online(e) ==
    IF e < newest
    THEN online[e]
    ELSE /\ ~fenced
         /\ Keeps("fenced once decided") => \A k \in 1..Len(proposed) : ~proposed[k]

Decided == IF proposed = <<>> THEN fenced ELSE proposed[Len(proposed)]

(* Only the newest leader's count of the silence matters: see Fence. *)
Heard(e) == IF e = newest THEN 0 ELSE silent

(* metadata_fetch.handle: the contact is noted on arrival. A deposed leader that was stalled holds
   the request until a majority has confirmed that it leads (controller/leader/leadership_check.py),
   which never comes. *)
Note(e) ==
    /\ mode[e] = "leads"
    /\ silent' = Heard(e)
    /\ held' = [held EXCEPT ![e] = 0]
    /\ UNCHANGED <<sent, answer, log, proposed, mode, online, standby>>

(* metadata_fetch._answer: at once, or after a hold; also when a stall came in between. *)
Answer(e) ==
    /\ mode[e] # "no"
    /\ held[e] < answer
    /\ Online(e)
    /\ answer' = held[e]
    /\ UNCHANGED <<sent, log, leaders, standby>>

(* controller/leader/fencing.py: the session has ended, the decision finds that it still has, and no
   other fencing of the broker is under way (heartbeats.set_aside). *)
Fence ==
    /\ mode[newest] = "leads"
    /\ silent >= Session
    /\ ~Decided
    /\ \A k \in 1..Len(proposed) : ~proposed[k]
    /\ proposed' = Append(proposed, TRUE)
    /\ UNCHANGED <<sent, answer, log, silent, mode, online, held, standby>>

(* metadata_fetch._beat: the broker is there, and wants to be online. *)
Unfence ==
    /\ mode[newest] = "leads"
    /\ silent < Session
    /\ Decided
    /\ proposed' = Append(proposed, FALSE)
    /\ UNCHANGED <<sent, answer, log, silent, mode, online, held, standby>>

Commit ==
    /\ mode[newest] = "leads"
    /\ proposed # <<>>
    /\ fenced' = Head(proposed)
    /\ proposed' = Tail(proposed)
    /\ UNCHANGED <<sent, answer, newest, since, silent, mode, online, held, standby>>

(* leader_duties.begin: all that was committed before is applied. The leader before it may have
   decided what nobody knew to be committed; any beginning of that may be, and no more ever will.
   Every session begins anew (heartbeats.begin). *)
Begin(upto) ==
    /\ newest < MaxEpoch
    /\ newest' = newest + 1
    /\ since' = 0
    /\ fenced' = IF upto = 0 THEN fenced ELSE proposed[upto]
    /\ proposed' = <<>>
    /\ mode' = [mode EXCEPT ![newest + 1] = "leads"]
    /\ online' = [online EXCEPT ![newest] = mode[newest] # "no" /\ Online(newest)]
    /\ silent' = IF Keeps("full sessions") THEN 0 ELSE silent
    /\ UNCHANGED <<sent, answer, held, standby>>

(* leader_duties.end: what it held is refused. *)
End(e) ==
    /\ mode[e] # "no"
    /\ mode' = [mode EXCEPT ![e] = "no"]
    /\ online' = [online EXCEPT ![e] = FALSE]
    /\ held' = [held EXCEPT ![e] = Lease]
    /\ UNCHANGED <<sent, answer, log, silent, proposed, standby>>

(* The process stands still for as long as it likes. If nobody else is elected meanwhile, that is no
   step: it does nothing. In the code silence is counted without stalls (heartbeats.AwakeTime), which
   fences later. *)
Stall(e) ==
    /\ e < newest
    /\ mode[e] = "leads"
    /\ mode' = [mode EXCEPT ![e] = "stalled"]
    /\ UNCHANGED <<sent, answer, log, silent, proposed, online, held, standby>>

(* AwakeTime.notice finds a stall before a request is read that came meanwhile. *)
WakeUnnoticed(e) ==
    /\ ~Keeps("check after a stall")
    /\ mode[e] = "stalled"
    /\ mode' = [mode EXCEPT ![e] = "leads"]
    /\ UNCHANGED <<sent, answer, log, silent, proposed, online, held, standby>>

--------------------------------------------------------------------------------
(* A standby takes requests of the broker, and forwards the contacts in bulk. It numbers its bulks
   anew in each epoch, and so does each of its processes. *)

Take ==
    /\ MaxBulks > 0
    /\ taken' = [taken EXCEPT ![0] = 0]
    /\ answer' = IF Keeps("wait for the confirmation") THEN answer ELSE 0
    /\ UNCHANGED <<sent, log, leaders, known, life, count, bulks, confirmed>>

Forward ==
    /\ count < MaxBulks
    /\ taken[0] < Lease
    /\ count' = count + 1
    /\ taken' = [taken EXCEPT ![0] = Lease, ![count + 1] = taken[0]]
    /\ bulks' = bulks \union {[life |-> life, epoch |-> known, number |-> count + 1]}
    /\ UNCHANGED <<sent, answer, log, leaders, known, life, confirmed>>

(* The leader notes the contacts of a bulk as if the brokers had come to it, and then confirms the
   bulk in its epoch. It says what the brokers are. *)
NoteBulk(e, b) ==
    /\ mode[e] = "leads" \/ (mode[e] = "stalled" /\ ~Keeps("check before a confirmation"))
    /\ Keeps("epoch of a bulk") => b.epoch = e
    /\ silent' = IF Keeps("note what is confirmed") THEN Heard(e) ELSE silent
    /\ confirmed' = confirmed \union
           {[life |-> b.life, epoch |-> e, number |-> b.number, online |-> Online(e)]}
    /\ UNCHANGED <<sent, answer, log, proposed, mode, online, held, known, life, count, taken,
                   bulks>>

(* The confirmation is of a bulk of this process, in the epoch that the standby knows. The answer
   says what the leader said: the standby's own image may be late. *)
TakeConfirmation(c) ==
    /\ Keeps("life of a standby") => c.life = life
    /\ Keeps("epoch of a confirmation") => c.epoch = known
    /\ Keeps("the leader's word") => c.online
    /\ taken[c.number] < answer
    /\ answer' = taken[c.number]
    /\ UNCHANGED <<sent, log, leaders, standby>>

(* It hears of a newer leader, and forwards to that one what is not confirmed. *)
Learn(e) ==
    /\ known < e
    /\ e <= newest
    /\ known' = e
    /\ count' = 0
    /\ taken' = [NothingTaken EXCEPT ![0] = CHOOSE least \in {taken[n] : n \in Numbers} :
                                                \A n \in Numbers : least <= taken[n]]
    /\ bulks' = Unless("epoch of a bulk", bulks)
    /\ confirmed' = Unless("epoch of a confirmation", confirmed)
    /\ UNCHANGED <<sent, answer, log, leaders, life>>

(* It dies, and another process begins. While it is stalled it does nothing, which is no step. *)
Die ==
    /\ life < MaxLives
    /\ life' = life + 1
    /\ count' = 0
    /\ taken' = NothingTaken
    /\ bulks' = Unless("life of a standby", bulks)
    /\ confirmed' = Unless("life of a standby", confirmed)
    /\ UNCHANGED <<sent, answer, log, leaders, known>>

--------------------------------------------------------------------------------
(* Every step, by a name that a trace shows. *)

Ticks == \E ours \in BrokerRates, theirs \in LeaderRates : Tick(ours, theirs)
TakesAnswer == TakeAnswer
Notes == \E e \in Epochs : Note(e)
Answers == \E e \in Epochs : Answer(e)
Fences == Fence
Unfences == Unfence
Commits == Commit
Begins == \E upto \in 0..Len(proposed) : Begin(upto)
Ends == \E e \in Epochs : End(e)
Stalls == \E e \in Epochs : Stall(e)
Wakes == \E e \in Epochs : WakeUnnoticed(e)
StandbyTakes == Take
Forwards == Forward
NotesBulk == \E e \in Epochs, b \in bulks : NoteBulk(e, b)
TakesConfirmation == \E c \in confirmed : TakeConfirmation(c)
Learns == \E e \in Epochs : Learn(e)
Dies == Die

Next ==
    \/ Ticks \/ TakesAnswer
    \/ Notes \/ Answers \/ Fences \/ Unfences \/ Commits
    \/ Begins \/ Ends \/ Stalls \/ Wakes
    \/ StandbyTakes \/ Forwards \/ NotesBulk \/ TakesConfirmation \/ Learns \/ Dies

Spec == Init /\ [][Next]_vars

--------------------------------------------------------------------------------
(* What must hold in every state *)

(* A broker that is fenced for its silence has fenced itself before. Its leaderships are given away in
   the batch that fences it, or in batches of the same decision. *)
FencedNeverServes == fenced => ~Believes

TypeOK ==
    /\ sent \in 0..Lease /\ answer \in 0..Lease
    /\ newest \in Epochs /\ since \in 0..Overlap
    /\ silent \in 0..Session
    /\ Len(proposed) <= 3
    /\ \A e \in Epochs : held[e] \in 0..Lease /\ (mode[e] = "no" => held[e] = Lease)
    /\ \A e \in Epochs : e > newest => mode[e] = "no"
    /\ known \in 1..newest /\ life \in 1..MaxLives /\ count \in Numbers
    /\ \A n \in Numbers : n > count => taken[n] = Lease
==============================================================================
