"""B10: the bounds of the default lease as they are typed, beside the rules and the CHECK: one table."""

from lease_bounds import VALUES, by_check, by_rules

WORDS = {None: "default"}


def test_b10_the_command_line_takes_what_the_rules_and_the_check_take(live):
    """What can be typed of the table's values: taken where the rules and the schema take it, refused where they don't.

    A command line knows no types: `60.0` and `60` are the same minute, and what is no length at all is a usage error.
    """
    vended = live.read("endpoint", "vend", "reviewer")["endpoint"]
    in_database = by_check(live.board, vended["id"])
    lines = [f"{'typed':>10}  {'vend':>8}  {'edit':>8}  {'rules':>8}  {'CHECK':>8}"]
    for value, expected in VALUES:
        if value is not None and type(value) is not int:
            continue
        typed = f"--lease-ttl={WORDS.get(value, value)}"
        code = 0 if expected else 2 if value < 0 or value > 10**12 else 1
        live.type("endpoint", "vend", "x", typed, "--no-save", code=code)
        live.type("endpoint", "edit", vended["slug"], typed, code=code)
        said = (code == 0, code == 0, by_rules(value), in_database(value))
        assert len(set(said)) == 1, value
        words = "  ".join(f"{'taken' if one else 'refused':>8}" for one in said)
        lines.append(f"{WORDS.get(value, value)!s:>10}  {words}")
    print("\n" + "\n".join(lines))
    for typed in ("60.5", "true", "null", "sixty"):
        live.type("endpoint", "edit", vended["slug"], f"--lease-ttl={typed}", code=2)
    assert live.read("endpoint", "show", vended["slug"])["default_lease_ttl_seconds"] is None
