"""Clients of coordination for tests: each has a session and asks by the routes."""

from base64 import b64decode, b64encode

BASE = "/v1/coordination"


def ask(cluster, method, path, body=None, *, status=200, **more):
    """Ask a route of coordination; check the status, and return the reply."""
    found, reply = cluster.ask(method, BASE + path, body, **more)
    assert found == status, reply
    return reply


def refused(cluster, path, body, code, **more):
    """Ask for a change that is refused with this code; return the error."""
    _, error = cluster.ask("POST", BASE + path, body, **more)
    assert error.get("code") == code, error
    return error


class SessionClient:
    """A client with a session."""

    def __init__(self, cluster, name="client", ttl_ms=10_000):
        self.cluster = cluster
        opened = ask(cluster, "POST", "/sessions", {"ttlMs": ttl_ms, "clientName": name})
        self.session_id = opened["sessionId"]
        self.revision = opened["revision"]

    def renew(self, **more):
        return ask(self.cluster, "POST", "/sessions/renew", {"sessionId": self.session_id}, **more)

    def end(self, **more):
        return ask(self.cluster, "POST", "/sessions/end", {"sessionId": self.session_id, **more})

    def _named(self, kind, name, entry_id):
        return {"kind": kind, "name": name, "id": entry_id, "sessionId": self.session_id}

    def enter(self, kind, name, entry_id, data=b"", *, shared=False):
        body = self._named(kind, name, entry_id)
        body |= {"data": b64encode(data).decode(), "shared": shared}
        return ask(self.cluster, "POST", "/entries", body)

    def change(self, kind, name, entry_id, data):
        body = self._named(kind, name, entry_id) | {"data": b64encode(data).decode()}
        return ask(self.cluster, "POST", "/entries/change", body)

    def leave(self, kind, name, entry_id, token=None):
        body = self._named(kind, name, entry_id) | {"token": token}
        return ask(self.cluster, "POST", "/entries/leave", body)


def entries(cluster, kind, name, **query):
    """Return the queue as (id, granted)."""
    reply = ask(cluster, "GET", "/entries", query={"kind": kind, "name": name, **query})
    return [(each["id"], each["granted"]) for each in reply["entries"]]


def operation(op, key, data=b"", expect=None):
    """Return one operation of a commit."""
    return {"op": op, "key": key, "data": b64encode(data).decode(), "expect": expect}


def commit(cluster, *operations, **more):
    """Commit operations; return the reply."""
    return ask(cluster, "POST", "/commit", {"operations": operations, **more})


def value(cluster, key, **more):
    """Return the value of a key; None: it is not there."""
    record = ask(cluster, "GET", "/key", query={"key": key}, **more)["record"]
    return None if record is None else b64decode(record["value"])
