"""Questions about people: what they do here, what is kept of them, what a suspension or an erasure would change."""

from __future__ import annotations

from tournament.moderation.selectors.activity import (
    PLAYED,
    WAITING,
    Subject,
    entries_in,
    living_tokens,
    open_invitations,
    open_scrimmages,
    subject_of,
    suspension_preview,
    why_closed,
)
from tournament.moderation.selectors.erasure import (
    TEXTS,
    erasure_preview,
    spell_names,
    texts_naming,
)
from tournament.moderation.selectors.personal_data import (
    export_name,
    personal_archive,
    personal_data,
    write_personal_data,
)

__all__ = [
    "PLAYED",
    "TEXTS",
    "WAITING",
    "Subject",
    "entries_in",
    "erasure_preview",
    "export_name",
    "living_tokens",
    "open_invitations",
    "open_scrimmages",
    "personal_archive",
    "personal_data",
    "spell_names",
    "subject_of",
    "suspension_preview",
    "texts_naming",
    "why_closed",
    "write_personal_data",
]
