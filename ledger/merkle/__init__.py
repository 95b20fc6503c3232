"""The Merkle tree over the log's batches: frontier, tiles, proofs, and signed notes about heads.

Rule: this is RFC 6962's tree and nothing of our own. Leaf i is the log's i-th batch, and its data
are the 32 bytes of that batch's hash. So a checker by another hand needs no code of ours. Nothing
here reads a file, a clock or random numbers.

- `hashing`: the hashes of leaves and nodes;
- `frontier`: what is needed to append a leaf and to know the root;
- `proofs`: inclusion and consistency, made and verified;
- `tiles`: how the tree is cut into files (C2SP tlog-tiles);
- `notes`: signed notes and their keys (C2SP signed-note);
- `heads`: the text of a head (C2SP tlog-checkpoint) and the majority that signs it.
"""
