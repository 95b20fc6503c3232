"""Agreement on opaque bytes: Raft by PySyncObj, made safe from outside."""
