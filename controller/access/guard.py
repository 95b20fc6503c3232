"""Decides whether a request is allowed, from the entries of an image and the controller's settings.

Invariant: nothing fails open. What has no entry in the table, a broker's credentials that speak for
another broker, and a claim to ask for somebody else that is not granted are refused. A refusal says
the name of a topic that was asked for by its id only to who may describe the topic.

A `RequestAccess` belongs to one request and is asked for each image that the request meets: when it
arrives, when it is decided, when it is answered (`controller.http.access_checks`). Asking again
costs nothing while the entries are the same. `Enforcement.LOG_ONLY` logs and counts what `ON` would
refuse, and refuses nothing.
"""

from collections import Counter
from collections.abc import Callable, Generator
from typing import Final, NamedTuple, Protocol

from controller.access.listing import ListFilter
from controller.access.request_needs import RequestFacts
from controller.access.rights import CLUSTER_ACTION, DESCRIBE_CLUSTER, AnyOf, Right, on_topic
from controller.access.route_access import ROUTE_ACCESS, OpenTo, RouteAccess
from metadata.acl_rules import AclPolicy, Action, Enforcement, Verdict, authorize
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.image.acls import AclsImage
from metadata.records import AclOperation, AclPatternType, AclResourceType
from metadata.steps import finished
from metadata.uuids import uuid_text
from runtime.http.requests import ANONYMOUS
from runtime.sockets.refusals import ACCESS, Refusals

LOCAL_HOST: Final = "127.0.0.1"
"""The host of a caller on a unix socket."""
_STEP_CHARS: Final = 4_096
"""Characters of names that are looked up between two yields; a check costs by the name's length.
Also the number of resources that are looked at between two."""
_BROKER: Final = "Broker:"
_HIDDEN: Final = "hidden"
"""The reason of a verdict that the asker shall not hear."""
_NOT_AS_A_WHOLE: Final = (OpenTo.PUBLIC, OpenTo.EACH_CHANGE, OpenTo.EACH_PART)


class Asker(NamedTuple):
    """For whom a request asks, and from where."""

    principal: str
    host: str
    itself: bool = True
    """The caller asks for itself. Otherwise a broker asks for a user."""


class AccessSettings(Protocol):
    """What the settings of a controller, or of an agent, say about rights."""

    @property
    def authorization(self) -> str:
        """One of `Enforcement`."""

    @property
    def super_users(self) -> frozenset[str]:
        """Principals that may do everything."""

    @property
    def allow_if_no_acl(self) -> bool:
        """Everybody may use what no entry is about."""


class AccessGuard:
    """Judges requests on one node."""

    def __init__(
        self,
        config: AccessSettings,
        refusals: Refusals,
        on_passed: Callable[[str, "Asker", LogbergError], None] = lambda *_: None,
    ) -> None:
        """`refusals` logs with a limit on the number of lines.

        `on_passed` hears of each request that is answered only because rights are logged.
        """
        self._on_passed = on_passed
        self.enforcement = Enforcement(config.authorization)
        self._acl_policy = AclPolicy(config.super_users, config.allow_if_no_acl)
        self._refusals = refusals
        self.refused: Counter[tuple[str, str]] = Counter()
        """For metrics: refused requests by route, and whether that was enforced (yes or no)."""

    @property
    def off(self) -> bool:
        """Nothing is judged."""
        return self.enforcement is Enforcement.OFF

    def of(self, route: str, asker: Asker, facts: RequestFacts) -> "RequestAccess":
        """Return what judges one request."""
        return RequestAccess(self, route, ROUTE_ACCESS.get(route), asker, facts)

    def declared(
        self, name: str, access: RouteAccess | None, asker: Asker, facts: RequestFacts
    ) -> "RequestAccess":
        """Return what judges a request that asks no route."""
        return RequestAccess(self, name, access, asker, facts)

    def is_public(self, route: str) -> bool:
        """Return whether everybody may ask a route, without credentials."""
        access = ROUTE_ACCESS.get(route)
        return access is not None and access.open_to is OpenTo.PUBLIC

    @property
    def super_users(self) -> frozenset[str]:
        """Principals that may do everything."""
        return self._acl_policy.super_users

    def is_super(self, asker: Asker) -> bool:
        """Return whether the settings let the asker do everything."""
        return asker.principal in self.super_users

    def may(self, acls: AclsImage, asker: Asker, right: Right) -> bool:
        """Return whether the asker has a right, or rights are not enforced."""
        on = self.enforcement is Enforcement.ON
        return not on or self.verdict(acls, asker, right).allowed

    def list_filter(self, acls: AclsImage, asker: Asker, operation: AclOperation) -> ListFilter:
        """Return what says which names an asker may see."""
        host = asker.host or LOCAL_HOST
        return ListFilter(acls, self._acl_policy, asker.principal, host, operation)

    def verdict(self, acls: AclsImage, asker: Asker, right: Right) -> Verdict:
        """Return what the entries say about a right."""
        host = asker.host or LOCAL_HOST
        action = Action(asker.principal, host, right.operation, right.resource_type, right.name)
        return authorize(acls, action, self._acl_policy, and_below=right.and_below)

    def enforced(self, error: LogbergError) -> LogbergError | None:
        """Return a refusal, or None where nothing is enforced."""
        return error if self.enforcement is Enforcement.ON else None

    def tell(self, route: str, asker: Asker, error: LogbergError, *, always: bool = False) -> None:
        """Count and log a refused request, once.

        `always`: it is refused even where rights are not enforced.
        """
        enforced = "yes" if always or self.enforcement is Enforcement.ON else "no"
        self.refused[route, enforced] += 1
        if self.enforcement is Enforcement.LOG_ONLY and not always:
            self._on_passed(route, asker, error)
        self._refusals.refused(
            ACCESS,
            who=asker.principal,
            address=asker.host or "unix socket",
            operation=route,
            lacks=error.details.get("lacks", ""),
            enforced=enforced,
        )


class RequestAccess:
    """Judges one request."""

    def __init__(
        self,
        guard: AccessGuard,
        route: str,
        access: RouteAccess | None,
        asker: Asker,
        facts: RequestFacts,
    ) -> None:
        self._guard = guard
        self._route = route
        self._access = access
        self._asker = asker
        self._facts = facts
        self._allowed_by: AclsImage | None = None
        """The entries that allowed it last."""
        self._told = False

    @property
    def asker(self) -> Asker:
        """For whom the request asks."""
        return self._asker

    @property
    def needs_image(self) -> bool:
        """Whether the entries of an image have a say."""
        access = self._access
        return (
            access is not None
            and access.open_to is OpenTo.BY_RIGHTS
            and not self._guard.is_super(self._asker)
        )

    @property
    def was_allowed(self) -> bool:
        """Whether the entries of some image have allowed the request."""
        return self._allowed_by is not None

    def refusal(self, image: MetadataImage) -> LogbergError | None:
        """Return why the request is refused by this image; None: it is allowed."""
        return finished(self.steps(image))

    def allows(self, image: MetadataImage) -> bool:
        """Return whether the request is allowed by this image."""
        return self.refusal(image) is None

    def list_filter(self, image: MetadataImage) -> ListFilter | None:
        """Return what says which entries of a list the asker may see; None: all of them."""
        listing = None if self._access is None else self._access.listing
        if listing is None or self._guard.may(image.acls, self._asker, listing.of_all):
            return None
        return self._guard.list_filter(image.acls, self._asker, listing.operation)

    def has(self, image: MetadataImage, need: AnyOf) -> bool:
        """Return whether the asker has one of these rights, or rights are not enforced."""
        return any(self._guard.may(image.acls, self._asker, right) for right in need)

    def check(self, image: MetadataImage) -> Generator[None, None, None]:
        """Do the same in steps. Raises LogbergError."""
        refused = yield from self.steps(image)
        if refused is not None:
            raise refused

    def steps(self, image: MetadataImage) -> Generator[None, None, LogbergError | None]:
        """Return the refusal, or None, in steps."""
        access = self._access
        if access is not None and not access.by_image and self._allowed_by is image.acls:
            return None
        error = yield from self._judged(image)
        if error is None:
            self._allowed_by = image.acls
            return None
        if not self._told:
            self._told = True
            self._guard.tell(self._route, self._asker, error)
        return self._guard.enforced(error)

    def _judged(self, image: MetadataImage) -> Generator[None, None, LogbergError | None]:
        access, asker = self._access, self._asker
        if access is None:
            return _refused(asker, self._route, "a right that exists: the route declares none")
        if access.open_to in _NOT_AS_A_WHOLE:
            return None
        if access.open_to is OpenTo.KNOWN:
            if asker.principal != ANONYMOUS.principal:
                return None
            return _refused(asker, self._route, "credentials: show a token or a certificate")
        of_broker = asker.itself and asker.principal.startswith(_BROKER)
        if of_broker and access.broker is not None:
            broker_id = access.broker(self._facts)
            if broker_id is not None and asker.principal != f"{_BROKER}{broker_id}":
                return _refused(
                    asker,
                    self._route,
                    f"the credentials of {_BROKER}{broker_id}, whose request it is",
                )
        looked_up = 0
        for need in access.needs(self._facts, image):
            if self._is_filtered(access, need):
                continue
            error = self._missing(image, need, of_broker=of_broker and access.broker is not None)
            if error is None and need[0].and_below:
                error = yield from self._refused_below(image.acls, need)
            if error is not None:
                return error
            looked_up += sum(len(right.name) for right in need)
            if looked_up > _STEP_CHARS:
                looked_up = 0
                yield
        return None

    def _is_filtered(self, access: RouteAccess, need: AnyOf) -> bool:
        """Return whether the answer is a list that has only what the asker may see."""
        listing, known = access.listing, self._asker.principal != ANONYMOUS.principal
        return listing is not None and known and need == (listing.of_all,)

    def _missing(
        self, image: MetadataImage, need: AnyOf, *, of_broker: bool
    ) -> LogbergError | None:
        """Return why none of the rights is there; None: one is. The widest right is asked first."""
        verdict = Verdict(allowed=False, reason="")
        for right in reversed(need):
            verdict = self._guard.verdict(image.acls, self._asker, right)
            built_in = of_broker and right is CLUSTER_ACTION and verdict.reason != "deny"
            if verdict.allowed or built_in:
                return None
        if need[0].asked_by_id and not self._may_describe(image, need[0].name):
            need = tuple(right.by_its_id for right in need)
            verdict = Verdict(allowed=False, reason=_HIDDEN)
        return _lacks(self._asker, self._route, need, verdict)

    def _may_describe(self, image: MetadataImage, topic: str) -> bool:
        rights = DESCRIBE_CLUSTER, on_topic(AclOperation.DESCRIBE, topic)
        return any(self._guard.verdict(image.acls, self._asker, each).allowed for each in rights)

    def _refused_below(
        self, acls: AclsImage, need: AnyOf
    ) -> Generator[None, None, LogbergError | None]:
        """Look for a name in the right's range that the asker may not use.

        Only names that entries are about can differ from the range as a whole: an entry may deny
        one, and where no entry is about the range (`allow_if_no_acl`), one may have entries.
        """
        right = need[0]
        # In no order: sorting the keys of many resources would take long in one go.
        keys = (key for key, _ in acls.resources.unordered_items())
        for number, (kind, pattern, name) in enumerate(keys, start=1):
            if kind == right.resource_type and name.startswith(right.name):
                prefixed = pattern == AclPatternType.PREFIXED
                below = right._replace(name=name, and_below=prefixed)
                verdict = self._guard.verdict(acls, self._asker, below)
                if not verdict.allowed:
                    return _lacks(self._asker, self._route, need, verdict)
            if number % _STEP_CHARS == 0:
                yield
        return None


def is_broker_s_own(action: Action) -> bool:
    """Return whether it is what a broker's own credentials allow, for requests of that broker."""
    right = Right(action.operation, action.resource_type, action.resource_name)
    return action.principal.startswith(_BROKER) and right == CLUSTER_ACTION


def _lacks(asker: Asker, route: str, need: AnyOf, verdict: Verdict) -> LogbergError:
    """Return the refusal of whoever has none of these rights. `verdict`: of the first of them."""
    entry = verdict.entry
    rights = ", or ".join(right.in_words for right in need)
    why = {
        "deny": f"entry {uuid_text(entry.id)} denies it to {entry.principal}" if entry else "",
        _HIDDEN: "who may not describe the topic hears no more about it",
        "no entry matches": "there are access control entries for the resource, and none allows it",
    }.get(verdict.reason, "no access control entry is about the resource")
    topical = need[0].resource_type is AclResourceType.TOPIC
    code = (
        ErrorCode.TOPIC_AUTHORIZATION_FAILED if topical else ErrorCode.CLUSTER_AUTHORIZATION_FAILED
    )
    details = {"principal": asker.principal[:249], "lacks": need[0].in_words}
    if entry is not None:
        details["entry"] = uuid_text(entry.id)
    return LogbergError(
        code, f"{asker.principal[:249]} may not {_words(route)}: it lacks {rights}; {why}", details
    )


def _refused(asker: Asker, route: str, lacks: str) -> LogbergError:
    return LogbergError(
        ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
        f"{asker.principal[:249]} may not {_words(route)}: it lacks {lacks}",
        {"principal": asker.principal[:249], "lacks": lacks},
    )


def _words(route: str) -> str:
    """Return a route's name for people, such as `create topics`."""
    return route.replace("_", " ")
