"""`python -m tenure` is the same as `tenure`."""

import sys

from tenure.doors.cli import main

if __name__ == "__main__":
    sys.exit(main())
