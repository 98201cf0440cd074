"""``python -m graphmend`` is the command ``graphmend``."""

import sys

from graphmend.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
