"""What a broker's server.properties has where rights are enforced (ADR 0092).

Rule: nobody is anonymous. One listener is for who shows a certificate: other brokers, and the
administrator. The other one is for users who log in with a password. Kafka's StandardAuthorizer
reads the entries from the log. Brokers are super users of each other, as Kafka's manual advises:
they replicate every topic.
"""

from collections.abc import Iterable, Mapping
from typing import Final

STANDARD_AUTHORIZER: Final = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
_LISTENER: Final = "CERTIFICATES"
_PREFIX: Final = f"listener.name.{_LISTENER.lower()}."


def enforced_properties(
    address: str, scram_address: str, tls: Mapping[str, str], brokers: Iterable[int]
) -> dict[str, str]:
    """Return the keys. `tls`: what the broker shows, and whom it believes. `brokers`: all ids."""
    both = f"{_LISTENER}://{address},SCRAM://{scram_address}"
    names = ["admin", *(f"broker-{n}" for n in brokers)]
    return {
        "listener.security.protocol.map": (f"CONTROLLER:SSL,{_LISTENER}:SSL,SCRAM:SASL_PLAINTEXT"),
        "listeners": both,
        "advertised.listeners": both,
        "inter.broker.listener.name": _LISTENER,
        **{f"{_PREFIX}{key}": value for key, value in tls.items()},
        f"{_PREFIX}ssl.client.auth": "required",
        # The common name of the certificate is the user's name.
        f"{_PREFIX}ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/",
        "authorizer.class.name": STANDARD_AUTHORIZER,
        "super.users": ";".join(f"User:{name}" for name in names),
        "allow.everyone.if.no.acl.found": "false",
    }
