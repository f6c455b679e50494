"""PATCH of the default lease: the order of refusals (B42), bounds (B10), and what it leaves alone."""

import asyncio
import json

import pytest

FIELD = "default_lease_ttl_seconds"


async def edit(who, ref, body, **headers):
    return await who("PATCH", f"/api/v1/endpoints/{ref}", body, headers=headers)


async def test_b42_refusals_come_in_their_order(rest, refused):
    """Each request has all faults from one on; the first of them in the page's order is what is told."""
    endpoint, _ = await rest.vend()
    ended, _ = await rest.vend()
    await rest.alice.told("POST", f"/api/v1/endpoints/{ended['id']}/revoke")
    value, junk = b'{"default_lease_ttl_seconds": 59}', b'{"a": 1, "a": 2}'
    large = junk + b" " * 65536
    plain, stale = {"content-type": "text/plain"}, {"if-match": '"99"'}
    refused(await edit(rest.nobody, "x", large, **plain, **stale), 401, "unauthenticated")
    refused(await edit(rest.alice, "x", large, **plain, **stale), 413, "payload_too_large")
    refused(await edit(rest.alice, "x", junk, **plain, **stale), 415, "unsupported_media_type")
    refused(await edit(rest.alice, "x", junk, **stale), 400, "invalid_argument")
    refused(await edit(rest.alice, "x", {"queues": ["a"]}, **stale), 400, "invalid_argument", field="queues")
    refused(await edit(rest.alice, "x", {}, **stale), 400, "invalid_argument", field=FIELD)
    refused(await edit(rest.alice, "x", value, **stale), 404, "not_found")
    refused(await edit(rest.alice, ended["id"], value, **stale), 409, "conflict", state="revoked")
    refused(await edit(rest.alice, endpoint["id"], value, **stale), 412, "precondition_failed")
    refused(await edit(rest.alice, endpoint["id"], value), 400, "invalid_argument", field=FIELD)


@pytest.mark.parametrize("value", [b"60.0", b'"60"', b"true", b"59", b"86401", b"-1", b"0", b"1e2", b"[60]", b"{}"])
async def test_b10_what_is_out_of_bounds_is_refused_and_nothing_changes(rest, refused, value):
    """Never clamped, never read as a number that it is not; reach and state were settled before (B42)."""
    endpoint, _ = await rest.vend(default_lease_ttl_seconds=900)
    body = b'{"default_lease_ttl_seconds": %s}' % value
    refused(await edit(rest.alice, endpoint["slug"], body), 400, "invalid_argument", field=FIELD, minimum=60)
    refused(await edit(rest.alice, "unknown", body), 404, "not_found")
    assert await rest.alice.told("GET", f"/api/v1/endpoints/{endpoint['slug']}") == endpoint


async def test_b10_b44_set_and_reset_are_told_everywhere(rest):
    """The bounds themselves are taken; null resets; vend, GET, list and PATCH tell both numbers."""
    endpoint, _ = await rest.vend()
    assert (endpoint[FIELD], endpoint["effective_lease_ttl_seconds"]) == (None, 300)
    for value, effective in ((60, 60), (86400, 86400), (300, 300), (None, 300)):
        told = (await edit(rest.alice, endpoint["slug"], {FIELD: value})).json()
        listed = (await rest.alice.told("GET", "/api/v1/endpoints"))["endpoints"][0]
        one = await rest.alice.told("GET", f"/api/v1/endpoints/{endpoint['id']}")
        assert told == listed == one
        assert (told[FIELD], told["effective_lease_ttl_seconds"]) == (value, effective)
        assert told["effective_lease_ttl_source"] == ("server" if value is None else "endpoint")


async def test_b22_scope_can_not_be_edited_and_the_wrong_key_is_named(rest, refused):
    """A caller can't believe it edited scope; a near miss is told its right name."""
    endpoint, _ = await rest.vend()
    for key in ("queues", "verbs", "targets", "webhook_ceiling", "expires_at", "name"):
        refused(await edit(rest.alice, endpoint["id"], {FIELD: 60, key: None}), 400, "invalid_argument", field=key)
    told = refused(await edit(rest.alice, endpoint["id"], {"default_lease": 60}), 400, "invalid_argument")
    assert told["did_you_mean"] == FIELD
    assert await rest.alice.told("GET", f"/api/v1/endpoints/{endpoint['id']}") == endpoint


async def test_case_b51_a_patch_with_a_wrong_key_is_no_silent_success(rest, refused):
    """`{"queues": […]}` and a typing error are refused, naming the key."""
    endpoint, _ = await rest.vend()
    refused(await edit(rest.alice, endpoint["id"], {"queues": ["a"]}), 400, "invalid_argument", field="queues")
    told = refused(await edit(rest.alice, endpoint["id"], {"default_lease_tl_seconds": 60}), 400, "invalid_argument")
    assert told["field"] == "default_lease_tl_seconds"


async def test_b42_if_match_lets_one_of_two_editors_win(rest, refused):
    """The ETag that was read is needed; `*` and no header take any."""
    endpoint, _ = await rest.vend()
    tag = (await rest.alice("GET", f"/api/v1/endpoints/{endpoint['id']}")).headers["etag"]
    first, second = await asyncio.gather(
        *(edit(rest.alice, endpoint["id"], {FIELD: value}, **{"if-match": tag}) for value in (60, 61))
    )
    assert sorted((first.status_code, second.status_code)) == [200, 412]
    won = first if first.status_code == 200 else second
    assert won.headers["etag"] != tag
    assert (
        await edit(rest.alice, endpoint["id"], {FIELD: 62}, **{"if-match": f'"7777", {won.headers["etag"]}'})
    ).is_success
    assert (await edit(rest.alice, endpoint["id"], {FIELD: 63}, **{"if-match": "*"})).is_success
    refused(await edit(rest.alice, endpoint["id"], {FIELD: 64}, **{"if-match": "junk"}), 412, "precondition_failed")


async def test_b43_the_body_may_have_65536_bytes_and_no_more(rest, refused):
    """With and without a length header; what passes the size is judged further."""
    endpoint, _ = await rest.vend()
    head = json.dumps({FIELD: 60}).encode()

    async def pieces(body):
        for at in range(0, len(body), 10_000):
            yield body[at : at + 10_000]

    for size, status in ((65536, 200), (65537, 413)):
        body = head.ljust(size)
        known = await edit(rest.alice, endpoint["id"], body)
        headers = {"content-type": "application/json"}
        path = f"/api/v1/endpoints/{endpoint['id']}"
        chunked = await rest.alice.http.request("PATCH", path, content=pieces(body), headers=headers)
        assert "content-length" not in chunked.request.headers
        assert (known.status_code, chunked.status_code) == (status, status)
    refused(known, 413, "payload_too_large", limit_bytes=65536)


async def test_b42_every_edit_heeds_if_match_after_reach_and_state(rest, refused):
    """PUT, rotation, revocation and schedules too: a stale or weak tag changes nothing, the right one does."""
    endpoint, _ = await rest.vend()
    plan = {"name": "nightly", "expression": "0 0 * * *", "title": "x"}
    lasting, _ = await rest.vend()  # the first is revoked below, and with it the schedules that it had
    schedule = await rest.alice.told("POST", f"/api/v1/endpoints/{lasting['id']}/schedules", plan)
    calls = {
        "PUT name": {"name": "y"},
        "PUT presence": {"presence": "out"},
        "PUT shift": {"shift": "TZ=UTC Mon 09:00-10:00"},
        "PUT mcp-era": {"mcp_era": "both"},
        "POST rotate": {},
        "POST revoke": None,
    }
    for call, body in calls.items():
        method, name = call.split()
        path = f"/api/v1/endpoints/{endpoint['slug']}"
        tag = (await rest.alice("GET", path)).headers["etag"]
        for stale in ('"99"', f"W/{tag}", tag.strip('"')):
            answer = await rest.alice(method, f"{path}/{name}", body, headers={"if-match": stale})
            refused(answer, 412, "precondition_failed")
        unknown = await rest.alice(method, f"/api/v1/endpoints/unknown/{name}", body, headers={"if-match": '"99"'})
        refused(unknown, 404, "not_found")
        assert (await rest.alice("GET", path)).headers["etag"] == tag
        assert (await rest.alice(method, f"{path}/{name}", body, headers={"if-match": tag})).is_success
    answer = await rest.alice("POST", f"{path}/rotate", {}, headers={"if-match": '"99"'})
    refused(answer, 409, "conflict", state="revoked")
    path = f"/api/v1/schedules/{schedule['id']}"
    refused(await rest.alice("PATCH", path, {"title": "y"}, headers={"if-match": '"99"'}), 412, "precondition_failed")
    tag = (await rest.alice("GET", path)).headers["etag"]
    assert (await rest.alice("POST", f"{path}/pause", headers={"if-match": tag})).is_success


@pytest.mark.parametrize(
    ("body", "said"),
    [
        (b"", "empty"),
        (b"{", "no JSON"),
        (b"[]", "an array"),
        (b"null", "null"),
        (b"7", "a number"),
        (b'"x"', "a string"),
        (b'{"default_lease_ttl_seconds": 60, "default_lease_ttl_seconds": 60}', "twice"),
        (b'{"default_lease_ttl_seconds": NaN}', "NaN"),
        (b'{"default_lease_ttl_seconds": -Infinity}', "Infinity"),
        (b'{"default_lease_ttl_seconds": 1e999}', "too large"),
        (b'{"default_lease_ttl_seconds": 18446744073709551616}', "64 bits"),
        (b'{"a": "\\ud800"}', "U+D800"),
        (b'{"\\u0000": 1}', "U+0000"),
        (b'{"a": "\xff"}', "UTF-8"),
        (b'{"a": ' + b"[" * 32 + b"]" * 32 + b"}", "deeper than 32"),
        (b'\xef\xbb\xbf{"default_lease_ttl_seconds": 60}', "no JSON"),
        (b'{"default_lease_ttl_seconds": 60}{}', "no JSON"),
    ],
)
async def test_b42_json_that_can_be_read_in_two_ways_is_refused(rest, refused, body, said):
    """Before reach: an unknown endpoint would be the next refusal."""
    told = refused(await edit(rest.alice, "unknown", body), 400, "invalid_argument")
    assert said in told["detail"]


@pytest.mark.parametrize(
    "headers",
    [
        {"content-type": "text/plain"},
        {"content-type": "application/json; charset=latin-1"},
        {"content-type": "application/x-www-form-urlencoded"},
        {"content-type": ""},
        {"content-encoding": "gzip"},
    ],
)
async def test_b42_another_media_type_is_415(rest, refused, headers):
    """JSON that says it is something else, which a page of another origin could send, is not read."""
    refused(
        await edit(rest.alice, "unknown", b'{"default_lease_ttl_seconds": 60}', **headers),
        415,
        "unsupported_media_type",
    )


async def test_b30_the_same_value_again_changes_nothing(rest):
    """No new revision, so that nothing is sent; null to 300 is a change, of whose it is."""
    endpoint, _ = await rest.vend()
    first = (await edit(rest.alice, endpoint["id"], {FIELD: 300})).json()
    again = (await edit(rest.alice, endpoint["id"], {FIELD: 300})).json()
    assert endpoint["revision"] < first["revision"] == again["revision"]
