"""What can be done with tournaments; each function is one use case, atomic.

They publish no messages: a row is the request, `dispatch` says what to publish.
"""

from __future__ import annotations

from tournament.competitions.services.dispatching import Due, dispatch, round_is_empty
from tournament.competitions.services.entries import (
    disqualify_entrant,
    enter,
    leave,
    withdraw_entrant,
)
from tournament.competitions.services.expiring import expire_old_records, expire_oldest_records
from tournament.competitions.services.forgetting import forget_logs, logs_to_forget
from tournament.competitions.services.invitations import (
    accept_invitation,
    decline_invitation,
    invite_partner,
    withdraw_invitation,
)
from tournament.competitions.services.lifecycle import (
    cancel_tournament,
    close_tournament,
    open_tournament,
    order_entrants,
    pause_tournament,
    resume_tournament,
    start_tournament,
)
from tournament.competitions.services.notices import put_away_notices
from tournament.competitions.services.planning import (
    Plan,
    StageWish,
    check_plan,
    create_tournament,
    plan_like,
)
from tournament.competitions.services.playing import Play, forfeit_match, play_match
from tournament.competitions.services.previewing import Preview, preview
from tournament.competitions.services.queueing import keep_record, requeue_match
from tournament.competitions.services.rounds import advance_round, publish_results, seal_results
from tournament.competitions.services.rulings import (
    correct_result,
    rerun_match,
    restore_match,
    void_match,
)
from tournament.competitions.services.series import (
    Course,
    change_series,
    create_series,
    enter_series,
    leave_series,
    restart_series,
    starts_to_come,
    stop_series,
)
from tournament.competitions.services.stages import stop_stage
from tournament.competitions.services.sweeping import blobs_in_use, sweep_blobs
from tournament.competitions.services.trials import cancel_trial, retry_trial, run_trial

__all__ = [
    "Course",
    "Due",
    "Plan",
    "Play",
    "Preview",
    "StageWish",
    "accept_invitation",
    "advance_round",
    "blobs_in_use",
    "cancel_tournament",
    "cancel_trial",
    "change_series",
    "check_plan",
    "close_tournament",
    "correct_result",
    "create_series",
    "create_tournament",
    "decline_invitation",
    "dispatch",
    "disqualify_entrant",
    "enter",
    "enter_series",
    "expire_old_records",
    "expire_oldest_records",
    "forfeit_match",
    "forget_logs",
    "invite_partner",
    "keep_record",
    "leave",
    "leave_series",
    "logs_to_forget",
    "open_tournament",
    "order_entrants",
    "pause_tournament",
    "plan_like",
    "play_match",
    "preview",
    "publish_results",
    "put_away_notices",
    "requeue_match",
    "rerun_match",
    "restart_series",
    "restore_match",
    "resume_tournament",
    "retry_trial",
    "round_is_empty",
    "run_trial",
    "seal_results",
    "start_tournament",
    "starts_to_come",
    "stop_series",
    "stop_stage",
    "sweep_blobs",
    "void_match",
    "withdraw_entrant",
    "withdraw_invitation",
]
