----------------------------- MODULE GuardBounds -----------------------------
(* Guard with names for the nodes that TLC may exchange: no rule prefers one. *)
EXTENDS Guard, TLC

Exchangeable == Permutations(Nodes)
==============================================================================
