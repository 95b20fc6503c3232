"""Sends a message as an HTTP POST request.

Rule: any answer of 200 to 299 means that the message was taken. No redirect is followed, because
the secret would go with it. No proxy is asked.
"""

import http.client
import ssl
from urllib.parse import urlsplit

_ANSWER_BYTES = 200


class NotTakenError(Exception):
    """The message was not taken, or nobody knows. The message of the error says why."""

    def __init__(self, why: str, *, for_good: bool = False) -> None:
        """`for_good`: the same message won't be taken later either."""
        super().__init__(why)
        self.for_good = for_good


class WebhookAddress:
    """Where to post to. Raises ValueError for a URL that can't be one."""

    def __init__(self, url: str) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url} is no address of a webhook; write such as https://host/path")
        if parts.username or parts.password:
            raise ValueError("a webhook's secret goes into a file, not into its URL")
        self.tls = parts.scheme == "https"
        self.host = parts.hostname
        self.port = parts.port or (443 if self.tls else 80)
        self.target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
        self.shown = f"{parts.scheme}://{self.host}:{self.port}{parts.path}"
        """Without the query, which may hold a secret."""


def post(address: WebhookAddress, body: bytes, headers: dict[str, str], timeout_s: float) -> None:
    """Post a message once. Raises NotTakenError.

    `timeout_s` limits each step: connecting, TLS, and each wait for bytes.
    """
    connection: http.client.HTTPConnection
    if address.tls:
        tls = ssl.create_default_context()
        connection = http.client.HTTPSConnection(
            address.host, address.port, timeout=timeout_s, context=tls
        )
    else:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=timeout_s)
    try:
        connection.request("POST", address.target, body, headers)
        answer = connection.getresponse()
        said = answer.read(_ANSWER_BYTES).decode(errors="replace").strip()
    except (OSError, http.client.HTTPException) as error:
        raise NotTakenError(f"{address.shown}: {error or type(error).__name__}") from None
    finally:
        connection.close()
    if 200 <= answer.status < 300:
        return
    # 408 and 429 ask to come again; 401, 403 and 404 end when somebody corrects the settings.
    for_good = answer.status in (400, 413, 415, 422)
    why = f"{address.shown} answered {answer.status}{f': {said}' if said else ''}"
    raise NotTakenError(why, for_good=for_good)
