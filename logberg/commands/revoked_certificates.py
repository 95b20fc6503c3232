"""`logberg certs revoke`, `reinstate` and `revoked`: what the controllers refuse."""

from pathlib import Path

import click
from cryptography import x509

from logberg.cli.connection_options import (
    ChangeOptions,
    ClusterConnection,
    change_options,
    print_change,
    reading_options,
)
from logberg.cli.failure import Failure
from logberg.cli.option_group import option_group
from logberg.cli.output import print_json, say, show, table
from logberg.client.paged_lists import without_pages
from metadata.credentials import time_text
from metadata.messages.credentials import RevocationDescription

_which = option_group(
    click.option("--serial", help="The certificate's serial number, in hexadecimal digits."),
    click.option(
        "--file",
        "certificate",
        type=click.Path(path_type=Path, exists=True, dir_okay=False),
        help="The certificate's file (PEM).",
    ),
    click.option("--principal", help="All certificates of this principal, such as User:alice."),
)


@click.command("revoke")
@_which
@change_options
def revoke(
    *,
    serial: str | None,
    certificate: Path | None,
    principal: str | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Let all controllers refuse a certificate, or those of a principal made until now.

    Open connections end within 5 seconds.
    """
    serial = _serial(serial, certificate, principal)
    reply = cluster.ask(
        lambda client: client.revoke_certificates(
            serial=serial, principal=principal, **change.arguments()
        )
    )
    print_change(reply, output, f"revoked {_named(reply.revocation)} (offset {reply.offset})")


@click.command("reinstate")
@_which
@change_options
def reinstate(
    *,
    serial: str | None,
    certificate: Path | None,
    principal: str | None,
    change: ChangeOptions,
    cluster: ClusterConnection,
    output: str,
) -> None:
    """Take a revocation back."""
    serial = _serial(serial, certificate, principal)
    reply = cluster.ask(
        lambda client: client.reinstate_certificates(
            serial=serial, principal=principal, **change.arguments()
        )
    )
    print_change(reply, output, f"reinstated {_named(reply.revocation)} (offset {reply.offset})")


@click.command("revoked")
@reading_options
def revoked(*, cluster: ClusterConnection, output: str) -> None:
    """List what is revoked."""
    reply = cluster.ask(lambda client: client.revocations())
    if output == "json":
        print_json(without_pages(reply))
    elif not reply.revocations:
        say("no certificate is revoked")
    else:
        show(
            table(
                ["revoked", "by", "at"],
                [
                    (_named(each), each.revoked_by, time_text(each.revoked_ms))
                    for each in reply.revocations
                ],
            )
        )


def _serial(serial: str | None, certificate: Path | None, principal: str | None) -> str | None:
    if sum(given is not None for given in (serial, certificate, principal)) != 1:
        raise click.UsageError("name one of --serial, --file and --principal")
    if certificate is None:
        return serial
    try:
        found = x509.load_pem_x509_certificate(certificate.read_bytes())
    except (OSError, ValueError) as error:
        raise Failure(f"{certificate} holds no certificate in PEM: {error}") from None
    return f"{found.serial_number:X}"


def _named(revocation: RevocationDescription) -> str:
    if revocation.serial is not None:
        return f"certificate {revocation.serial}"
    before = time_text(revocation.before_ms)
    return f"certificates of {revocation.principal} that begin before {before}"
