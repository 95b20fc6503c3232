"""Makes and checks releases: `make wheel|release|verify-release|advisories`."""

import argparse
import sys
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from typing import Final

from releasing import ReleaseError
from releasing.advisories import ACCEPTED, AdvisoryVerdict, check_advisories, read_accepted
from releasing.building import build_wheel, changed_files, commit_of
from releasing.making import make_release
from releasing.signing import verify

ROOT: Final = Path(__file__).resolve().parents[1]
SIGNERS: Final = Path(__file__).with_name("allowed_signers")
NOT_CHECKED: Final = 3
"""The exit code where a check was required and could not be made."""


def main(arguments: list[str] | None = None) -> int:
    """Run a command; return its exit code."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ReleaseError, OSError) as error:
        sys.stderr.write(f"{error}\n")
        return 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m releasing", description=__doc__)
    parser.add_argument("--repository", type=Path, default=ROOT)
    commands = parser.add_subparsers(required=True)
    wheel = commands.add_parser("wheel", help="build the commit's wheel twice, and compare")
    wheel.add_argument("--out", type=Path, default=ROOT / "dist")
    wheel.set_defaults(run=_wheel)
    release = commands.add_parser("release", help="make and sign the commit's release")
    release.add_argument("--out", type=Path, default=ROOT / "dist")
    release.add_argument("--key", type=Path, required=True)
    release.add_argument("--signers", type=Path, default=SIGNERS)
    release.add_argument("--unchecked", action="store_true", help="if no advisory source answers")
    release.set_defaults(run=_release)
    check = commands.add_parser("verify", help="check a release")
    check.add_argument("folder", type=Path)
    check.add_argument("--signers", type=Path, default=SIGNERS)
    check.set_defaults(run=_verify)
    advisories = commands.add_parser("advisories", help="look for known vulnerabilities")
    advisories.add_argument("--required", action="store_true", help="fail if it can't be checked")
    advisories.add_argument(
        "--url", default="", help="ask this source, which speaks OSV's protocol"
    )
    advisories.add_argument("--lock", type=Path)
    advisories.add_argument("--accepted", type=Path, default=ACCEPTED)
    advisories.set_defaults(run=_advisories)
    return parser


def _wheel(options: argparse.Namespace) -> int:
    commit = commit_of(options.repository)
    if changed_files(options.repository):
        _say(
            f"the work tree has changes; this is the wheel of commit {commit.id[:12]} without them"
        )
    wheel = build_wheel(options.repository, commit, options.out)
    _say(f"two builds of commit {commit.id[:12]} have equal bytes")
    _say(f"{sha256(wheel.read_bytes()).hexdigest()}  {wheel}")
    return 0


def _release(options: argparse.Namespace) -> int:
    checked = _check_all(options.repository / "requirements" / "dev.lock", "")
    if checked is AdvisoryVerdict.FOUND:
        return 1
    if checked is AdvisoryVerdict.NOT_CHECKED and not options.unchecked:
        _say("a release needs this check; --unchecked makes one without it")
        return NOT_CHECKED
    made = make_release(options.repository, options.key, options.signers, options.out, _say)
    _say(f"made {made}; docs/releasing.md says how to check it")
    return 0


def _verify(options: argparse.Namespace) -> int:
    for name in verify(options.folder, options.signers):
        _say(f"right: {name}")
    return 0


def _advisories(options: argparse.Namespace) -> int:
    lock = options.lock or options.repository / "requirements" / "dev.lock"
    match _check_all(lock, options.url, options.accepted):
        case AdvisoryVerdict.FOUND:
            return 1
        case AdvisoryVerdict.NOT_CHECKED if options.required:
            return NOT_CHECKED
    return 0


def _check_all(lock: Path, url: str, accepted: Path = ACCEPTED) -> AdvisoryVerdict:
    today = datetime.now(UTC).date()
    checked = check_advisories(lock, read_accepted(accepted), today, url=url)
    for line in checked.lines:
        _say(line)
    return checked.verdict


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())
