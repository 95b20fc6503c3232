"""A route is found among few, and it is the one that trying all in their order finds."""

import re

import pytest

from controller.http.routes import _GROUPS, ROUTES, RouteMatch, _match, find_route


def by_trying_all(method: str, path: str) -> RouteMatch:
    if path.startswith("/tile/"):
        # Whatever follows is the tile's name, which has slashes.
        (tile,) = (route for route in ROUTES if route.name == "read_tile")
        found = method == "GET"
        return RouteMatch(tile if found else None, {"path": path[1:]} if found else {}, ("GET",))
    allowed: list[str] = []
    for route in ROUTES:
        arguments = _match(route.path.split("/"), path.split("/"))
        if arguments is None:
            continue
        if route.method == method:
            return RouteMatch(route, arguments, (method,))
        allowed.append(route.method)
    return RouteMatch(None, {}, tuple(allowed))


PATHS = sorted(
    {route.path for route in ROUTES}
    | {re.sub("{[^}]*}", "7", route.path) for route in ROUTES}
    | {re.sub("{[^}]*}", "", route.path) for route in ROUTES}
    | {route.path + "/" for route in ROUTES}
    | {"/", "", "/v1", "/v2/topics", "/v1/topics/a/b/c/d/e/f"}
)


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_the_same_route_is_found_as_by_trying_all(method: str) -> None:
    for path in PATHS:
        assert find_route(method, path) == by_trying_all(method, path), path


def test_few_routes_are_tried_for_a_path() -> None:
    assert max(map(len, _GROUPS.values())) <= 5
