"""Makes the OpenAPI document from the table of routes and from the classes of the messages.

The same classes decode and encode the messages, so the document can't differ from what the code
does.
"""

from typing import Any

import msgspec

from controller.http.route import Route
from controller.http.routes import ROUTES
from metadata.messages import ErrorReply
from metadata.messages.versions import (
    NEWEST,
    OLDEST,
    RANGE_HEADER,
    TOLERANT,
    UNVERSIONED,
    VERSION_HEADER,
)
from metadata.messages.wire import JSON, MSGPACK

_VERSION = (
    f"The version of the request, {OLDEST} to {NEWEST}; without the header, version "
    f"{UNVERSIONED}. From version {TOLERANT} on, unknown fields of the body are ignored"
)
_RANGE = {
    RANGE_HEADER: {
        "description": "The versions of requests that the controller reads, as in 1-2",
        "schema": {"type": "string"},
    }
}
_EXPECT = (
    "The offset of the answer in which the caller read what it changes; if that has changed "
    "since, the change is refused with STALE_EXPECTED_OFFSET"
)
_REQUEST_HEADERS = (
    (
        "x-logberg-request-id",
        "A UUIDv7 (22 characters); a request that is sent again with the same id is done once",
    ),
    ("x-logberg-reason", "Why the change is made; the log keeps it"),
    ("x-logberg-client-id", "Which program sends the request; the log keeps it"),
    ("x-logberg-expect-offset", _EXPECT),
    ("x-logberg-on-behalf-of", "The user for whom a broker asks (KIP-590)"),
)


def openapi_document(version: str) -> dict[str, Any]:
    """Return the document (OpenAPI 3.1). `version`: the release of the program."""
    messages = [m for route in ROUTES for m in (route.request, route.reply) if m is not None]
    schemas, components = msgspec.json.schema_components(
        [*dict.fromkeys(messages), ErrorReply], ref_template="#/components/schemas/{name}"
    )
    references = dict(zip([*dict.fromkeys(messages), ErrorReply], schemas, strict=True))
    paths: dict[str, dict[str, Any]] = {}
    for route in ROUTES:
        paths.setdefault(route.path, {})[route.method.lower()] = _operation(route, references)
    return {
        "openapi": "3.1.0",
        "info": {"title": "Logberg controller", "version": version},
        "paths": paths,
        "components": {"schemas": components},
    }


def _operation(route: Route, references: dict[Any, Any]) -> dict[str, Any]:
    names = [part[1:-1] for part in route.path.split("/") if part.startswith("{")]
    parameters = [_parameter(name, "path", "string", "", required=True) for name in names]
    parameters += [_parameter(p.name, "query", p.kind, p.summary) for p in route.parameters]
    parameters.append(_parameter(VERSION_HEADER, "header", "integer", _VERSION))
    if route.changes:
        parameters += [_parameter(n, "header", "string", s) for n, s in _REQUEST_HEADERS]
    good: dict[str, Any] = {"description": route.summary, "headers": _RANGE}
    if route.reply is not None:
        good["content"] = _content(references[route.reply])
    elif route.content:
        good["content"] = {route.content: {}}
    operation: dict[str, Any] = {
        "operationId": route.name,
        "summary": route.summary,
        "responses": {
            str(route.status): good,
            "default": {
                "description": "An error",
                "headers": _RANGE,
                "content": _content(references[ErrorReply]),
            },
        },
    }
    operation["parameters"] = parameters
    if route.request is not None:
        operation["requestBody"] = {
            "required": True,
            "content": _content(references[route.request]),
        }
    return operation


def _parameter(
    name: str, where: str, kind: str, summary: str, *, required: bool = False
) -> dict[str, Any]:
    parameter: dict[str, Any] = {"name": name, "in": where, "schema": {"type": kind}}
    if summary:
        parameter["description"] = summary
    if required:
        parameter["required"] = True
    return parameter


def _content(schema: Any) -> dict[str, Any]:
    return {JSON: {"schema": schema}, MSGPACK: {"schema": schema}}
