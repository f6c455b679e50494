"""REST for humans, `/api/v1`; the plain HTTP door for workers, `/work/v1`; and inbound webhooks, `/hooks`."""
