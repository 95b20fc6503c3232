"""Every request and reply of the HTTP interface, as plain data.

Rule: no message knows what carries it; `metadata.messages.wire` turns it into bytes and back.
"""

# ruff: noqa: F403 - a message is declared in its module, and nothing has to be listed here

from metadata.messages.acls import *
from metadata.messages.brokers import *
from metadata.messages.clients import *
from metadata.messages.errors import *
from metadata.messages.features import *
from metadata.messages.fetch import *
from metadata.messages.log import *
from metadata.messages.message import *
from metadata.messages.quorum import *
from metadata.messages.topics import *
