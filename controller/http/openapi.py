"""Makes the OpenAPI document from the table of routes and from the classes of the messages.

The same classes decode and encode the messages, so the document can't differ from what the code
does.
"""

from collections.abc import Mapping
from typing import Any

import msgspec

from controller.http.route import Parameter, Route, path_parameters
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
_SCHEMES = {
    "token": {"type": "http", "scheme": "bearer"},
    "certificate": {"type": "mutualTLS"},
}
_RANGE = {
    RANGE_HEADER: {
        "description": "The versions of requests that the controller reads, as in 1-2",
        "schema": {"type": "string"},
    }
}
_VERSIONS = {"type": "integer", "minimum": OLDEST, "maximum": NEWEST}
_TEXT = {"type": "string"}
_UUID7 = "^[A-Za-z0-9_-]{8}[cdef][A-Za-z0-9_-]{12}[AQgw]$"
_EXPECT = (
    "The offset of the answer in which the caller read what it changes; if that has changed "
    "since, the change is refused with STALE_EXPECTED_OFFSET"
)
_REQUEST_ID = "x-logberg-request-id"
_REQUEST_HEADERS = (
    (
        _REQUEST_ID,
        "A UUIDv7 (22 characters); a request that is sent again with the same id is done once",
        {"type": "string", "pattern": _UUID7},
    ),
    ("x-logberg-reason", "Why the change is made; the log keeps it", _TEXT),
    ("x-logberg-client-id", "Which program sends the request; the log keeps it", _TEXT),
    ("x-logberg-expect-offset", _EXPECT, Parameter("", "integer", "", least=0).schema),
    ("x-logberg-on-behalf-of", "The user for whom a broker asks (KIP-590)", _TEXT),
    ("x-logberg-client-address", "The IP address of the client that a broker forwards", _TEXT),
)


def openapi_document(version: str) -> dict[str, Any]:
    """Return the document (OpenAPI 3.1). `version`: the release of the program."""
    messages = [
        message
        for route in ROUTES
        for message in (route.request, route.reply, route.other)
        if message is not None
    ]
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
        "security": [{"token": []}, {"certificate": []}, {}],
        "components": {"schemas": components, "securitySchemes": _SCHEMES},
    }


def _operation(route: Route, references: dict[Any, Any]) -> dict[str, Any]:
    parameters = [_parameter("path", p, required=True) for p in path_parameters(route.path)]
    parameters += [_parameter("query", p) for p in route.parameters]
    parameters.append(_header(VERSION_HEADER, _VERSION, _VERSIONS))
    if route.changes:
        parameters += [_header(*each) for each in _REQUEST_HEADERS]
    elif route.joins_changes:
        parameters += [_header(*each) for each in _REQUEST_HEADERS if each[0] != _REQUEST_ID]
    good: dict[str, Any] = {"description": route.summary, "headers": _RANGE}
    if route.reply is not None:
        good["content"] = _content(_good_of(route, references))
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
                "content": _content(_error_of(route, references)),
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


def _good_of(route: Route, references: dict[Any, Any]) -> Any:
    reply = references[route.reply]
    return reply if route.other is None else {"anyOf": [reply, references[route.other]]}


def _error_of(route: Route, references: dict[Any, Any]) -> Any:
    error = references[ErrorReply]
    return {"anyOf": [references[route.reply], error]} if route.own_error else error


def _parameter(where: str, given: Parameter, *, required: bool = False) -> dict[str, Any]:
    parameter: dict[str, Any] = {"name": given.name, "in": where, "schema": given.schema}
    if given.summary:
        parameter["description"] = given.summary
    if required:
        parameter["required"] = True
    return parameter


def _header(name: str, summary: str, schema: Mapping[str, Any]) -> dict[str, Any]:
    return {"name": name, "in": "header", "schema": dict(schema), "description": summary}


def _content(schema: Any) -> dict[str, Any]:
    return {JSON: {"schema": schema}, MSGPACK: {"schema": schema}}
