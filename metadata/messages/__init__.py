"""All requests and replies of the HTTP interface, as plain data.

Rule: a message does not depend on its transport. `metadata.messages.wire` encodes and decodes it.
"""

# ruff: noqa: F403 - a message is declared in its module only, and not listed here again

from metadata.messages.acls import *
from metadata.messages.archive import *
from metadata.messages.bridge import *
from metadata.messages.brokers import *
from metadata.messages.callers import *
from metadata.messages.clients import *
from metadata.messages.configs import *
from metadata.messages.coordination import *
from metadata.messages.coordination_watch import *
from metadata.messages.credentials import *
from metadata.messages.declared import *
from metadata.messages.directories import *
from metadata.messages.erasure import *
from metadata.messages.errors import *
from metadata.messages.features import *
from metadata.messages.fetch import *
from metadata.messages.findings import *
from metadata.messages.imports import *
from metadata.messages.joined_changes import *
from metadata.messages.log import *
from metadata.messages.losses import *
from metadata.messages.message import *
from metadata.messages.partitions import *
from metadata.messages.producer_ids import *
from metadata.messages.quorum import *
from metadata.messages.quotas import *
from metadata.messages.reassignments import *
from metadata.messages.scram import *
from metadata.messages.segments import *
from metadata.messages.snapshots import *
from metadata.messages.tokens import *
from metadata.messages.topic_partitions import *
from metadata.messages.topics import *
from metadata.messages.transparency import *
from metadata.messages.watch import *
