"""The bill of materials: what a wheel needs to run, in CycloneDX's JSON.

Rule: it is made of the lock file and the wheel alone. So its hashes are those that an installation
checks, and the same commit gives the same bytes. Who needs whom comes from the metadata of the
installed packages, whose versions must be those of the lock file.
"""

import re
import uuid
from datetime import UTC, datetime
from hashlib import sha256
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from cyclonedx.model import (
    ExternalReference,
    ExternalReferenceType,
    HashAlgorithm,
    HashType,
    Property,
    XsUri,
)
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.output.json import JsonV1Dot6
from cyclonedx.schema import SchemaVersion
from cyclonedx.validation.json import JsonStrictValidator
from packageurl import PackageURL
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name, parse_wheel_filename

from releasing import ReleaseError
from releasing.building import SourceCommit
from releasing.locks import LockedPackage

_NUMBERS_OF_BILLS: Final = uuid.UUID("5c1c9f0e-6a0f-5d6e-9f65-7d1f2b7f6a10")
_OF_FILES: Final = (
    "each SHA-256 is that of one file of this version; an installation takes no other"
)


def make_bill(
    wheel: Path, commit: SourceCommit, locked: list[LockedPackage], needed: list[str]
) -> str:
    """Return the bill of a wheel. `needed`: what pyproject.toml asks for.

    Raises ReleaseError if it would not be valid by CycloneDX's schema, OSError.
    """
    digest = sha256(wheel.read_bytes()).hexdigest()
    name, version, _, _ = parse_wheel_filename(wheel.name)
    bom = Bom(serial_number=uuid.uuid5(_NUMBERS_OF_BILLS, digest))
    bom.metadata.timestamp = datetime.fromtimestamp(commit.time_s, UTC)
    ours = Component(
        type=ComponentType.APPLICATION,
        name=name,
        version=str(version),
        bom_ref=f"{name}@{version}",
        purl=PackageURL("pypi", None, name, str(version)),
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest)],
        properties=[Property(name="logberg:commit", value=commit.id)],
    )
    bom.metadata.component = ours
    parts = {entry.name: _component(entry) for entry in locked}
    for part in parts.values():
        bom.components.add(part)
    roots = [canonicalize_name(Requirement(one).name) for one in needed]
    if missing := [one for one in roots if one not in parts]:
        raise ReleaseError(f"the lock file lacks {', '.join(missing)}; run make lock")
    bom.register_dependency(ours, [parts[one] for one in roots])
    for entry in locked:
        needs = [parts[one] for one in needs_of(entry) if one in parts]
        bom.register_dependency(parts[entry.name], needs)
    text = JsonV1Dot6(bom).output_as_string(indent=2) + "\n"
    check_bill(text)
    return text


def check_bill(text: str) -> None:
    """Raise ReleaseError unless a text is valid by the published schema of CycloneDX 1.6."""
    problem = JsonStrictValidator(SchemaVersion.V1_6).validate_str(text)
    if problem is not None:
        raise ReleaseError(f"the bill of materials is not valid: {str(problem)[:500]}")


def needs_of(entry: LockedPackage) -> list[str]:
    """Return what a package needs on any Python and machine, without its extras.

    A package that is not installed here needs nothing of its own: the lock file holds it for other
    machines. Raises ReleaseError if another version is installed.
    """
    try:
        installed = distribution(entry.name)
    except PackageNotFoundError:
        return []
    if installed.version != entry.version:
        raise ReleaseError(
            f"{entry.name} {installed.version} is installed, and the lock file has "
            f"{entry.version}: delete .venv/.ready-dev and run make again"
        )
    asked = [Requirement(one) for one in installed.requires or []]
    plain = [one for one in asked if not re.search(r"\bextra\b", str(one.marker or ""))]
    return sorted({canonicalize_name(one.name) for one in plain})


def _component(entry: LockedPackage) -> Component:
    purl = PackageURL("pypi", None, entry.name, entry.version)
    hashes = [HashType(alg=HashAlgorithm.SHA_256, content=one) for one in entry.hashes]
    files = ExternalReference(
        type=ExternalReferenceType.DISTRIBUTION,
        url=XsUri(purl.to_string()),
        comment=_OF_FILES,
        hashes=hashes,
    )
    where = [Property(name="logberg:marker", value=entry.marker)] if entry.marker else []
    return Component(
        type=ComponentType.LIBRARY,
        name=entry.name,
        version=entry.version,
        bom_ref=f"{entry.name}@{entry.version}",
        purl=purl,
        external_references=[files],
        properties=where,
    )
