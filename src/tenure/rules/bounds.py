"""The board's numbers: each bound once. The schema's CHECKs, the forms and the words for agents take them from here."""

from __future__ import annotations

from typing import Final

# Leases (B8, B10): the default of an endpoint lies within these, a call's own value only below the cap.
LEASE_FLOOR_SECONDS: Final = 60
LEASE_CAP_SECONDS: Final = 86_400
SERVER_LEASE_SECONDS: Final = 300
OPERATOR_LEASE_SECONDS: Final = 300
# A lease is warned of in its last fifth, at most its last minute (B18).
WARN_SHARE: Final = 5
WARN_LIMIT_SECONDS: Final = 60

# Todos (B2).
TITLE_CHARS: Final = 200
BODY_BYTES: Final = 64 * 1024
JSON_BYTES: Final = 256 * 1024
JSON_DEPTH: Final = 32
NOTE_BYTES: Final = 16 * 1024
REASON_CHARS: Final = 2_000
PRIORITY_LIMIT: Final = 9
CAP_DEFAULT: Final = 5
CAP_LIMIT: Final = 100
DEPENDENCIES: Final = 100
# A step of priority is worth this much waiting (B3).
PRIORITY_STEP_MS: Final = 600_000

# Names and labels.
NAME_CHARS: Final = 64
QUEUE_CHARS: Final = 64
KEY_CHARS: Final = 200
WORKER_CHARS: Final = 64
QUEUES: Final = 32
TARGETS: Final = 32
WEBHOOKS_DEFAULT: Final = 5
WEBHOOKS_LIMIT: Final = 100
PASSWORD_CHARS: Final = (10, 1_000)
# A human's own override of presence has no cap but what a calendar can hold.
PRESENCE_LIMIT_SECONDS: Final = 10 * 366 * 86_400
REQUEST_ID_CHARS: Final = (16, 64)

# Calls (B32, B33, B41a).
WAIT_SECONDS: Final = 50
CLAIMS_AT_ONCE: Final = 10
BATCH: Final = 100
LIST_DEFAULT: Final = 20
LIST_LIMIT: Final = 200
