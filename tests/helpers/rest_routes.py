"""The routes of REST that take an id, from the application itself, and what each must be told to look for it."""

UNKNOWN = {
    "ref": "00000000-0000-4000-8000-000000000000",
    "todo_id": "td_01m8ppf4nj0jg8n6512e23rt3b",
    "token_id": "tk_01m8ppf4nj0jg8n6512e23rt3b",
    "webhook_id": "wh_01m8ppf4nj0jg8n6512e23rt3b",
    "friendship_id": "fr_01m8ppf4nj0jg8n6512e23rt3b",
}
# What each route needs to be told to get as far as looking for the id.
BODIES = {
    "edit_lease": {"default_lease_ttl_seconds": 60},
    "rename": {"name": "x"},
    "set_presence": {"presence": "out"},
    "set_shift": {"shift": None},
    "set_era": {"mcp_era": None},
    "rotate": {},
    "create_todo": {"title": "x"},
    "cancel": {},
    "release": {},
    "complete": {"result": 1},
    "fail": {"reason": "x"},
    "move": {"to": UNKNOWN["ref"]},
    "add_note": {"text": "x"},
    "create_webhook": {"name": "x"},
    "approve": {"agent": "x"},
    "edit_schedule": {"title": "x"},
    "add_schedule": {"name": "x", "expression": "0 0 * * *", "title": "x"},
}


def routes_with_ids(site):
    """(method, path, the function's name, whether it takes a body) of each."""
    from tenure.doors.rest.app import routes_of

    for route in routes_of(site.rest):
        if "{" in route.path:
            for method in sorted(route.methods):
                yield method, route.path, route.endpoint.__name__, route.original_route.body_field is not None
