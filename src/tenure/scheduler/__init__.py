"""One instance's life: slots become claims, claims become runs, runs keep their leases."""
