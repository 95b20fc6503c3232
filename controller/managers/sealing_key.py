"""Chooses the cluster key under which a controller seals secrets (ADR 0031)."""

from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.sealing import ClusterKey, key_id_of


def usable_key(key: ClusterKey | None, image: MetadataImage) -> ClusterKey:
    """Return the key under which secrets are sealed.

    Raises LogbergError SECURITY_DISABLED without one, or if the log's credentials are sealed under
    another: this controller has a wrong file.
    """
    if key is None:
        raise LogbergError(
            ErrorCode.SECURITY_DISABLED,
            "this controller has no cluster key, so it can't seal secrets: put the same "
            "cluster.key into every controller's folder (logberg cluster-key) and restart it",
        )
    first = next(iter(image.scram.order), None)
    if first is not None:
        used = key_id_of(image.scram.credentials[first].stored_key)
        if used is not None and used != key.id:
            raise LogbergError(
                ErrorCode.SECURITY_DISABLED,
                f"this controller's cluster key is {key.id.hex()}, and the log's credentials are "
                f"sealed under {used.hex()}: put the file of the other controllers here",
            )
    return key
