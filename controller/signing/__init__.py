"""Signed heads: what the controllers vouch for together, and what is proved under it.

Rule: a head is signed by each controller after it has computed the root itself, with a key apart
from TLS. A head that a majority of the voters signed is the cluster's newest; a single one never
is.

- `messages`: what controllers tell each other about heads;
- `signing`: asks for signatures, signs, and collects;
- `batch_proofs`: the proof that a batch is in the log, for people to keep.

- `parts`: the parts of this room, wired.

The door is all but `parts`.
"""
