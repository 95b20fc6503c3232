"""What only the active controller does: decisions in turn, batches, sessions, fencing, takeover.

Here lives the order in which changes are decided and proposed. What a change means is decided in
`controller.managers`; nothing here knows a route or opens a file. Door: every module but
`activation`, `delegation`, `idempotency`, `lanes` and `large_changes`.
"""
