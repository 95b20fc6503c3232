"""The model under TLC: what is explored of it, and which mutants it must refuse."""
