"""Which function answers which route of declared state."""

from collections.abc import Mapping
from typing import Final

from controller.http.clients.asked import MakeChange, Read
from controller.http.declared.applying import apply
from controller.http.declared.exporting import export

CHANGES: Final[Mapping[str, MakeChange]] = {"apply": apply}
READS: Final[Mapping[str, Read]] = {"export": export}
