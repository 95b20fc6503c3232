"""All mutants, by name."""

from contextlib import AbstractContextManager

from tests.mutants.allowing import ALLOWING
from tests.mutants.archiving import ARCHIVING
from tests.mutants.beginning import BEGINNING
from tests.mutants.client_rules import CLIENT_RULES
from tests.mutants.configuring import CONFIGURING
from tests.mutants.containing import CONTAINING
from tests.mutants.contending import CONTENDING
from tests.mutants.coordinating import COORDINATING
from tests.mutants.deciding import DECIDING
from tests.mutants.dividing import DIVIDING
from tests.mutants.electing import ELECTING
from tests.mutants.erasing import ERASING
from tests.mutants.forging import FORGING
from tests.mutants.forwarding import FORWARDING
from tests.mutants.journalling import JOURNALLING
from tests.mutants.keeping import KEEPING
from tests.mutants.levelling import LEVELLING
from tests.mutants.moving import MOVING
from tests.mutants.mutant import Mutant
from tests.mutants.naming import NAMING
from tests.mutants.patches import patched
from tests.mutants.placing import PLACING
from tests.mutants.projecting import PROJECTING
from tests.mutants.recovering import RECOVERING
from tests.mutants.replaying import REPLAYING
from tests.mutants.replicating import REPLICATING
from tests.mutants.serving import SERVING
from tests.mutants.signing import SIGNING
from tests.mutants.voters import VOTERS
from tests.mutants.voting import VOTING

ALL = (
    *VOTING,
    *VOTERS,
    *FORGING,
    *JOURNALLING,
    *KEEPING,
    *CONFIGURING,
    *CONTAINING,
    *DECIDING,
    *ELECTING,
    *LEVELLING,
    *BEGINNING,
    *SERVING,
    *FORWARDING,
    *REPLAYING,
    *CLIENT_RULES,
    *REPLICATING,
    *MOVING,
    *PLACING,
    *PROJECTING,
    *DIVIDING,
    *COORDINATING,
    *CONTENDING,
    *RECOVERING,
    *ARCHIVING,
    *SIGNING,
    *ALLOWING,
    *ERASING,
    *NAMING,
)
MUTANTS: dict[str, Mutant] = {mutant.name: mutant for mutant in ALL}


def broken(name: str) -> AbstractContextManager[None]:
    """Switch a protection off."""
    return patched(MUTANTS[name].patches)
