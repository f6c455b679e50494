#!/usr/bin/env python3
"""Draw the diagrams and tables of the documentation from the code: `python docs/draw.py`, or `--check` them.

What stands in a page between `<!-- drawn: NAME -->` and `<!-- end -->` is made here and by nobody's hand: states
by asking the rules, sequences by running clusters on a turned clock, tables by asking the code for its bounds.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from drawing import pages

DOCS = Path(__file__).parent


def main(arguments: list[str]) -> int:
    """0: all is fresh, or was made so; 1: `--check` found a stale page; 2: it was called wrongly."""
    if arguments not in ([], ["--check"]):
        sys.stderr.write(f"{(__doc__ or '').splitlines()[0]}\n")
        return 2
    check = bool(arguments)
    logging.getLogger("tenure").addHandler(logging.NullHandler())  # scenes are full of deaths; nobody need read of them
    try:
        stale = pages.redraw(DOCS, write=not check)
    except pages.PageError as error:
        sys.stderr.write(f"{error}\n")
        return 1
    for page, name in stale:
        said = "is stale: run python docs/draw.py" if check else "drawn anew"
        sys.stderr.write(f"{page.relative_to(DOCS.parent)}: {name}: {said}\n")
    return 1 if check and stale else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
