"""By which principal an agent judges a caller, where people have pseudonyms (ADR 0093).

The log's entries name a person's pseudonym, and a certificate shows the person's name. So the agent
opens the names in its image, as a controller does, and judges a person by the pseudonym. What the
agent forwards keeps the name: the controllers put the pseudonym in.

Rule: while the agent can't say which entries are about a caller, it refuses the caller. Otherwise
it would miss an entry that denies something to this person.
"""

from collections.abc import Callable, Collection, Generator
from typing import Final

from broker_agent.publishers import Manifest
from metadata.errors import ErrorCode, LogbergError
from metadata.image import MetadataImage
from metadata.people import USER, People
from metadata.pseudonyms import check_own_name, is_pseudonym, number_of_pseudonym
from metadata.sealing import ClusterKey
from runtime.clock import Clock
from runtime.http.requests import ANONYMOUS, Caller
from runtime.loop.slices import SlicedWork

_RETRY_MS: Final = 250
BY_TOKEN: Final = "token"  # noqa: S105 - how a caller was authenticated
"""The method of a caller whose bearer token the controllers checked. They answer the pseudonym."""
_ENDED: Final = object()


class AgentPeople:
    """The names behind the pseudonyms of one agent's image.

    It is a publisher. The agent calls it behind `AgentSubjectKeys`, which fills the key.
    """

    def __init__(
        self,
        key: ClusterKey | None,
        super_users: Collection[str],
        clock: Clock,
        image: Callable[[], MetadataImage],
    ) -> None:
        """`key`: the agent's own; None: it has none. `image` returns the newest published one."""
        self._key = key
        self._super_users = frozenset(super_users)
        self._clock = clock
        self._image = image
        self._people = People(key)
        self._tree: bytes | None = None
        """The id of the keys that the names were opened with; None: no name was opened."""
        self._work: SlicedWork | None = None
        """Opens names; None: all names of the newest image are open, or can't be opened."""

    def principal_of(self, caller: Caller) -> str:
        """Return the principal that entries of the newest image are compared with.

        Raises LogbergError CLUSTER_AUTHORIZATION_FAILED for a caller who can't be judged here, and
        THROTTLED for one who can't be judged yet.
        """
        principal, image = caller.principal, self._image()
        check_own_name(principal, caller.method)
        if not principal.startswith(USER) or principal in self._super_users:
            return principal
        if is_pseudonym(principal):
            _check_not_erased(image, principal)
            return principal
        if not image.erasures.pseudonyms or caller.method == BY_TOKEN:
            return principal
        if principal == ANONYMOUS.principal:
            return principal
        self._check_keys(image, principal)
        self.look()
        if self._work is not None or not self._people.has_followed(image.erasures):
            raise _awaited()
        pseudonym = self._people.pseudonym_of(principal.removeprefix(USER))
        if pseudonym is None and not self._people.opened_all:
            # A name that no key here opens may be this one.
            raise _awaited()
        return principal if pseudonym is None else USER + pseudonym

    def on_metadata(self, before: MetadataImage, after: MetadataImage, manifest: Manifest) -> None:
        """Open the names that are new, and forget those that are erased."""
        self.look()

    def look(self) -> None:
        """The image or the keys may have changed: open what is new. Much of it takes slices."""
        tree = self._tree_here()
        if tree != self._tree:
            self._forget()
            self._tree = tree
        image = self._image()
        if tree is None or self._work is not None or self._people.has_followed(image.erasures):
            return
        self._work = SlicedWork(self._clock, self._follow(image), self._followed)
        self._work.begin(at_once=True)

    def end(self) -> None:
        """Forget all names."""
        self._forget()

    def _tree_here(self) -> bytes | None:
        keys = None if self._key is None else self._key.subjects.keys
        return None if keys is None else keys.id

    def _check_keys(self, image: MetadataImage, principal: str) -> None:
        """Refuse a caller if the keys are not here. Raises LogbergError."""
        if self._key is None or self._key.id != image.quorum.cluster_key_id:
            raise LogbergError(
                ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
                f"this agent can't say which entries are about {principal[:249]}: the entries name "
                "people by pseudonyms, and only who has the controllers' cluster key can open "
                "those. Write cluster_key in the agent's settings, or use a bearer token",
                {"principal": principal[:249], "lacks": "the cluster key of the controllers"},
            )
        tree = self._tree_here()
        if tree is None or tree != image.quorum.subject_keys_id:
            raise _awaited()

    def _follow(self, image: MetadataImage) -> Generator[None, None, None]:
        """Open what is new in an image. If the keys change meanwhile, forget all names.

        A name that can't be opened would look like a name without a pseudonym.
        """
        people, tree = self._people, self._tree
        steps = people.follow(image.erasures)
        while self._tree_here() == tree:
            if next(steps, _ENDED) is _ENDED:
                return
            yield
        self._forget()

    def _followed(self) -> None:
        self._work = None
        # The image may have changed meanwhile.
        self.look()

    def _forget(self) -> None:
        if self._work is not None:
            self._work.cancel()
            self._work = None
        self._people = People(self._key)
        self._tree = None


def _check_not_erased(image: MetadataImage, principal: str) -> None:
    """Refuse a pseudonym that was erased since its owner logged in. Raises LogbergError.

    The person may have another pseudonym by now, and entries about that.
    """
    number = number_of_pseudonym(principal.removeprefix(USER))
    if number is not None and image.erasures.has(number):
        raise LogbergError(
            ErrorCode.CLUSTER_AUTHORIZATION_FAILED,
            f"{principal} was erased after this login: log in again",
            {"principal": principal, "lacks": "a login since the erasure"},
        )


def _awaited() -> LogbergError:
    """Return the error of a caller who can't be judged yet."""
    return LogbergError(
        ErrorCode.THROTTLED,
        "this agent can't say yet which entries are about the caller: it learns the names behind "
        "pseudonyms from the controllers within a second, if one leads; ask again",
        retry_after_ms=_RETRY_MS,
    )
