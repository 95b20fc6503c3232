"""Where a controller answers that nobody configured."""

import pytest

from controller.http.controller_urls import url_of, urls_of
from metadata.image import MetadataImage
from metadata.records import ControllerEndpoint, RegisterControllerRecord, SecurityProtocol
from tests.unit.image.replaying import replayed

CLEAR, TLS = int(SecurityProtocol.PLAINTEXT), int(SecurityProtocol.SSL)
CONFIGURED = {1: "https://proxy.example.org"}


def registered(*points: ControllerEndpoint) -> MetadataImage:
    ids = (1, 4)
    return replayed(*(RegisterControllerRecord(n, bytes(16), False, points, ()) for n in ids))


@pytest.mark.parametrize(
    ("points", "url"),
    [
        ((), None),
        ((ControllerEndpoint("CONTROLLER", "four", 9191, CLEAR),), "http://four:9191"),
        ((ControllerEndpoint("CONTROLLER", "::1", 9191, TLS),), "https://[::1]:9191"),
        (
            (
                ControllerEndpoint("CONTROLLER", "four", 9092, CLEAR),
                ControllerEndpoint("HTTP", "four", 9191, TLS),
            ),
            "https://four:9191",
        ),
    ],
    ids=["none", "in clear", "TLS", "with a listener for Kafka"],
)
def test_a_url_is_as_configured_else_as_registered(
    points: tuple[ControllerEndpoint, ...], url: str | None
) -> None:
    image = registered(*points)
    assert url_of(CONFIGURED, image, 1) == "https://proxy.example.org"
    assert url_of(CONFIGURED, image, 4) == url
    assert url_of(CONFIGURED, image, 9) is None
    assert url_of(CONFIGURED, image, 1, {1}) == (url or "https://proxy.example.org"), "it moved"
    assert urls_of(CONFIGURED, image, (1, 4, 9)) == {1: CONFIGURED[1]} | ({4: url} if url else {})
