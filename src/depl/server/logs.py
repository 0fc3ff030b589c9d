"""The service's log: one line of JSON per event."""

from __future__ import annotations

import json
import logging
from datetime import UTC, datetime

log = logging.getLogger("depl.server")


def log_event(level: int, event: str, **facts: object) -> None:
    """Log an event and its facts as one line of JSON."""
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    log.log(level, json.dumps({"time": now, "event": event, **facts}))
