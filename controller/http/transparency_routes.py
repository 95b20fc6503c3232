"""The routes with which others check the log; `controller.http.transparency` answers them.

Rule: the paths of the head and of the tiles are C2SP's. A tile's path has as many parts as its
number needs, so `find_route` gives everything below `TILE_PREFIX` to one route.
"""

from typing import Final

from controller.http.route import READS, Parameter, Route
from metadata.messages import (
    BatchProofReply,
    ChangeHeadKeyReply,
    ChangeHeadKeyRequest,
    ListHeadKeysReply,
)

TILE_PREFIX: Final = "/tile/"
TILE_ROUTE: Final = Route(
    "GET",
    "/tile/{path}",
    "read_tile",
    "A tile of the tree of batches, or a bundle of its entries, as C2SP's tlog-tiles names them",
    None,
    content="application/octet-stream",
)
TRANSPARENCY_ROUTES: Final = (
    Route(
        "GET",
        "/checkpoint",
        "read_signed_head",
        "The newest head that a majority of the controllers signed, as a C2SP checkpoint",
        None,
        content="text/plain; charset=utf-8",
    ),
    Route(
        "GET",
        "/v1/proofs/{offset}",
        "make_proof",
        "A proof that the batch with this offset, or of this request id, is in the log under the "
        "newest signed head",
        BatchProofReply,
        None,
        (
            Parameter(
                "olderSize",
                "integer",
                "also prove that the log's first so many batches are still the same",
                least=1,
            ),
        ),
    ),
    Route(
        "GET",
        "/v1/quorum/head-keys",
        "list_head_keys",
        "The keys that sign heads, as the log names them, and the newest head in the log",
        ListHeadKeysReply,
        None,
        READS,
    ),
    Route(
        "POST",
        "/v1/quorum/head-keys",
        "change_head_key",
        "Ask a controller to draw another key for heads, or name one because the other is lost",
        ChangeHeadKeyReply,
        ChangeHeadKeyRequest,
        changes=True,
    ),
)
