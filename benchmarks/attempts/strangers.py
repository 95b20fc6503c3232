"""Callers who are refused, as a process of its own: `python -m benchmarks.attempts.strangers …`.

Rule: every load is bounded in attempts, connections and time. It prints, as one line of JSON, how
many attempts were refused as its callers saw it, how many connections it opened, and how long it
took.
"""

import argparse
import json
import socket
import ssl
import struct
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Final

from kafka_listener.wire.messages import RequestHeader, encode_request, encode_request_header

PIPELINED: Final = 40
"""Requests that are sent before their answers are read."""
NAMES: Final = 1_000
_SASL_HANDSHAKE, _SASL_AUTHENTICATE = 17, 36
_BIG_BODY: Final = 8_000_000
_SLOW_S: Final = 20.0


class Strangers:
    """Callers of one controller."""

    def __init__(self, port: int, ca: str, token: str, until: float) -> None:
        """`until`: monotonic seconds at which every load ends."""
        self._port = port
        self._context = ssl.create_default_context(cafile=ca)
        self._token = token
        self._until = until
        self._lock = threading.Lock()
        self.refused = 0
        self.opened = 0

    def _count(self, refused: int) -> None:
        with self._lock:
            self.refused += refused

    def _connect(self) -> ssl.SSLSocket:
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=20)
        with self._lock:
            self.opened += 1
        return self._context.wrap_socket(plain, server_hostname="127.0.0.1")

    def requests(self, count: int, path: str, header: str) -> None:
        """Send requests on one connection, many before their answers are read."""
        left, sent = count, 0
        while left > 0 and time.monotonic() < self._until:
            with suppress(OSError), self._connect() as stream:
                while left > 0 and time.monotonic() < self._until:
                    some = min(PIPELINED, left)
                    text = "".join(
                        f"GET {path.format((sent + n) % NAMES)} HTTP/1.1\r\nhost: 127.0.0.1\r\n"
                        f"{header}\r\n"
                        for n in range(some)
                    )
                    stream.sendall(text.encode())
                    self._count(_read_refusals(stream, some))
                    left -= some
                    sent += some

    def big_bodies(self, count: int) -> None:
        """Say that a large body follows, and send a part of it. The head is refused."""
        head = (
            f"POST /v1/topics HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
            f"content-length: {_BIG_BODY}\r\n\r\n"
        ).encode()
        for _ in range(count):
            if time.monotonic() > self._until:
                return
            with suppress(OSError), self._connect() as stream:
                stream.sendall(head)
                with suppress(OSError):
                    stream.sendall(bytes(1_000_000))
                self._count(_read_refusals(stream, 1))

    def logins(self, count: int) -> None:
        """Log in to Kafka's listener with a password that is wrong."""
        for number in range(count):
            if time.monotonic() > self._until:
                return
            with suppress(OSError), self._connect() as stream:
                stream.sendall(_kafka(_SASL_HANDSHAKE, 1, {"Mechanism": "PLAIN"}))
                _frame(stream)
                password = f"\0user-{number % 50}\0wrong".encode()
                stream.sendall(_kafka(_SASL_AUTHENTICATE, 2, {"AuthBytes": password}))
                self._count(bool(_frame(stream)))

    def slow_heads(self, count: int) -> None:
        """Hold connections open, and send a byte of a head now and then."""
        held: list[ssl.SSLSocket] = []
        for _ in range(count):
            with suppress(OSError):
                held.append(self._connect())
        ends = min(self._until, time.monotonic() + _SLOW_S)
        while time.monotonic() < ends:
            for stream in held:
                with suppress(OSError):
                    stream.sendall(b"x")
            time.sleep(1)
        for stream in held:
            with suppress(OSError):
                stream.close()

    def idle(self, count: int) -> None:
        """Hold plain connections open that send nothing."""
        held = []
        for _ in range(count):
            with suppress(OSError):
                held.append(socket.create_connection(("127.0.0.1", self._port), timeout=20))
                self.opened += 1
        ends = min(self._until, time.monotonic() + _SLOW_S)
        time.sleep(max(0.0, ends - time.monotonic()))
        for sock in held:
            sock.close()

    def load(self, kind: str, count: int) -> None:
        """Run one kind of load to its end."""
        known = f"authorization: Bearer {self._token}\r\n"
        unknown = "authorization: Bearer nobody-knows-this-token\r\n"
        kinds: dict[str, Callable[[int], None]] = {
            "no-token": lambda n: self.requests(n, "/v1/topics/t-{}", ""),
            "wrong-token": lambda n: self.requests(n, "/v1/topics/t-{}", unknown),
            "no-right": lambda n: self.requests(n, "/v1/topics/t-{}", known),
            "big-bodies": self.big_bodies,
            "logins": self.logins,
            "slow-heads": self.slow_heads,
            "idle": self.idle,
        }
        kinds[kind](count)


def _read_refusals(stream: ssl.SSLSocket, count: int) -> int:
    """Read so many answers; return how many of them refuse."""
    data = b""
    while data.count(b"HTTP/1.1 ") < count or not _is_whole(data):
        piece = stream.recv(1 << 18)
        if not piece:
            break
        data += piece
    return data.count(b"HTTP/1.1 401") + data.count(b"HTTP/1.1 403")


def _is_whole(data: bytes) -> bool:
    """Tell whether the last answer is there with its body."""
    head, end, body = data[data.rfind(b"HTTP/1.1 ") :].partition(b"\r\n\r\n")
    if not end:
        return False
    length = head.lower().partition(b"content-length: ")[2].partition(b"\r\n")[0]
    return len(body) >= int(length or b"0")


def _kafka(key: int, version: int, fields: dict[str, object]) -> bytes:
    header = encode_request_header(RequestHeader(key, version, 1, "stranger"))
    frame = header + encode_request(key, version, fields)
    return struct.pack(">i", len(frame)) + frame


def _frame(stream: ssl.SSLSocket) -> bytes:
    """Read one answer; nothing if the connection ends."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        piece = stream.recv(65536)
        if not piece:
            return b""
        data += piece
    return data


def main() -> None:
    """Run the load that the command line names."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attempts.strangers")
    parser.add_argument("kind")
    parser.add_argument("--port", type=int, required=True)
    parser.add_argument("--ca", required=True)
    parser.add_argument("--token", default="")
    parser.add_argument("--count", type=int, default=1_000)
    parser.add_argument("--threads", type=int, default=4)
    parser.add_argument("--limit", type=float, default=180.0, help="seconds")
    asked = parser.parse_args()
    began = time.monotonic()
    strangers = Strangers(asked.port, asked.ca, asked.token, began + asked.limit)
    share = asked.count // asked.threads
    threads = [
        threading.Thread(target=strangers.load, args=(asked.kind, share))
        for _ in range(asked.threads)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    took = time.monotonic() - began
    print(
        json.dumps({"refused": strangers.refused, "opened": strangers.opened, "seconds": took}),
        flush=True,
    )


if __name__ == "__main__":
    main()
