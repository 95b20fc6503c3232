"""`logberg certs`: certificates of a small authority of one's own, for a cluster.

Rule: `create` never replaces a file. `renew` keeps what a certificate says and makes a new key. The
names are those by which controllers judge who somebody is, so nobody has to write them by hand.
"""

import datetime as dt
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import click
from cryptography import x509

from logberg.cli.failure import Failure
from logberg.cli.output import output_option, print_json, say, show, table
from logberg.cli.suggesting_group import SuggestingGroup
from logberg.commands.revoked_certificates import reinstate, revoke, revoked
from logberg.local.local_ca import (
    LEAF_DAYS,
    LOOPBACK,
    LocalCertificateAuthority,
    authority_name,
)

RENEW_DAYS = 30
_NUMBER = re.compile(r"\d{1,9}")
_USER = re.compile(r"[A-Za-z0-9._-]{1,64}")
_HOST = re.compile(r"[A-Za-z0-9.:_-]{1,253}")
_URI = re.compile(r"(quorum|broker|user)://([^/]+)/(.+)")
_FOLDER = click.argument("folder", type=click.Path(path_type=Path, file_okay=False))


class Dated(NamedTuple):
    """A certificate in a file, and what it says."""

    path: Path
    uri: str
    hosts: tuple[str, ...]
    expires: dt.datetime
    is_authority: bool

    def days_left(self, now: dt.datetime) -> float:
        """Days until it expires; below 0: it has expired."""
        return (self.expires - now) / dt.timedelta(days=1)


@click.group("certs", cls=SuggestingGroup)
def command() -> None:
    """Make, renew and date certificates of an authority of your own, and revoke them.

    FOLDER gets ca.crt, ca.key, and NAME.crt and NAME.key for each process. Keep the folder apart
    from the nodes: who has ca.key can be every controller, broker and user. A node needs ca.crt and
    its own pair.
    """


command.add_command(revoke)
command.add_command(reinstate)
command.add_command(revoked)


@command.command("create")
@_FOLDER
@click.option("--cluster-id", required=True, help="The cluster's id, as `logberg cluster-id` drew.")
@click.option(
    "--controller",
    "controllers",
    multiple=True,
    metavar="N[=HOST,…]",
    help="For controller N, which others reach at these names and addresses.",
)
@click.option(
    "--broker", "brokers", multiple=True, metavar="N[=HOST,…]", help="The same for broker N."
)
@click.option("--user", "users", multiple=True, metavar="NAME", help="For the principal User:NAME.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=LEAF_DAYS,
    show_default=True,
    help="How long they are valid.",
)
def create(
    *,
    folder: Path,
    cluster_id: str,
    controllers: tuple[str, ...],
    brokers: tuple[str, ...],
    users: tuple[str, ...],
    days: int,
) -> None:
    """Make the authority, unless FOLDER has one, and a pair for each process and user."""
    if not _USER.fullmatch(cluster_id):
        raise click.UsageError(f"--cluster-id is {cluster_id!r}; generate one: logberg cluster-id")
    wanted = [_node("--controller", "controller", "quorum", said) for said in controllers]
    wanted += [_node("--broker", "broker", "broker", said) for said in brokers]
    wanted += [_user(name) for name in users]
    if not wanted:
        raise click.UsageError("name a process or a user: --controller, --broker, --user")
    names = [name for name, _, _ in wanted]
    for name in names:
        if (folder / f"{name}.crt").exists() or names.count(name) > 1:
            raise Failure(
                f"{folder / name}.crt is there already, or named twice; `logberg certs renew` "
                "replaces certificates"
            )
    existed = (folder / "ca.crt").exists()
    authority = _authority(folder, cluster_id)
    if not existed:
        say(f"wrote {authority.ca_path}: the authority, valid for ten years")
    for name, path, hosts in wanted:
        kind, _, rest = path.partition("/")
        authority.issue_new(name, f"{kind}://{cluster_id}/{rest}", hosts, days)
        say(f"wrote {folder / name}.crt and .key: {kind}://{cluster_id}/{rest}")


@command.command("renew")
@_FOLDER
@click.option(
    "--within",
    type=click.IntRange(0),
    default=RENEW_DAYS,
    show_default=True,
    metavar="DAYS",
    help="Renew what expires within so many days.",
)
@click.option("--all", "everything", is_flag=True, help="Renew all of them.")
@click.option(
    "--days",
    type=click.IntRange(1, 3650),
    default=LEAF_DAYS,
    show_default=True,
    help="How long the new ones are valid.",
)
def renew(*, folder: Path, within: int, everything: bool, days: int) -> None:
    """Replace certificates that expire soon by new ones with new keys and the same names.

    Copy the new pairs to their nodes and send each process SIGHUP.
    """
    now = dt.datetime.now(dt.UTC)
    if not (folder / "ca.key").exists():
        raise Failure(f"{folder} has no ca.key: name the folder of the authority")
    # The first certificate of a file is the process's own; an authority's may follow.
    first = {dated.path: dated for dated in reversed(list(_dated(folder)))}
    found = [dated for _, dated in sorted(first.items()) if _is_leaf(dated)]
    if not found:
        raise Failure(f"{folder} has no certificate; make some with `logberg certs create`")
    due = [dated for dated in found if everything or dated.days_left(now) < within]
    for dated in due:
        uri = _URI.fullmatch(dated.uri)
        if uri is None:
            raise Failure(
                f"{dated.path} names nobody of a cluster; it was not made by `certs create`"
            )
        _authority(folder, uri[2]).issue_new(dated.path.stem, dated.uri, dated.hosts, days)
        say(f"renewed {dated.path}: {dated.uri}")
    say(f"{len(due)} of {len(found)} renewed")


@command.command("expiry")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path))
@click.option(
    "--within",
    type=click.IntRange(0),
    default=14,
    show_default=True,
    metavar="DAYS",
    help="Exit 1 if one expires within so many days.",
)
@output_option
def expiry(*, paths: tuple[Path, ...], within: int, output: str) -> None:
    """Show when the certificates in files and folders expire, the first one first.

    Exit 1 if one has expired, or does within --within days.
    """
    now = dt.datetime.now(dt.UTC)
    found = sorted(
        (dated for path in paths for dated in _dated(path)), key=lambda dated: dated.expires
    )
    if not found:
        raise Failure(f"no certificate is in {', '.join(map(str, paths))}")
    if output == "json":
        print_json(
            [
                {
                    "file": str(dated.path),
                    "uri": dated.uri,
                    "expires": dated.expires.isoformat(),
                    "daysLeft": round(dated.days_left(now), 1),
                }
                for dated in found
            ]
        )
    else:
        rows = [
            (str(d.path), d.uri or "-", d.expires.strftime("%Y-%m-%d %H:%M"), int(d.days_left(now)))
            for d in found
        ]
        show(table(["file", "is", "expires (UTC)", "days left"], rows))
    soon = [dated for dated in found if dated.days_left(now) < within]
    if soon:
        raise Failure(
            f"{len(soon)} of {len(found)} expire within {within} days, the first one: "
            f"{soon[0].path}"
        )


def _node(option: str, role: str, kind: str, said: str) -> tuple[str, str, tuple[str, ...]]:
    """Return file name, URI without the cluster, and hosts."""
    number, equals, hosts = said.partition("=")
    named = tuple(host for host in hosts.split(",") if host)
    if not _NUMBER.fullmatch(number) or (equals and not named):
        raise click.UsageError(f"{option} is {said!r}; use a number, or NUMBER=HOST,HOST")
    if bad := [host for host in named if not _HOST.fullmatch(host)]:
        raise click.UsageError(f"{option} names {bad[0]!r}; use a host's name or its address")
    number = str(int(number))
    return f"{role}-{number}", f"{kind}/{number}", named or LOOPBACK


def _user(name: str) -> tuple[str, str, tuple[str, ...]]:
    if not _USER.fullmatch(name):
        raise click.UsageError(f"--user is {name!r}; use letters, digits and . _ -")
    return f"user-{name}", f"user/{name}", ()


def _is_leaf(dated: Dated) -> bool:
    """Tell whether `renew` can replace it: it writes pairs of NAME.crt and NAME.key."""
    return not dated.is_authority and dated.path.suffix == ".crt"


def _authority(folder: Path, cluster_id: str) -> LocalCertificateAuthority:
    """Open the authority in a folder, or make it. Raises Failure."""
    if (folder / "ca.crt").exists() is not (folder / "ca.key").exists():
        raise Failure(
            f"{folder} has only one of ca.crt and ca.key. Put the other one back: a new authority "
            "would end the trust in all certificates that this one signed."
        )
    try:
        authority = LocalCertificateAuthority(folder, cluster_id, dt.datetime.now(dt.UTC))
    except (OSError, ValueError, TypeError) as error:
        raise Failure(f"the authority in {folder} can't be used: {error}") from None
    whose = authority.certificate.subject
    if whose != authority_name(cluster_id):
        raise Failure(
            f"{folder} holds the authority of another cluster: {whose.rfc4514_string()}. Give each "
            "cluster a folder of its own"
        )
    return authority


def _dated(path: Path) -> Iterator[Dated]:
    """Read the certificates of a file, or of a folder's .crt and .pem files. Raises Failure."""
    files = [path]
    if path.is_dir():
        files = sorted([*path.glob("*.crt"), *path.glob("*.pem")])
    for file in files:
        try:
            certificates = x509.load_pem_x509_certificates(file.read_bytes())
        except (OSError, ValueError) as error:
            why = getattr(error, "strerror", None) or "it holds no certificate in PEM"
            raise Failure(f"{file} can't be read: {why}") from None
        for certificate in certificates:
            yield _read(file, certificate)


def _read(file: Path, certificate: x509.Certificate) -> Dated:
    uris: list[str] = []
    hosts: list[str] = []
    is_authority = False
    for extension in certificate.extensions:
        value = extension.value
        if isinstance(value, x509.SubjectAlternativeName):
            uris = value.get_values_for_type(x509.UniformResourceIdentifier)
            hosts = value.get_values_for_type(x509.DNSName)
            hosts += [str(each) for each in value.get_values_for_type(x509.IPAddress)]
        elif isinstance(value, x509.BasicConstraints):
            is_authority = value.ca
    uri = uris[0] if uris else ("an authority" if is_authority else "")
    return Dated(file, uri, tuple(hosts), certificate.not_valid_after_utc, is_authority)
