"""`tenure endpoint webhook`, typed at a served board (B38a)."""


def test_b38a_webhooks_are_listed_with_their_last_delivery(live):
    """One that nothing came to yet says so."""
    live.type("endpoint", "vend", "reviewer")
    added = live.read("endpoint", "webhook", "add", "reviewer", "deploys")
    listed = live.type("endpoint", "webhook", "list", "reviewer").stdout.splitlines()
    assert listed[0].split() == ["WEBHOOK", "NAME", "QUEUE", "DELIVERED"]
    assert listed[1].split() == [added["webhook"]["id"], "deploys", "inbox", "never"]
