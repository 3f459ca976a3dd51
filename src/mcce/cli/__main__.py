"""``python -m mcce.cli`` is the command ``mcce``."""

import sys

from .command import main

if __name__ == "__main__":
    sys.exit(main())
