"""The route of imports, a part of the table in `controller.http.routes`."""

from typing import Final

from controller.http.route import Route
from metadata.messages import ImportReply, ImportRequest

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
)
