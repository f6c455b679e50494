"""`tenure demo`: a takeover and a hand-over by real processes, told as they happen, drawn, and counted."""

from __future__ import annotations

import click

from tenure.doors.cli.texts import CONTEXT, exits


@click.command(
    context_settings=CONTEXT,
    short_help="Watch a takeover: three instances, one of them killed.",
    epilog=exits(
        0, 1, 2, 130, _0="nothing ran twice, nothing was lost, the takeover came in time", _1="one of these is not so"
    ),
)
@click.option(
    "--seconds",
    metavar="N",
    type=click.IntRange(1, 3600),
    help="How long; one takeover is always shown.  [default: about 25]",
)
@click.option(
    "--instances", default=3, show_default=True, metavar="N", type=click.IntRange(2, 9), help="How many processes."
)
@click.option("--lease", default="3s", show_default=True, metavar="DUR", help="The lease, 1s to 60s.")
@click.option("--store", metavar="URL", help="A store of yours.  [default: an SQLite file, removed at the end]")
def demo(seconds: int | None, instances: int, lease: str, store: str | None) -> int:
    """Watch a takeover.

    Several instances of one application share a store. One runs the job and is killed with SIGKILL in the
    middle; another takes the run over when the lease has run out. Then one is told to stop with SIGTERM and
    hands its run over. At the end the runs are drawn, and counted: none twice, none lost.
    """
    from tenure.doors.cli.demo.plan import plan
    from tenure.doors.cli.demo.play import perform

    return perform(plan(instances, lease, store), seconds)
