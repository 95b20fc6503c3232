"""`logberg` with syncs that do nothing: a test that cuts the power must notice it.

Names are still made durable. Otherwise the node would refuse to start without its files.

python -m tests.power.no_sync controller --config FILE
"""

import os

from logberg.cli.main import main

if __name__ == "__main__":
    os.fdatasync = lambda fd: None
    main()
