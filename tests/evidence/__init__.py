"""Records of what was run: full ones outside the tree, and one small table of them inside it.

Each run writes a file of JSON, a piece, into a folder outside the tree (`pieces`). `full` makes all
runs. `summarise` folds their pieces into `recorded.csv`, one row a kind of run, and `page` makes
from that file the figures in docs/safety.md.
"""
