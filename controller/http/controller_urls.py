"""Where controllers answer HTTP: as configured, else as they registered themselves.

Rule: the configuration comes first, since an operator may name a proxy there. A controller that was
added while the cluster runs is in the others' configuration only if somebody wrote it there.
"""

from collections.abc import Iterable, Mapping

from controller.managers.voter_addresses import HTTP
from metadata.image import MetadataImage
from metadata.records import RegisterControllerRecord, SecurityProtocol

_OWN = "CONTROLLER"
"""The name of the HTTP endpoint of a controller without a Kafka listener."""


def url_of(configured: Mapping[int, str], image: MetadataImage, node_id: int) -> str | None:
    """Return a controller's URL; None if it is not known."""
    if node_id in configured:
        return configured[node_id]
    registration = image.cluster.controllers.get(node_id)
    return None if registration is None else _registered(registration)


def urls_of(
    configured: Mapping[int, str], image: MetadataImage, node_ids: Iterable[int]
) -> dict[int, str]:
    """Return the URLs of these controllers, as far as they are known."""
    found = ((node_id, url_of(configured, image, node_id)) for node_id in node_ids)
    return {node_id: url for node_id, url in found if url is not None}


def _registered(registration: RegisterControllerRecord) -> str | None:
    points = {point.name: point for point in registration.end_points}
    point = points.get(HTTP) or points.get(_OWN)
    if point is None:
        return None
    scheme = "https" if point.security_protocol == SecurityProtocol.SSL else "http"
    host = f"[{point.host}]" if ":" in point.host else point.host
    return f"{scheme}://{host}:{point.port}"
