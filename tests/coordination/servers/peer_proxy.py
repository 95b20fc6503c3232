"""The proxies between the servers of one store, as a process of its own; `PeerGate` runs it.

One proxy stands before each port that servers offer each other. A cut server's connections, those
that it made and those that it accepted, carry nothing, and new ones carry nothing either: nobody is
told, as when a cable is pulled. Mending resets them: what was held back never arrives.

Who made a connection is found in /proc: it lists each process's sockets with their ports. So the
servers need no setting that says by which proxy they go to whom.

It is a process of its own because the servers' heartbeats go through it: they must not wait for a
case that keeps the suite's event loop busy.

Commands come by standard input, one a line, and each is answered by `done`:
`cut NUMBER PID` and `mend`. The end of the input ends the process.
"""

import asyncio
import json
import re
import sys
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

CHUNK = 64 * 1024
_TRIES = 40
_PAUSE_S = 0.05
_SOCKET = re.compile(r"socket:\[(\d+)\]")


class Lonely(NamedTuple):
    """The server that is cut off."""

    number: int
    pid: int


class PeerConnection:
    """A connection from one server to another."""

    def __init__(self, number: int, client_port: int) -> None:
        """`number`: of the server that accepted it. `client_port`: of the one that made it."""
        self.number = number
        self.client_port = client_port
        self.carries = asyncio.Event()
        self.carries.set()
        self.cut = False
        self.transports: list[asyncio.BaseTransport] = []

    def hold(self) -> None:
        """Carry nothing from now on."""
        self.cut = True
        self.carries.clear()

    def reset(self) -> None:
        """Close both ends at once."""
        self.carries.set()
        for transport in self.transports:
            if isinstance(transport, asyncio.WriteTransport):
                transport.abort()


class PeerProxies:
    """All proxies of one store."""

    def __init__(self) -> None:
        self._lonely: Lonely | None = None
        self._connections: set[PeerConnection] = set()

    async def listen(self, port: int, target: int, number: int) -> None:
        """Stand at `port` before the port `target` of the server of this number."""

        async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await self._serve(PeerConnection(number, _client_port(writer)), target, reader, writer)

        await asyncio.start_server(accept, "127.0.0.1", port)

    def cut(self, lonely: Lonely) -> None:
        """Cut one server off from the others."""
        self._lonely = lonely
        ports = ports_of(lonely.pid)
        for connection in self._connections:
            if connection.number == lonely.number or connection.client_port in ports:
                connection.hold()

    def mend(self) -> None:
        """Join it again."""
        self._lonely = None
        for connection in list(self._connections):
            if connection.cut:
                connection.reset()

    async def _serve(
        self,
        connection: PeerConnection,
        target: int,
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        connection.transports.append(writer.transport)
        self._connections.add(connection)
        try:
            if self._is_cut(connection):
                connection.hold()
                await connection.carries.wait()
                return
            with suppress(OSError):
                out_reader, out_writer = await _connected(target)
                connection.transports.append(out_writer.transport)
                pumps = [
                    asyncio.ensure_future(_pump(connection, reader, out_writer)),
                    asyncio.ensure_future(_pump(connection, out_reader, writer)),
                ]
                await asyncio.wait(pumps, return_when=asyncio.FIRST_COMPLETED)
                for pump in pumps:
                    pump.cancel()
                await asyncio.gather(*pumps, return_exceptions=True)
        finally:
            self._connections.discard(connection)
            connection.reset()

    def _is_cut(self, connection: PeerConnection) -> bool:
        lonely = self._lonely
        return lonely is not None and (
            connection.number == lonely.number or connection.client_port in ports_of(lonely.pid)
        )


async def _connected(target: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Connect to a server, which may begin to listen a moment later. Raises OSError.

    A refused connection is tried again soon, but one that was accepted and then reset isn't:
    ZooKeeper holds another election then.
    """
    for _ in range(_TRIES):
        with suppress(ConnectionRefusedError):
            return await asyncio.open_connection("127.0.0.1", target)
        await asyncio.sleep(_PAUSE_S)
    return await asyncio.open_connection("127.0.0.1", target)


async def _pump(
    connection: PeerConnection, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
) -> None:
    """Carry bytes in one direction until either side closes."""
    with suppress(OSError):
        while data := await reader.read(CHUNK):
            await connection.carries.wait()
            writer.write(data)
            await writer.drain()
    # Who is cut off learns of no end either.
    await connection.carries.wait()


def ports_of(pid: int) -> set[int]:
    """Return the local ports of a process's TCP sockets."""
    inodes = set()
    for entry in Path(f"/proc/{pid}/fd").iterdir():
        with suppress(OSError):
            if found := _SOCKET.fullmatch(str(entry.readlink())):
                inodes.add(found[1])
    ports = set()
    for table in ("tcp", "tcp6"):
        for line in Path(f"/proc/{pid}/net/{table}").read_text().splitlines()[1:]:
            fields = line.split()
            if fields[9] in inodes:
                ports.add(int(fields[1].rpartition(":")[2], 16))
    return ports


def _client_port(writer: asyncio.StreamWriter) -> int:
    port: int = writer.get_extra_info("peername")[1]
    return port


async def serve(places: list[tuple[int, int, int]]) -> None:
    """Stand at all places, and obey until the input ends."""
    proxies = PeerProxies()
    for port, target, number in places:
        await proxies.listen(port, target, number)
    commands = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(commands), sys.stdin
    )
    print("done", flush=True)
    while line := (await commands.readline()).decode().split():
        if line[0] == "cut":
            proxies.cut(Lonely(int(line[1]), int(line[2])))
        else:
            proxies.mend()
        print("done", flush=True)


if __name__ == "__main__":
    asyncio.run(serve(json.loads(sys.argv[1])))
