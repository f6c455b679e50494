"""Scenarios: sequences of the documentation and of the field, as text that runs. Knows how they are written and played.

A scenario is a script with its transcript between its commands:

    # What it is about, for people.
    > job report every 1h, takes 5m, lease 30s
    > start a b c
    > until 01:00:25
    01:00:00.019  a      begins attempt 1 of run 01:00:00
    > kill a

Lines that begin with `>` are commands (see `script.py`), `#` and empty lines are for people; all else is what
happened. `python -m tenure.proof.scenario --rewrite` writes transcripts anew.
"""

from __future__ import annotations

import sys
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path

from tenure.proof.script import ScenarioError, Script
from tenure.proof.simulate import quietly


def scenarios() -> tuple[Traversable, ...]:
    """The files that ship with this package, by name."""
    files = (resources.files("tenure.proof") / "scenarios").iterdir()
    return tuple(sorted((one for one in files if one.name.endswith(".txt")), key=lambda one: one.name))


def played(text: str) -> str:
    """The same scenario with the transcript of today. Raises ScenarioError, or Breach where a law is broken."""
    script, fresh = Script(), list[str]()
    with quietly():
        try:
            for number, line in enumerate(text.splitlines(), 1):
                if line.startswith(("#", ">")) or not line:
                    fresh.append(line)
                if line.startswith(">"):
                    fresh += _played(script, line, number)
        except BaseException:
            script.abandon()
            raise
        script.close()
    return "\n".join(fresh) + "\n"


def _played(script: Script, line: str, number: int) -> list[str]:
    try:
        return script.play(line[1:].strip())
    except (ScenarioError, KeyError, IndexError, ValueError) as error:
        raise ScenarioError(f"line {number}, {line!r}: {error}") from error


def main(arguments: list[str]) -> int:
    """Play the files named, or all that ship; `--rewrite` writes their transcripts anew. 1 where one differs."""
    rewrite, named = "--rewrite" in arguments, [Path(one) for one in arguments if one != "--rewrite"]
    differ = 0
    for file in named or [Path(str(one)) for one in scenarios()]:
        text = file.read_text(encoding="utf-8")
        fresh = played(text)
        if fresh != text:
            differ += 1
            if rewrite:
                file.write_text(fresh, encoding="utf-8")
            sys.stderr.write(f"{file.name}: {'rewritten' if rewrite else 'it goes otherwise now'}\n")
    return 0 if rewrite else min(differ, 1)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
