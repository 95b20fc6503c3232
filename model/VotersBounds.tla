----------------------------- MODULE VotersBounds -----------------------------
(* Voters with names for the nodes that TLC may exchange: no rule prefers one. *)
EXTENDS Voters, TLC

Exchangeable == Permutations(Formed) \union Permutations(Nodes \ Formed)
==============================================================================
