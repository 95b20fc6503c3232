"""All targets by name.

Rule: a parser of bytes from elsewhere has a target here. `docs/fuzzing.md` lists them; a test
compares.
"""

from typing import Final

from tests.fuzz import of_credentials, of_files, of_heads, of_http, of_kafka, of_links
from tests.fuzz.target import FuzzTarget

TARGETS: Final[dict[str, FuzzTarget]] = {
    target.name: target
    for module in (of_http, of_links, of_kafka, of_files, of_heads, of_credentials)
    for target in module.TARGETS
}
