"""OpenStack's tooz on any of our backends, by entry points of the group `tooz.backends`.

    tooz.coordination.get_coordinator("logberg+http://c1:9090,c2:9090", b"worker-1")

`driver` has groups, elections and the heartbeat; `locks` the locks; `translating` what tooz calls
things: names, capabilities, errors.
"""
