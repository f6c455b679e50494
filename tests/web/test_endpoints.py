"""Vending, editing and ending endpoints by forms, without JavaScript."""

from __future__ import annotations

import re

import pytest
from web_pages import forms

from tenure.board import access, endpoints
from tenure.rules import endpoints as rules

LEASE = "default_lease_ttl_seconds"
READ = {"default": None, "60": 60, "900": 900, "45m": 2700, "1h30m": 5400, "86400": 86400, "24h": 86400}


def only(site, name="reviewer"):
    """Alice's one endpoint of that name."""
    found = [one for one in site.board.read(endpoints.list_all, site.board.alice) if one.name == name]
    assert len(found) == 1
    return found[0]


def credential(page):
    """The credential on a page that shows one."""
    return re.search(r'id="credential">(tenure_endpoint_\w+)<', page)[1]


def works(site, secret):
    return site.board.write(lambda tx, board: access.worker_by_credential(tx, board, secret))


# --- quick vend -------------------------------------------------------------------------------------------


def test_b23_quick_vend_grants_all_verbs(site, alice):
    """Name alone: all verbs, the queue inbox, the server's lease; the credential works and is shown with settings."""
    form = alice.form("/endpoints", "/endpoints")
    page = alice.post("/endpoints", name="reviewer", once=form["fields"]["once"][0], queues="", **{LEASE: ""})
    assert page.status_code == 200
    made = only(site)
    assert (made.verbs, made.queues, made.default_lease_ttl_seconds) == (rules.ALL, ("inbox",), None)
    assert works(site, credential(page.text)).endpoint.id == made.id
    assert ".mcp.json" in page.text
    assert f"{site.url}/mcp/{made.slug}" in page.text


def test_b46_what_a_vend_reads_as_lease(site, alice):
    """Blank is the server default when vending; `default`, seconds and lengths of time are read."""
    for typed, seconds in {"": None, **READ}.items():
        assert alice.post("/endpoints", name=f"of {typed}.", **{LEASE: typed}).status_code == 200
        assert only(site, f"of {typed}.").default_lease_ttl_seconds == seconds


REFUSED = ["59", "86401", "0", "-5", "1.5s", "soon", "1d1s", "٣٠٠", "1e3"]


def test_b10_bounds_beside_the_field_when_vending(site, alice):
    """What is out of bounds or no length is refused beside its field; nothing is made, and all that was typed stays."""
    for typed in REFUSED:
        told = {"name": "kept name", "queues": "a, b", "days": "7", LEASE: typed}
        page = alice.post("/endpoints", **told)
        form = next(one for one in forms(page.text) if one["action"] == "/endpoints")
        assert (page.status_code, form["invalid"]) == (400, {LEASE}), typed
        assert {key: form["fields"][key][0] for key in told} == told
    assert site.board.read(endpoints.list_all, site.board.alice) == []


def test_case_b46_reload_neither_shows_again_nor_makes_another(site, alice):
    """The same form sent again, as a reload does: no second endpoint, and no credential on the page."""
    once = alice.form("/endpoints", "/endpoints")["fields"]["once"][0]
    first = alice.post("/endpoints", name="reviewer", once=once)
    again = alice.post("/endpoints", name="reviewer", once=once)
    assert (first.status_code, again.status_code) == (200, 303)
    page = alice.get(again.headers["location"])
    assert credential(first.text) not in page.text
    assert "shown once" in page.text
    assert only(site)


def test_b21_rotate_shows_the_second_credential_once(site, alice):
    """With an overlap both are valid; the form sent again makes no third."""
    old = credential(alice.post("/endpoints", name="reviewer").text)
    slug = only(site).slug
    form = alice.form(f"/endpoints/{slug}", f"/endpoints/{slug}/rotate")
    once = form["fields"]["once"][0]
    page = alice.post(f"/endpoints/{slug}/rotate", overlap_seconds="600", once=once)
    assert works(site, old)
    assert works(site, credential(page.text))
    assert alice.post(f"/endpoints/{slug}/rotate", overlap_seconds="600", once=once).status_code == 303
    assert len(site.board.read(endpoints.credentials, site.board.alice, slug)) == 2


def test_the_light_turns_green_with_the_first_call(site, alice):
    """It waits until the credential is used."""
    secret = credential(alice.post("/endpoints", name="reviewer").text)
    path = f"/endpoints/{only(site).slug}/light"
    assert "Waiting for the first call" in alice.get(path).text
    works(site, secret)
    assert "The first call came" in alice.get(path).text


# --- the wizard -------------------------------------------------------------------------------------------


def told(page, step):
    """The wizard's form on a page, which must be at this step."""
    form = next(one for one in forms(page.text) if one["action"] == "/endpoints/new")
    assert form["fields"]["step"] == [step], page.text
    return form


def go(alice, form, way="next", **typed):
    fields = {**form["fields"], **typed, "go": way}
    fields.pop("csrf", None)
    return alice.post("/endpoints/new", **fields)


def test_b23_the_wizard_from_beginning_to_end(site, alice):
    """Six steps; the drain verbs come checked and every other one unchecked; going back keeps what was typed."""
    form = told(alice.get("/endpoints/new"), "agent")
    form = told(go(alice, form, name="reviewer", agent="The Reviewer"), "queues")
    form = told(go(alice, form, queues="reviews, inbox"), "verbs")
    assert tuple(form["fields"]["verbs"]) == rules.DRAIN
    form = told(go(alice, form, verbs=["claim_next", "complete", "heartbeat"]), "webhooks")
    form = told(go(alice, form, webhook_ceiling="0"), "lifetime")
    form = told(go(alice, form, days="30", **{LEASE: "45m"}), "confirm")
    for step in ("lifetime", "webhooks", "verbs", "queues", "agent"):
        form = told(go(alice, form, "back"), step)
    assert form["fields"]["name"] == ["reviewer"]
    assert form["fields"]["verbs"] == ["heartbeat", "claim_next", "complete"] or set(form["fields"]["verbs"]) == {
        "claim_next", "complete", "heartbeat",
    }  # fmt: skip
    for step in ("queues", "verbs", "webhooks", "lifetime", "confirm"):
        form = told(go(alice, form), step)
    page = go(alice, form)
    made = only(site)
    assert works(site, credential(page.text)).endpoint.id == made.id
    assert (made.agent_name, made.queues, made.webhook_ceiling) == ("The Reviewer", ("reviews", "inbox"), 0)
    assert (set(made.verbs), made.default_lease_ttl_seconds) == ({"claim_next", "complete", "heartbeat"}, 2700)
    assert made.expires is not None
    assert go(alice, form).status_code == 303  # sent again: nothing more


@pytest.mark.parametrize(
    ("step", "typed", "field"),
    [
        ("agent", {"name": ""}, "name"),
        ("agent", {"name": "n" * 65}, "name"),
        ("queues", {"queues": "no good/name"}, "queues"),
        ("webhooks", {"webhook_ceiling": "101"}, "webhook_ceiling"),
        ("webhooks", {"webhook_ceiling": "many"}, "webhook_ceiling"),
        ("lifetime", {LEASE: "59"}, LEASE),
        ("lifetime", {LEASE: "86401"}, LEASE),
        ("lifetime", {LEASE: "soon"}, LEASE),
    ],
)
def test_b23_each_step_refuses_beside_its_field(site, alice, step, typed, field):
    """The step stays, with what was typed and the reason."""
    form = told(alice.get("/endpoints/new"), "agent")
    good = {"name": "reviewer", "agent": "", "queues": "", "webhook_ceiling": "5", LEASE: "", "days": ""}
    page = go(alice, {"fields": {**form["fields"], **good, "step": step}}, **typed)
    assert page.status_code == 400
    form = told(page, step)
    assert form["invalid"] == {field}
    assert form["fields"][field] == [typed[field]]
    assert site.board.read(endpoints.list_all, site.board.alice) == []


def test_the_wizard_refuses_an_endpoint_without_verbs(alice):
    """Nothing checked: the step says why that is of no use."""
    form = told(alice.get("/endpoints/new"), "agent")
    page = go(alice, {"fields": {**form["fields"], "name": "x", "step": "verbs", "verbs": []}})
    assert page.status_code == 400
    assert "an endpoint that may do nothing" in page.text


# --- editing ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("at", ["card", ""])
def test_b46_the_lease_form_reads(site, alice, at):
    """From a card and from the endpoint's page: `default` resets, seconds and lengths of time are read."""
    made = site.board.write(endpoints.vend, site.board.alice, name="reviewer", default_lease=1234).endpoint
    for typed, seconds in READ.items():
        assert alice.post(f"/endpoints/{made.id}/lease", at=at, **{LEASE: typed}).status_code == 303
        assert only(site).default_lease_ttl_seconds == seconds


@pytest.mark.parametrize("at", ["card", ""])
def test_b46_the_lease_form_refuses_inline(site, alice, at):
    """Blank, out of bounds, no length: refused beside the field, the value kept, nothing changed."""
    made = site.board.write(endpoints.vend, site.board.alice, name="reviewer", default_lease=1234).endpoint
    path = f"/endpoints/{made.id}/lease"
    for typed in ("", " ", *REFUSED):
        page = alice.post(path, at=at, **{LEASE: typed})
        form = next(one for one in forms(page.text) if one["action"] == path)
        assert (page.status_code, form["invalid"]) == (400, {LEASE}), typed
        assert form["fields"][LEASE] == [typed]
    assert only(site).default_lease_ttl_seconds == 1234


def test_b42_a_revoked_endpoint_is_refused_before_its_value(site, alice):
    """State before value: 409, whatever was typed."""
    made = site.board.write(endpoints.vend, site.board.alice, name="reviewer").endpoint
    site.board.write(endpoints.revoke, site.board.alice, made.id)
    for typed in ("45m", "nonsense"):
        page = alice.post(f"/endpoints/{made.id}/lease", **{LEASE: typed})
        assert page.status_code == 409
        assert "was revoked" in page.text


def test_presence_shift_name_and_era(site, alice):
    """Each has its form, and refuses beside its field."""
    slug = site.board.write(endpoints.vend, site.board.alice, name="reviewer").endpoint.slug
    good = {
        "presence": {"presence": "out", "for": "2h"},
        "shift": {"shift": "TZ=Europe/Berlin Mon-Fri 09:00-18:00"},
        "name": {"name": "renamed"},
        "era": {"mcp_era": "both"},
    }
    bad = {"presence": {"presence": "out", "for": "soon"}, "shift": {"shift": "always"}, "name": {"name": " "}}
    for edit, typed in good.items():
        assert alice.post(f"/endpoints/{slug}/{edit}", **typed).status_code == 303, edit
    for edit, typed in bad.items():
        page = alice.post(f"/endpoints/{slug}/{edit}", **typed)
        form = next(one for one in forms(page.text) if one["action"] == f"/endpoints/{slug}/{edit}")
        assert (page.status_code, len(form["invalid"])) == (400, 1), edit
        assert {name: form["fields"][name] for name in typed} == {name: [value] for name, value in typed.items()}
    found = only(site, "renamed")
    assert (found.shift, found.mcp_era) == ("TZ=Europe/Berlin Mon-Fri 09:00-18:00", "both")


def test_b25_revoke_names_what_it_hits(site, alice):
    """The page says how many claims and todos end with it; afterwards the endpoint can be read."""
    slug = site.board.write(endpoints.vend, site.board.alice, name="reviewer").endpoint.slug
    assert "0 open claims are closed, and 0 live todos become dead letters" in alice.get(f"/endpoints/{slug}").text
    page = alice.get(f"/endpoints/{slug}").text
    assert re.search(r"<details><summary>Revoke it</summary><form[^>]*/revoke", page), "a second step comes before it"
    assert alice.post(f"/endpoints/{slug}/revoke").status_code == 303
    assert "was revoked" in alice.get(f"/endpoints/{slug}").text
    assert alice.post(f"/endpoints/{slug}/revoke").status_code == 409


def test_b46_a_refused_webhook_keeps_its_queue(site, alice):
    """The queue that was chosen stays chosen beside the name that is refused."""
    slug = site.board.write(endpoints.vend, site.board.alice, name="x", queues=["inbox", "reviews"]).endpoint.slug
    there = f"/endpoints/{slug}/webhooks"
    page = alice.post(there, webhook_name="", queue="reviews")
    form = next(one for one in forms(page.text) if one["action"] == there)
    assert (page.status_code, form["invalid"], form["fields"]["queue"]) == (400, {"webhook_name"}, ["reviews"])


def test_b38a_webhooks_by_forms(site, alice):
    """Made with a secret that is shown once, given another, deleted."""
    slug = site.board.write(endpoints.vend, site.board.alice, name="reviewer").endpoint.slug
    page = alice.post(f"/endpoints/{slug}/webhooks", webhook_name="ci", queue="inbox")
    assert "whsec_" in page.text
    hook = re.search(r"/hooks/(wh_\w+)", page.text)[1]
    assert "whsec_" not in alice.get(f"/endpoints/{slug}").text
    assert "whsec_" in alice.post(f"/endpoints/{slug}/webhooks/{hook}/rotate").text
    assert alice.post(f"/endpoints/{slug}/webhooks/{hook}/delete").status_code == 303
    assert hook not in alice.get(f"/endpoints/{slug}").text


def test_case_b46_the_forms_of_webhooks_sent_twice_do_it_once(site, alice):
    """One webhook, and one new secret: the second answer shows none, and says why."""
    here = f"/endpoints/{site.board.vend().endpoint.slug}"
    once = alice.form(here, f"{here}/webhooks")["fields"]["once"][0]
    made = [alice.post(f"{here}/webhooks", webhook_name="ci", once=once) for _ in range(2)]
    (hook,) = site.board.rows("SELECT id FROM webhooks")
    once = alice.form(here, f"{here}/webhooks/{hook.id}/rotate")["fields"]["once"][0]
    rotated = [alice.post(f"{here}/webhooks/{hook.id}/rotate", once=once) for _ in range(2)]
    for first, again in (made, rotated):
        assert (first.status_code, again.status_code) == (200, 303)
        assert "shown once" in alice.get(again.headers["location"]).text
    assert site.board.rows("SELECT generation FROM webhooks")[0].generation == 2
