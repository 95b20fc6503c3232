"""The routes of imports, a part of the table in `controller.http.routes`."""

from typing import Final

from controller.http.route import Route
from metadata.messages import (
    ImportPartReply,
    ImportPartRequest,
    ImportReply,
    ImportRequest,
)

PARTS: Final = "/v1/import/parts"
IMPORT_ROUTES: Final = (
    Route(
        "POST",
        "/v1/import",
        "import_records",
        "Write what another store held: what is missing, as one transaction, or nothing",
        ImportReply,
        ImportRequest,
        changes=True,
    ),
    Route(
        "POST",
        PARTS,
        "keep_import_part",
        "Keep a part of a large import for a while; nothing is written",
        ImportPartReply,
        ImportPartRequest,
    ),
)
