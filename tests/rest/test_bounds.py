"""B10: the bounds of the default lease over REST, beside the rules and the CHECK: one table."""

from lease_bounds import VALUES, by_check, by_rules, table

FIELD = "default_lease_ttl_seconds"


async def test_b10_rest_takes_what_the_rules_and_the_check_take(rest, board):
    """59, 60, 86400, 86401, 60.0, "60", true, null and more; absent is null at vend, and refused at PATCH."""
    endpoint, _ = await rest.vend()
    said = {"rules": {}, "CHECK": {}, "vend": {}, "PATCH": {}}
    in_database = by_check(board, endpoint["id"])
    for value, _ in VALUES:
        vended = await rest.alice("POST", "/api/v1/endpoints", {"name": "x", FIELD: value})
        edited = await rest.alice("PATCH", f"/api/v1/endpoints/{endpoint['id']}", {FIELD: value})
        for answer in (vended, edited):
            told = answer.json()
            kept = told.get("endpoint", told)
            refused = answer.status_code == 400 and told["field"] == FIELD
            assert refused or (answer.is_success and kept[FIELD] == value), (value, told)
        said["rules"][repr(value)] = by_rules(value)
        said["CHECK"][repr(value)] = in_database(value)
        said["vend"][repr(value)] = vended.is_success
        said["PATCH"][repr(value)] = edited.is_success
    print("\n" + table({name: lambda value, column=column: column[repr(value)] for name, column in said.items()}))
    for name, column in said.items():
        assert column == {repr(value): expected for value, expected in VALUES}, name
    absent = await rest.alice.told("POST", "/api/v1/endpoints", {"name": "x"})
    assert absent["endpoint"][FIELD] is None
    assert (await rest.alice("PATCH", f"/api/v1/endpoints/{endpoint['id']}", {})).status_code == 400
