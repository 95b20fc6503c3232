"""The old name of the project occurs only where `old_name.txt` allows it, with the reason.

Rule: a line of that file is `files | text | why`. `files` is a pattern of paths (`*` also matches
`/`), `text` a regular expression. The search covers paths and contents, and ignores case.
"""

import re
import subprocess
from collections.abc import Iterable, Mapping
from fnmatch import fnmatchcase
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
LIST = Path(__file__).with_name("old_name.txt")
OLD = "quor" + "ate"


class Allowed(NamedTuple):
    files: str
    text: str
    why: str


def allowed() -> list[Allowed]:
    lines = (line for line in LIST.read_text().splitlines() if line and not line.startswith("#"))
    return [Allowed(*(part.strip() for part in line.split(" | "))) for line in lines]


def tracked() -> dict[str, str]:
    """What git tracks, by path; bytes that are no text do not matter to the search."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True)
    paths = [ROOT / name for name in listed.stdout.decode().split("\0") if name]
    return {
        str(path.relative_to(ROOT)): path.read_bytes().decode(errors="replace")
        for path in paths
        if path.is_file()
    }


def search(files: Mapping[str, str], rules: Iterable[Allowed]) -> tuple[list[str], set[Allowed]]:
    """Return what no rule allows, as `path:line: text`, and the rules that allowed nothing."""
    found, unused = [], set(rules)
    for name, content in files.items():
        if OLD not in name.lower() and OLD not in content.lower():
            continue
        here = [rule for rule in rules if fnmatchcase(name, rule.files)]
        for number, line in enumerate((name, *content.split("\n"))):
            rest = line
            for rule in here if OLD in line.lower() else ():
                rest, times = re.subn(rule.text, "", rest)
                if times:
                    unused.discard(rule)
            if OLD in rest.lower():
                found.append(f"{name}:{number}: {line.strip()[:200]}")
    return found, unused


def test_the_old_name_stands_only_where_the_list_allows_it() -> None:
    found, _ = search(tracked(), allowed())
    assert not found, "rename it, or give the reason in old_name.txt:\n" + "\n".join(found)


def test_every_line_of_the_list_is_needed() -> None:
    _, unused = search(tracked(), allowed())
    assert not unused, f"take these lines out of {LIST.name}: {sorted(unused)}"


def test_the_search_finds_each_kind_of_place() -> None:
    rule = Allowed("docs/*", rf"x-{OLD}-[a-z]+", "a test")
    files = {
        "docs/a/b.md": f"x-{OLD}-reason\nx-{OLD}-reason of {OLD.title()}",
        f"src/{OLD}.py": "",
        "src/settings.py": f"{OLD.upper()}_DATA and x-{OLD}-reason",
    }
    found, unused = search(files, [rule])
    assert [line.split(": ")[0] for line in found] == [
        "docs/a/b.md:2",
        f"src/{OLD}.py:0",
        "src/settings.py:1",
    ]
    assert unused == set()
    assert search({"src/a.py": ""}, [rule]) == ([], {rule})
