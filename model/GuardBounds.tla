----------------------------- MODULE GuardBounds -----------------------------
(* Guard with names for the nodes that TLC may exchange: no rule prefers one. *)
EXTENDS Guard, TLC

Exchangeable == Permutations(Nodes)

(* For a configuration in which leaders write their no-op and nothing else: more terms for less. *)
NoOpsOnly == \A i \in Nodes : \A k \in 2..Len(log[i]) : log[i][k - 1] # log[i][k]
==============================================================================
