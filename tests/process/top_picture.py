"""Draws a frame of `logberg top` on a real cluster, for the docs.

    python -m tests.process.top_picture      writes docs/pictures/top.svg

The picture is text, drawn by rich. It loads no font and nothing else from elsewhere.
"""

import asyncio
import re
import signal
import tempfile
from io import StringIO
from pathlib import Path

from rich.console import Console

from logberg.cli.output import drawn
from logberg.client.client import LogbergClient
from logberg.operating.top_frame import TopView, frame
from logberg.operating.top_reading import TopReading
from tests.docs import source
from tests.process.running_cluster import RunningCluster

PICTURE = source.ROOT / "docs" / "pictures" / "top.svg"
WIDTH, HEIGHT = 118, 32
_FONTS = re.compile(r"\s*@font-face \{.*?\}", re.DOTALL)


def picture(moment: TopView) -> str:
    """Return the frame as SVG."""
    console = Console(
        record=True, width=WIDTH, file=StringIO(), highlight=False, force_terminal=True
    )
    for part in frame(moment, HEIGHT):
        console.print(drawn(part))
    svg = console.export_svg(title="logberg top", unique_id="top")
    return _FONTS.sub("", svg).replace("Fira Code, monospace", "monospace")


async def _moment(cluster: RunningCluster) -> TopView:
    access = cluster.local.file.access()
    async with LogbergClient(cluster.local.controller_urls, access) as client:
        reading = TopReading(client, cluster.local.controller_urls)
        await reading.read()
        for number in range(3):
            await asyncio.to_thread(cluster.create, f"invoices-{number}", partitions=4)
        return await reading.read()


def main() -> None:
    """Write the picture, with one broker that was stopped a while ago."""
    with tempfile.TemporaryDirectory(prefix="logberg-top-") as folder:
        cluster = RunningCluster(Path(folder) / "cluster", brokers=3)
        try:
            cluster.start()
            for name in ("orders", "payments"):
                cluster.create(name, partitions=6, replication_factor=3)
            cluster.local.brokers[3].signal(signal.SIGSTOP)
            cluster.until(lambda: cluster.broker_states().get(3) != "online", "broker 3 is fenced")
            moment = asyncio.run(_moment(cluster))
        finally:
            cluster.local.brokers[3].signal(signal.SIGCONT)
            cluster.kill()
    PICTURE.write_text(picture(moment))


if __name__ == "__main__":
    main()
