"""Reads an image in OCI's layout, and unpacks its root tree."""

import hashlib
import json
import subprocess
from pathlib import Path
from typing import Any, NamedTuple


class OciImage(NamedTuple):
    """What an image says of itself."""

    config: dict[str, Any]
    layers: list[Path]

    @property
    def settings(self) -> dict[str, Any]:
        """User, entry point and so on."""
        found: dict[str, Any] = self.config["config"]
        return found

    def unpack(self, folder: Path) -> None:
        """Write the root tree, with its owners. Needs root."""
        # Everybody may enter the root of a container.
        folder.chmod(0o755)
        for layer in self.layers:
            command = ["tar", "--extract", "--numeric-owner", "--file", str(layer)]
            subprocess.run([*command, "--directory", str(folder)], check=True)
        assert not list(folder.rglob(".wh.*")), "a layer removes files of another one"


def read_image(layout: Path) -> OciImage:
    """Read the only image of a layout. Raises AssertionError if a digest doesn't fit its bytes."""
    assert json.loads((layout / "oci-layout").read_text())["imageLayoutVersion"] == "1.0.0"
    (entry,) = json.loads((layout / "index.json").read_text())["manifests"]
    manifest = json.loads(_blob(layout, entry["digest"]).read_text())
    assert manifest["schemaVersion"] == 2
    assert manifest["config"]["mediaType"] == "application/vnd.oci.image.config.v1+json"
    config = json.loads(_blob(layout, manifest["config"]["digest"]).read_text())
    return OciImage(config, [_blob(layout, layer["digest"]) for layer in manifest["layers"]])


def _blob(layout: Path, digest: str) -> Path:
    kind, _, value = digest.partition(":")
    path = layout / "blobs" / kind / value
    with path.open("rb") as file:
        assert hashlib.file_digest(file, kind).hexdigest() == value, path
    return path
