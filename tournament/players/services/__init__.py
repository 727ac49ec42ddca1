"""What can be done with players, tokens, bots and versions; each function is one use case, atomic."""

from __future__ import annotations

from tournament.players.services.accounts import ensure_house, sign_up
from tournament.players.services.bots import (
    allow_scrimmages,
    find_or_submit_wheel,
    lift_bot,
    pause_bot,
    quarantine_version,
    release_version,
    retry_version,
    submit_wheel,
    withdraw_version,
)
from tournament.players.services.mail import (
    ask_to_confirm,
    confirm_mail,
    drop_old_mail,
    queue_mail,
    read_link,
    send_due_mail,
    stop_mail,
)
from tournament.players.services.passwords import ask_for_password, reset_password
from tournament.players.services.quarantine import Crash, count_match
from tournament.players.services.sessions import end_sessions
from tournament.players.services.tokens import (
    authenticate_token,
    create_token,
    revoke_token,
    revoke_tokens,
)
from tournament.players.services.validation import (
    DueVersions,
    queue_versions,
    return_expired_versions,
    run_validation,
)

__all__ = [
    "Crash",
    "DueVersions",
    "allow_scrimmages",
    "ask_for_password",
    "ask_to_confirm",
    "authenticate_token",
    "confirm_mail",
    "count_match",
    "create_token",
    "drop_old_mail",
    "end_sessions",
    "ensure_house",
    "find_or_submit_wheel",
    "lift_bot",
    "pause_bot",
    "quarantine_version",
    "queue_mail",
    "queue_versions",
    "read_link",
    "release_version",
    "reset_password",
    "retry_version",
    "return_expired_versions",
    "revoke_token",
    "revoke_tokens",
    "run_validation",
    "send_due_mail",
    "sign_up",
    "stop_mail",
    "submit_wheel",
    "withdraw_version",
]
