"""Mutants of the log that Kafka's brokers fetch: its bytes, its high watermark, its comparison."""

from tests.mutants.mutant import Mutant, searched_in
from tests.mutants.patches import Patch, edited, gives

_KAFKA = searched_in("cluster", "kafka")
_REQUESTS = "kafka_listener.quorum_requests."
_PROJECTION = "kafka_listener.projection."


def _edit(target: str, *changes: tuple[str, str]) -> tuple[Patch, ...]:
    return (Patch(target, edited(*changes)),)


PROJECTING = (
    Mutant(
        "a projection that begins anew forgets the log's level",
        "I23",
        "Records get the versions of the lowest level after a restart.",
        _edit(
            _REQUESTS + "handlers.QuorumRequests.on_loaded",
            ("image.features.levels.get(METADATA_VERSION) or FIRST_LEVEL", "FIRST_LEVEL"),
        ),
        _KAFKA,
    ),
    Mutant(
        "a high watermark is told before the projection has caught up",
        "I23",
        "A new leader tells a lower one than its predecessor did.",
        _edit(
            _REQUESTS + "fetch.FetchRequests._high_watermark",
            ("if not self._projected.is_whole:", "if False:"),
        ),
        _KAFKA,
    ),
    Mutant(
        "nobody compares projected logs",
        "I23",
        "What other controllers tell of their digests is thrown away.",
        (Patch(_PROJECTION + "digest_exchange.DigestExchange.take", gives(None)),),
    ),
    Mutant(
        "a wrong projection is still shown",
        "I23",
        "A controller that knows that its projection is wrong answers Fetch with it.",
        _edit(
            _REQUESTS + "fetch.FetchRequests._answer_now",
            ("if not self._trusted():", "if False:"),
        ),
    ),
)
