"""A player's program that talks to a site's API, with nothing but the standard library."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from tournament.operations.errors import OperationsError


@dataclass(frozen=True, slots=True)
class ApiClient:
    """Requests in a player's name."""

    url: str
    """The site's: ``http://127.0.0.1:8000``."""
    token: str

    def submit(self, wheel: bytes) -> dict[str, Any]:
        """Submit a wheel; the version that it makes. Raises OperationsError if it is refused."""
        return self._post("/api/versions", wheel, "application/octet-stream")

    def enter(self, tournament: str, bot: str) -> dict[str, Any]:
        """Enter a bot into a tournament. Raises OperationsError if that cannot be."""
        body = json.dumps({"bot": bot}).encode()
        return self._post(f"/api/tournaments/{tournament}/entries", body, "application/json")

    def _post(self, path: str, body: bytes, content_type: str) -> dict[str, Any]:
        connection = http.client.HTTPConnection(self.url.removeprefix("http://"), timeout=30)
        headers = {"Authorization": f"Bearer {self.token}", "Content-Type": content_type}
        try:
            connection.request("POST", path, body, headers)
            response = connection.getresponse()
            answer = response.read()
        except (OSError, http.client.HTTPException) as error:
            raise OperationsError(f"The site did not answer POST {path}: {error}") from error
        finally:
            connection.close()
        if response.status not in {HTTPStatus.OK, HTTPStatus.CREATED}:
            raise OperationsError(
                f"The site refused POST {path}: {response.status} {error_message(answer)}"
            )
        value: dict[str, Any] = json.loads(answer)
        return value


def error_message(answer: bytes) -> str:
    """What an error's body says to people, if it is one of the API's."""
    try:
        return str(json.loads(answer)["error"]["message"])
    except (ValueError, KeyError, TypeError):
        return ""
