"""OCSF: each event as a JSON object of the class API Activity or Authentication, version 1.8.

Rule: an event has every attribute that its class requires, and only attributes that its class and
objects have. What OCSF has no place for stands in `unmapped`. JSON escapes what could break a line.
"""

from ipaddress import ip_address
from typing import Any, Final

from audit.export.events import ExportedEvent, sentence

SCHEMA_VERSION: Final = "1.8.0"
_API, _AUTHENTICATION = 6003, 3002
_IAM, _APPLICATION = 3, 6
_LOGON: Final = 1
_OTHER: Final = 99
_ACTIVITIES: Final = {
    1: ("create", "open", "make", "allocate", "enter", "import", "register", "keep", "join"),
    2: (
        *("list", "describe", "read", "get", "check", "watch", "export", "status", "explain"),
        *("resolve", "plan", "lose", "fetch", "metadata", "coordination", "openapi", "authority"),
    ),
    3: (
        *("alter", "update", "set", "renew", "change", "apply", "commit", "assign", "elect"),
        *("transfer", "run", "follow", "begin", "balance", "incremental", "rotate", "reinstate"),
    ),
    4: ("delete", "remove", "expire", "end", "leave", "break", "unregister", "revoke", "erase"),
}
_NAMES: Final = {1: "Create", 2: "Read", 3: "Update", 4: "Delete", _OTHER: "Other"}
_LOGINS: Final = ("login", "connect")
_INFORMATIONAL, _LOW, _MEDIUM = 1, 2, 3
_SEVERITIES: Final = {_INFORMATIONAL: "Informational", _LOW: "Low", _MEDIUM: "Medium"}
_USER, _SYSTEM, _UNKNOWN = 1, 3, 0


def ocsf_event(event: ExportedEvent, version: str) -> dict[str, Any]:
    """Return an event as an object for JSON."""
    login = event.is_attempt and event.operation in _LOGINS
    class_uid = _AUTHENTICATION if login else _API
    activity = _LOGON if login else activity_of(event.operation)
    severity = _MEDIUM if event.refused else _LOW if event.only_logged else _INFORMATIONAL
    found: dict[str, Any] = {
        "activity_id": activity,
        "activity_name": "Logon" if login else _NAMES[activity],
        "category_name": "Identity & Access Management" if login else "Application Activity",
        "category_uid": _IAM if login else _APPLICATION,
        "class_name": "Authentication" if login else "API Activity",
        "class_uid": class_uid,
        "type_uid": class_uid * 100 + activity,
        "severity_id": severity,
        "severity": _SEVERITIES[severity],
        "time": event.time_ms,
        "status_id": 2 if event.refused else 1,
        "status": "Failure" if event.refused else "Success",
        "message": sentence(event),
        "metadata": _metadata(event, version),
        "src_endpoint": endpoint(event.address),
        "actor": {"user": user(event.principal)},
    }
    if event.is_attempt and event.times > 1:
        found["count"] = event.times
        found["start_time"], found["end_time"] = event.time_ms, event.last_ms
        found["duration"] = event.last_ms - event.time_ms
    if event.code:
        found["status_code"] = event.code
    if event.reason:
        found["status_detail"] = event.reason
    found |= _login(event) if login else _call(event)
    unmapped = _unmapped(event)
    if unmapped:
        found["unmapped"] = unmapped
    return found


def activity_of(operation: str) -> int:
    """Return the activity that an operation is: create, read, update, delete, or other."""
    word = _first_word(operation)
    return next((number for number, words in _ACTIVITIES.items() if word in words), _OTHER)


def _first_word(operation: str) -> str:
    """Return `create` for create_topics and for CreateTopics."""
    spaced = "".join(f"_{sign}" if sign.isupper() else sign for sign in operation)
    return spaced.strip("_").partition("_")[0].lower()


def _metadata(event: ExportedEvent, version: str) -> dict[str, Any]:
    return {
        "version": SCHEMA_VERSION,
        "product": {"name": "Logberg", "vendor_name": "Logberg", "version": version},
        "uid": f"{event.cluster_id}:{event.offset}",
        "log_name": "metadata log",
        "sequence": event.offset,
        "tenant_uid": event.cluster_id,
        **({"correlation_uid": event.request_id} if event.request_id else {}),
    }


def endpoint(address: str) -> dict[str, Any]:
    """Return where an event came from: an address, or a name where there is none."""
    try:
        return {"ip": str(ip_address(address))}
    except ValueError:
        return {"name": address or "internal"}


def user(principal: str) -> dict[str, Any]:
    """Return a principal as a user; a broker or controller is a system."""
    kind, _, name = principal.partition(":")
    if not principal:
        return {"name": "unauthenticated", "type_id": _UNKNOWN}
    type_id = _USER if kind == "User" else _SYSTEM if name else _UNKNOWN
    return {"name": principal, "type_id": type_id}


def _call(event: ExportedEvent) -> dict[str, Any]:
    api: dict[str, Any] = {
        "operation": event.operation or "unknown",
        "service": {"name": "Logberg controller"},
    }
    if event.request_id:
        api["request"] = {"uid": event.request_id}
    if event.code:
        api["response"] = {"error": event.code, "error_message": event.reason or event.code}
    found: dict[str, Any] = {"api": api}
    method, _, path = event.request.partition(" ")
    if path:
        request: dict[str, Any] = {"url": {"path": path}}
        if method in ("GET", "POST", "PUT", "DELETE", "PATCH", "HEAD"):
            request["http_method"] = method
        if event.client_id:
            request["user_agent"] = event.client_id
        found["http_request"] = request
    if event.resources:
        found["resources"] = [_resource(word) for word in event.resources]
    return found


def _resource(word: str) -> dict[str, str]:
    kind, _, name = word.partition(":")
    return {"name": name or word, "type": kind}


def _login(event: ExportedEvent) -> dict[str, Any]:
    """Return what only logins have. The name is the one that the client gave itself."""
    claimed = next((w.partition(":")[2] for w in event.resources if w.startswith("user:")), "")
    return {
        "user": {"name": claimed or "unknown", "type_id": _UNKNOWN},
        "service": {"name": "Logberg controller"},
        "is_remote": event.address not in ("", "unix socket"),
    }


def _unmapped(event: ExportedEvent) -> dict[str, str]:
    words = {
        "on_behalf_of": event.on_behalf_of,
        "auth_method": event.auth_method,
        "client_id": event.client_id,
        "answer": event.answer,
        "controller_id": "" if event.controller_id < 0 else str(event.controller_id),
        "rights_only_logged": "true" if event.only_logged else "",
        "change_reason": "" if event.is_attempt else event.reason,
        "records": "" if event.is_attempt else str(event.times),
    }
    return {name: value for name, value in words.items() if value}
