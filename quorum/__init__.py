"""Agreement on a sequence of byte strings among a few controllers.

A quorum node is one member of a Raft group. Its owner (the controller above it) proposes payloads.
The nodes agree on an order, and every node hands every payload to its owner in that order. A
payload is opaque: nothing in this package knows what the bytes mean. PySyncObj is the Raft core.
It is wrapped twice: `raft/` gives it types, and `guard/` makes it safe.

Using a node
------------

The owner makes a `node.QuorumNode` from settings, a clock, randomness, a disk, links to the peers
and an `api.QuorumListener`. All calls in both directions happen on one event loop, so nothing here
takes a lock. Only `start`, `stop` and the steps of `scrub` wait for the disk. A listener's method
must not raise.

What goes in
------------

From the owner (`api.Quorum`):

- `propose` appends a payload. Only a leader takes one, and its outcome is not returned.
- `read_index` asks whether this node still leads, so that the owner may answer a read.
- `compact` says that everything up to a mark is durable above: the journal may forget it.
- `caught_up` says the same of a mark that the node asked the owner to fetch. `out_of_reach` says
  that a peer has no files for it any more.
- `resign` gives up leadership. `set_digest` and `announce` send small notes to the peers.

From the runtime: frames, links that open and end, syncs that completed, one timer.

What comes out
--------------

To the owner (`api.QuorumListener`):

- `on_committed` delivers the payloads of one entry, in order, each entry once in a process.
- `on_leadership` and `on_leadership_lost` bracket the time in which `propose` is allowed.
- `on_leader_changed` names the leader and the epoch (Raft's term) that this node knows.
- `on_catch_up` asks the owner to fetch files: the leader has forgotten the entries we lack.
- `on_stopped` says why the node has stopped itself. Reads that wait then get False. No other
  call of the listener follows.

To the runtime: frames, and writes and syncs of the folder's files.

What is durable before what
---------------------------

1. A vote, or a request for votes, leaves after our term and our vote are durable.
2. An acknowledgement leaves after our term and the entries that it names are durable.
3. A leader counts acknowledgements only up to the index where its own copy is durable.
4. `on_committed` delivers an entry after it is committed and our own copy is durable.
5. `on_leader_changed` names an epoch after it is durable here.
6. The owner calls `compact` or `caught_up` after all that the mark covers is durable above. The
   manifest, which holds the mark, is durable before the journal forgets or replaces an entry.

What the owner may rely on
--------------------------

- Two nodes never deliver different payloads at one index, however messages are lost, repeated or
  late, and wherever a process is killed or loses power.
- After `on_leadership_lost`, a payload that was proposed and not delivered has an unknown outcome:
  it may be delivered later, or never.
- After a failed sync the node stops. It never syncs the same bytes again.
- If the journal lost bytes that were durable, the node starts, but it does not vote and its
  acknowledgements do not count until it has caught up (`guard.repair`). If nothing can be read,
  `start` raises an error that says what to do.

Rooms
-----

`node` puts the rooms together, and `folder_opening` opens its folder. `peers/` handles frames and
links, `guard/` judges them, `raft/` holds PySyncObj, `membership/` says who votes, `wire/` defines
the bytes between nodes, `journal/` those on disk. `recovery/` reads and replaces the journals of
stopped nodes. import-linter holds the order, from the upper to the lower.
"""
