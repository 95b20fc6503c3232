"""Makes releases: the wheel, what it needs, and the signature that others can check.

- `building`: the wheel of a commit, built twice and compared;
- `locks`: the lock files in `requirements/`;
- `bill`: the bill of materials (SBOM), in CycloneDX's JSON;
- `signing`: checksums of all files, signed with the project's key by OpenSSH;
- `advisories`: known vulnerabilities of all that is locked;
- `making`: all of these, one after the other.

Rule: nothing here is in the wheel, and nothing in the wheel imports it. ADR 0091 says why it is
done so. docs/releasing.md is for those who make a release, and for those who check one.
"""


class ReleaseError(Exception):
    """A release can't be made or isn't right. The message says what to do."""
