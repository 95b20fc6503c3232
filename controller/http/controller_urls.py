"""Where controllers answer HTTP: as configured, else as they registered themselves.

Rule: the configuration comes first, since an operator may name a proxy there. But a voter that the
log names at another address than the configuration has moved, and then its registration comes
first. A controller that was added while the cluster runs is in the others' configuration only if
somebody wrote it there.
"""

from collections.abc import Collection, Iterable, Mapping

from controller.managers.voter_addresses import HTTP
from metadata.image import MetadataImage
from metadata.records import RegisterControllerRecord, SecurityProtocol

_OWN = "CONTROLLER"
"""The name of the HTTP endpoint of a controller without a Kafka listener."""


def url_of(
    configured: Mapping[int, str],
    image: MetadataImage,
    node_id: int,
    moved: Collection[int] = (),
) -> str | None:
    """Return a controller's URL; None if it is not known. `moved`: as `VoterSet` has it."""
    registration = image.cluster.controllers.get(node_id)
    registered = None if registration is None else _registered(registration)
    if node_id in configured and not (node_id in moved and registered):
        return configured[node_id]
    return registered


def urls_of(
    configured: Mapping[int, str],
    image: MetadataImage,
    node_ids: Iterable[int],
    moved: Collection[int] = (),
) -> dict[int, str]:
    """Return the URLs of these controllers, as far as they are known."""
    found = ((node_id, url_of(configured, image, node_id, moved)) for node_id in node_ids)
    return {node_id: url for node_id, url in found if url is not None}


def _registered(registration: RegisterControllerRecord) -> str | None:
    points = {point.name: point for point in registration.end_points}
    point = points.get(HTTP) or points.get(_OWN)
    if point is None:
        return None
    scheme = "https" if point.security_protocol == SecurityProtocol.SSL else "http"
    host = f"[{point.host}]" if ":" in point.host else point.host
    return f"{scheme}://{host}:{point.port}"
