"""A Kafka client that sends requests as bytes, and counts what comes back."""

import asyncio
from itertools import count
from typing import Final

from kafka_listener.serving.frames import framed
from kafka_listener.wire.messages import (
    RequestHeader,
    decode_response,
    decode_response_header,
    encode_request,
    encode_request_header,
)
from kafka_listener.wire.schema import Fields

_READ: Final = 1 << 18


class KafkaPipe:
    """One connection; it is opened again when the other side has closed it."""

    def __init__(self, port: int, client_id: str = "1") -> None:
        self._port = port
        self._client_id = client_id
        self._numbers = count(1)
        self._reader: asyncio.StreamReader | None = None
        self._writer: asyncio.StreamWriter | None = None

    def encoded(self, key: int, version: int, fields: Fields) -> tuple[int, int, bytes]:
        """Return a request that can be sent many times."""
        header = RequestHeader(key, version, next(self._numbers), self._client_id)
        body = encode_request(key, version, fields)
        return key, version, framed(encode_request_header(header), body)

    async def exchange(self, request: tuple[int, int, bytes]) -> bytes:
        """Send a request and return its answer; empty if the connection was closed instead."""
        if self._writer is None:
            self._reader, self._writer = await asyncio.open_connection(
                "127.0.0.1", self._port, limit=_READ
            )
        assert self._reader is not None
        try:
            self._writer.write(request[2])
            await self._writer.drain()
            size = int.from_bytes(await self._reader.readexactly(4), "big")
            return await self._reader.readexactly(size)
        except (asyncio.IncompleteReadError, OSError):
            self.close()
            return b""

    async def ask(self, key: int, version: int, fields: Fields) -> Fields:
        """Send a request and return its answer. Raises ConnectionResetError."""
        answer = await self.exchange(self.encoded(key, version, fields))
        if not answer:
            raise ConnectionResetError(f"api key {key} got no answer")
        _, start = decode_response_header(key, version, answer)
        return decode_response(key, version, answer, start)

    def close(self) -> None:
        """End the connection."""
        if self._writer is not None:
            self._writer.close()
        self._reader = self._writer = None
