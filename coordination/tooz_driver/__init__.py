"""OpenStack's tooz on any of our backends, by entry points of the group `tooz.backends`.

    tooz.coordination.get_coordinator("logberg+http://c1:9090,c2:9090", b"worker-1")

`driver` is what tooz calls; `running` the client and its thread, with the heartbeat; `groups` and
`locks` what tooz means by these words; `translating` what tooz calls things: names, errors, URLs.
"""
