"""`logberg` whose syncs of data do nothing: what a loss of power must find out.

Names are still made durable: a node without its files would refuse to start, and say why.

python -m tests.power.no_sync controller --config FILE
"""

import os

from logberg.cli.main import main

if __name__ == "__main__":
    os.fdatasync = lambda fd: None
    main()
