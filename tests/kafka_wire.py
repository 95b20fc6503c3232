"""A Kafka client of bytes on a real socket, for tests."""

import socket
import ssl
from typing import Any

from kafka_listener.wire.messages import (
    RequestHeader,
    decode_response,
    decode_response_header,
    encode_request,
    encode_request_header,
)

VERSIONS, HANDSHAKE, AUTHENTICATE = 18, 17, 36


class RawKafkaClient:
    """One connection; each request waits for its answer."""

    def __init__(self, port: int, tls: ssl.SSLContext | None = None, timeout_s: float = 20.0):
        self._socket: socket.socket = socket.create_connection(("127.0.0.1", port), timeout_s)
        if tls is not None:
            self._socket = tls.wrap_socket(self._socket, server_hostname="127.0.0.1")
        self._correlation_id = 0

    def ask(self, api_key: int, version: int, **fields: Any) -> dict[str, Any]:
        """Send one request and return the fields of its answer. Raises EOFError at the end."""
        self._correlation_id += 1
        header = RequestHeader(api_key, version, self._correlation_id, "a-raw-client")
        content = encode_request_header(header) + encode_request(api_key, version, fields)
        self._socket.sendall(len(content).to_bytes(4, "big") + content)
        frame = self._read(int.from_bytes(self._read(4), "big"))
        correlation_id, start = decode_response_header(api_key, version, frame)
        assert correlation_id == self._correlation_id
        return decode_response(api_key, version, frame, start)

    def log_in(self, user: str, token: str) -> int:
        """Log in by PLAIN, and return Kafka's error code."""
        assert self.ask(HANDSHAKE, 1, Mechanism="PLAIN")["ErrorCode"] == 0
        message = f"\0{user}\0{token}".encode()
        return self.ask(AUTHENTICATE, 2, AuthBytes=message)["ErrorCode"]

    def close(self) -> None:
        self._socket.close()

    def _read(self, size: int) -> bytes:
        found = b""
        while len(found) < size:
            piece = self._socket.recv(size - len(found))
            if not piece:
                raise EOFError("the server ended the connection")
            found += piece
        return found
