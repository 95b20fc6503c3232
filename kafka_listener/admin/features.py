"""UpdateFeatures, as our route of feature levels (KIP-584, 778)."""

from collections.abc import Mapping
from typing import Final

from kafka_listener.admin.admin_call import AdminCall
from kafka_listener.asking.in_steps import each
from kafka_listener.asking.kafka_code import KafkaCode
from kafka_listener.asking.request import Fields, KafkaFailure, Steps
from metadata.messages import (
    FeatureUpdate,
    UpdateFeaturesReply,
    UpdateFeaturesRequest,
    UpgradeType,
)

_UPGRADES: Final[Mapping[int, UpgradeType]] = {
    1: UpgradeType.UPGRADE,
    2: UpgradeType.SAFE_DOWNGRADE,
    3: UpgradeType.UNSAFE_DOWNGRADE,
}
_WITH_RESULTS: Final = 1
"""The last version whose response names each feature; later ones say it once for all."""


def update_features(call: AdminCall) -> Steps:
    """UpdateFeatures (57): all updates are made, or none."""
    updates = call.fields["FeatureUpdates"]
    if not updates:
        call.answer({"Results": [], **call.result(None)})
        return
    message = UpdateFeaturesRequest((yield from each(_update, updates)), call.dry_run)

    def then(_reply: UpdateFeaturesReply) -> None:
        shown = updates if call.version <= _WITH_RESULTS else ()
        results = ({"Feature": update["Feature"], **call.result(None)} for update in shown)
        call.answer({"Results": results, **call.result(None)})

    call.change("POST", "/v1/features", message, UpdateFeaturesReply, then)


def _update(update: Fields) -> FeatureUpdate:
    level = update["MaxVersionLevel"]
    if level < 0:
        raise KafkaFailure(
            KafkaCode.INVALID_UPDATE_VERSION,
            f"Invalid update version {level} for feature {update['Feature'][:100]}. A feature "
            "level is 0 or more.",
        )
    number = update.get("UpgradeType", 1)
    if update.get("AllowDowngrade"):
        number = 2
    upgrade = _UPGRADES.get(number)
    if upgrade is None:
        raise KafkaFailure(KafkaCode.INVALID_REQUEST, f"Unknown upgrade type {number}")
    return FeatureUpdate(update["Feature"], level, upgrade)
