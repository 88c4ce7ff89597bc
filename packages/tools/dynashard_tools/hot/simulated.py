"""Throttles of the local stack's live simulation: the same questions as to CloudWatch, answered at once."""

import json
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException
from typing import Any, Final
from urllib.parse import urlsplit

from dynashard_lab.simulate.live_throttles import PATH
from dynashard_tools.hot.throttles import ThrottledKey, Throttles

_TIMEOUT: Final = 5.0


@dataclass(frozen=True, slots=True)
class Simulated:
    """Reads throttles from the port of the live simulation, an `http://` URL."""

    endpoint: str

    def counts(self, minutes: int) -> list[Throttles]:
        """Return the throttles of the last minutes by resource, way and cause. Cost: 1 round trip on this machine."""
        return [Throttles(*each) for each in self._asked(minutes)["throttles"]]

    def keys(self, slot: str | None, minutes: int) -> list[ThrottledKey]:
        """Return the most throttled keys of the table or an index. Cost: 1 round trip on this machine."""
        return [ThrottledKey(*each) for each in self._asked(minutes)["keys"] if each[0] == slot]

    def _asked(self, minutes: int) -> dict[str, Any]:
        found = _get(self.endpoint, minutes * 60)
        return found or {"throttles": [], "keys": []}


def simulated(endpoint: str | None) -> Simulated | None:
    """Return the source of throttles at an endpoint; None if no live simulation is there. Cost: 1 round trip."""
    return Simulated(endpoint) if endpoint is not None and _get(endpoint, 0) is not None else None


def _get(endpoint: str, seconds: int) -> dict[str, Any] | None:
    connection = HTTPConnection(urlsplit(endpoint).netloc, timeout=_TIMEOUT)
    try:
        connection.request("GET", f"{PATH}?seconds={seconds}")
        found = json.loads(connection.getresponse().read())
    except (OSError, HTTPException, ValueError):
        # An engine alone does not know the path.
        return None
    finally:
        connection.close()
    return found if isinstance(found, dict) and "throttles" in found else None
