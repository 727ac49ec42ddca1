"""The API of what is kept of a player."""

from __future__ import annotations

from django.http import HttpRequest, StreamingHttpResponse
from ninja import Router

from tournament.moderation.selectors import export_name, personal_archive
from tournament.players.api import ErrorAnswer, reading, token_of

router = Router(tags=["account"])


@router.get(
    "/me/data",
    response={401: ErrorAnswer},
    auth=reading,
    openapi_extra={
        "responses": {
            200: {
                "description": "A ZIP archive: data.json, wheels and logs",
                "content": {"application/zip": {"schema": {"type": "string", "format": "binary"}}},
            }
        }
    },
)
def get_own_data(request: HttpRequest) -> StreamingHttpResponse:
    """All that the site keeps of you."""
    player = token_of(request).player
    return StreamingHttpResponse(
        personal_archive(player),
        content_type="application/zip",
        headers={"Content-Disposition": f'attachment; filename="{export_name(player)}"'},
    )
