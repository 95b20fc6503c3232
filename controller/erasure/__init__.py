"""The keys of subjects on one controller: shared, kept on disk, destroyed (ADR 0093).

Rule: a key goes where the log goes, but never through the log. Each controller keeps the tree of
keys in a file of its own, sealed under the cluster key, and destroys what the log says is erased.

- `messages`: what controllers tell each other about trees of keys;
- `key_files`: the trees in this controller's folder, and those that a peer has;
- `keeping`: which tree counts, who has it, what is destroyed;
- `parts`: the parts of this room, wired.

The door is all but `parts`.
"""
