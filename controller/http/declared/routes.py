"""The routes of declared state, a part of the table in `controller.http.routes`."""

from typing import Final

from controller.http.route import PAGE, READS, Parameter, Route
from metadata.messages import ApplyReply, ApplyRequest, DeclaredKind, ExportReply

DECLARED_ROUTES: Final = (
    Route(
        "POST",
        "/v1/apply",
        "apply",
        "Make topics, configs, quotas, ACLs and users as declared: completely, or not at all",
        ApplyReply,
        ApplyRequest,
        changes=True,
    ),
    Route(
        "GET",
        "/v1/export",
        "export",
        "The state as one declares it, for an apply; no secret is shown",
        ExportReply,
        None,
        (
            *READS,
            Parameter(
                "kinds", "string", f"only these, such as topics,acls; of {', '.join(DeclaredKind)}"
            ),
            Parameter("assignments", "boolean", "with the brokers of each partition"),
            *PAGE,
        ),
    ),
)
