"""Coordination for any Python service: KIP-30's four interfaces over a store that a URL names.

Sessions, group membership, leader election, storage, locks and listeners. The client core decides
everything that is policy: heartbeats, deadlines, campaigns, buffers. A backend only asks its store.

`connect` begins; `types` and `errors` are what every caller sees; `backend` is the seam between the
core and `backends/`, one folder for each store. `testing` is the suite that every backend passes.
"""
