"""A listening socket that notes what it hears, and answers what a test tells it to."""

import contextlib
import json
import socket
import ssl
import threading
from collections.abc import Callable

REPLY = b'{"brokers":[],"offset":1,"epoch":1}'


class Listener:
    """Accepts connections, notes every byte it can read, and sends given answers."""

    def __init__(self, tls: ssl.SSLContext | None = None) -> None:
        self.heard = b""
        self.status, self.body = "200 OK", REPLY
        self.more = ""
        self.answer: Callable[[str, str], tuple[str, bytes] | None] | None = None
        """(method, path with query): status and body; it goes before what is set above. None: it
        hangs up without an answer."""
        self.head = b""
        """The head of the newest request, for an answer that depends on it."""
        self._tls = tls
        self._socket = socket.create_server(("127.0.0.1", 0))
        scheme = "http" if tls is None else "https"
        self.url = f"{scheme}://127.0.0.1:{self._socket.getsockname()[1]}"
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()

    def leader_is(self, url: str) -> None:
        self.status = "421 Misdirected Request"
        self.body = json.dumps(
            {"code": "NOT_CONTROLLER", "message": "another leads", "leaderUrl": url}
        ).encode()

    def _serve(self) -> None:
        while True:
            try:
                connection, _ = self._socket.accept()
            except OSError:
                return
            with contextlib.suppress(OSError), connection:
                connection.settimeout(5)
                spoken: socket.socket = connection
                if self._tls is not None:
                    spoken = self._tls.wrap_socket(connection, server_side=True)
                with spoken:
                    self._answer(spoken)

    def _answer(self, spoken: socket.socket) -> None:
        heard = b""
        # What is not HTTP, such as a TLS greeting, is answered like a bad request.
        while b"\r\n\r\n" not in heard and (not heard or heard[:1].isalpha()):
            more = spoken.recv(65536)
            if not more:
                return
            heard += more
            self.heard += more
        status, body = self.status, self.body
        if self.answer is not None and heard[:1].isalpha():
            method, path, _ = heard.decode("latin-1").split(" ", 2)
            self.head = heard
            given = self.answer(method, path)
            if given is None:
                return
            status, body = given
        head = (
            f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\n{self.more}"
            f"content-length: {len(body)}\r\nconnection: close\r\n\r\n"
        )
        spoken.sendall(head.encode() + body)

    def close(self) -> None:
        self._socket.shutdown(socket.SHUT_RDWR)
        self._socket.close()
        self._thread.join(5)
