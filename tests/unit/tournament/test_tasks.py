"""The tasks: each calls one service, publishes what is due, and loses nothing with a message."""

from __future__ import annotations

import contextlib
import logging
import socket
import threading

import pytest
from kombu.exceptions import OperationalError

from tests.scrimmage_factories import make_scrimmage, version_of
from tests.tournament_factories import make_bot, make_player, make_tournament, start, submit
from tournament import celery, tasks
from tournament.competitions.models import (
    RULES_VERSION,
    EntryTrial,
    Match,
    MatchState,
    Round,
    TournamentState,
)
from tournament.competitions.services import Play
from tournament.players.models import BotVersion
from tournament.workers.models import WorkerReport

pytestmark = pytest.mark.django_db


@pytest.fixture
def sent(monkeypatch):
    """The messages that would be published."""
    messages = []
    monkeypatch.setattr(
        tasks,
        "publish",
        lambda task, *args, **kwargs: messages.append((task.name, args, kwargs)) or True,
    )
    return messages


@pytest.fixture
def trusted(settings):
    settings.ARENA_TRUST_BOTS = True


def test_dispatch_publishes_versions_and_blocks(sent):
    version = submit(make_player(), "late")
    tournament = start(make_tournament([make_bot("alpha"), make_bot("beta")]))
    tasks.dispatch(rung=True)
    assert sent == [
        ("tournament.validate", (version.pk,), {"queue": "validation"}),
        (
            "tournament.play_matches",
            ([tournament.matches.get().pk],),
            {"queue": "matches.standard"},
        ),
    ]


def test_what_is_played_goes_into_the_queue_of_its_time_control_if_a_worker_takes_from_it(sent):
    bots = [make_bot("alpha"), make_bot("beta")]
    slow = start(make_tournament(bots, name="Slow", time_control="long"))
    start(make_tournament(bots, name="Standard", time_control="standard"))
    make_tournament(
        bots[:1], name="Open", time_control="fast", contest={"kind": "boards", "boards": 2}
    )
    first, other = map(version_of, bots)
    scrimmage = make_scrimmage(first=first, other=other, time_control="fast")
    WorkerReport.objects.create(
        name="matches@one",
        level="bubblewrap",
        rules_version=RULES_VERSION,
        budget_percent=100,
        queues=["matches.long", "matches.fast"],
        slots=2,
    )
    tasks.dispatch(rung=True)
    assert EntryTrial.objects.filter(conditions__time_control__name="fast").exists()
    told = [(name, queue["queue"]) for name, _, queue in sent]
    assert sorted(told) == [
        ("tournament.play_batch", "matches.fast"),
        ("tournament.play_matches", "matches.long"),
        ("tournament.try_entry", "matches.fast"),
    ]
    about = {name: args for name, args, _ in sent}
    assert about["tournament.play_matches"] == ([slow.matches.get().pk],)
    assert about["tournament.play_batch"] == (scrimmage.pk,)


def test_block_that_empties_a_round_rings_dispatch(sent, trusted):
    tournament = start(make_tournament([make_bot(f"bot{i}") for i in range(4)]))
    first, second = tournament.matches.order_by("pk").values_list("pk", flat=True)
    tasks.play_matches([first])
    assert sent == []
    tasks.play_matches([second])
    assert sent == [("tournament.dispatch", (), {"rung": True})]


def test_same_block_twice_plays_once(sent, trusted):
    tournament = start(make_tournament([make_bot("alpha"), make_bot("beta")]))
    pk = tournament.matches.get().pk
    tasks.play_matches([pk, pk])
    tasks.play_matches([pk])
    assert tournament.matches.get().tries.count() == 1
    assert len(sent) == 1


def test_messages_about_rows_that_are_gone_do_no_harm(sent):
    tasks.play_matches([10**9])
    tasks.validate(10**9)
    assert sent == []


def test_worker_that_was_told_to_stop_claims_nothing(sent, monkeypatch):
    version = submit(make_player(), "late")
    tournament = start(make_tournament([make_bot("alpha"), make_bot("beta")]))
    monkeypatch.setattr(tasks, "stop_seconds", lambda: 0.1)
    tasks.play_matches([tournament.matches.get().pk])
    tasks.validate(version.pk)
    assert tournament.matches.get().state == MatchState.PENDING
    assert BotVersion.objects.get(pk=version.pk).fence == 0


def test_stop_in_the_middle_of_a_block_leaves_the_rest_queued(sent, trusted, monkeypatch):
    tournament = start(make_tournament([make_bot(f"bot{i}") for i in range(4)]))
    first, second = tournament.matches.order_by("pk").values_list("pk", flat=True)
    told = iter([0.0, 5.0])
    monkeypatch.setattr(tasks, "stop_seconds", lambda: next(told))
    monkeypatch.setattr(
        tasks.competitions, "play_match", lambda **_: Match.objects.count() and Play.FAILED
    )
    tasks.play_matches([first, second])
    assert list(told) == []


def test_block_that_finds_the_store_away_leaves_the_rest_queued(sent, monkeypatch):
    tournament = start(make_tournament([make_bot(f"bot{i}") for i in range(4)]))
    first, second = tournament.matches.order_by("pk").values_list("pk", flat=True)
    asked = []
    monkeypatch.setattr(
        tasks.competitions,
        "play_match",
        lambda **named: asked.append(named["match_id"]) or Play.PUT_OFF,
    )
    tasks.play_matches([first, second])
    assert asked == [first]


def test_broker_that_is_away_is_said_and_forgotten(monkeypatch, caplog):
    def refuse(**_):
        raise OperationalError("connection refused")

    monkeypatch.setattr(tasks.validate, "apply_async", refuse)
    with caplog.at_level(logging.WARNING):
        assert tasks.publish(tasks.validate, 7) is False
    assert "connection refused" in caplog.text


@pytest.fixture
def frozen_broker(monkeypatch):
    """A broker that takes connections and never answers; how many it took."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = []

        def accept() -> None:
            with contextlib.suppress(OSError):  # the test has ended
                while True:
                    taken.append(server.accept()[0])

        threading.Thread(target=accept, daemon=True).start()
        url = f"redis://127.0.0.1:{server.getsockname()[1]}/0"
        with celery.app.connection_for_write(url=url) as connection:
            send = tasks.validate.apply_async
            monkeypatch.setattr(
                tasks.validate, "apply_async", lambda **kw: send(**kw, connection=connection)
            )
            yield taken
        for peer in taken:
            peer.close()
        server.shutdown(socket.SHUT_RDWR)


def test_frozen_broker_is_given_up_after_one_try(frozen_broker, caplog):
    """Its answer is awaited for the 2 s of the settings, once: the site goes on."""
    options = celery.app.conf.broker_transport_options
    assert (options["socket_timeout"], options["max_retries"]) == (2, 0)
    assert tasks.publish(tasks.validate, 7) is False
    assert len(frozen_broker) == 1


def test_dispatch_stops_publishing_at_the_first_refusal(monkeypatch):
    for name in ("alpha", "beta", "gamma"):
        submit(make_player(), name)
    tried = []
    monkeypatch.setattr(tasks, "publish", lambda task, *args, **_: tried.append(args))
    tasks.dispatch(rung=True)
    assert len(tried) == 1


def test_whole_cup_is_played_by_its_messages_alone(trusted, monkeypatch):
    """The queue is a list here, and every message comes twice."""
    messages = []

    def publish(task, *args, queue=None, **kwargs):
        messages.extend([(task, args, kwargs)] * 2)
        return True

    monkeypatch.setattr(tasks, "publish", publish)
    tournament = start(make_tournament([make_bot(f"bot{i}") for i in range(5)]))
    tasks.dispatch(rung=True)
    for _ in range(100):
        if not messages:
            break
        task, args, kwargs = messages.pop(0)
        task(*args, **kwargs)
    tournament.refresh_from_db()
    assert tournament.state == TournamentState.FINISHED
    assert Match.objects.filter(state=MatchState.FINISHED).count() == 4
    assert Round.objects.count() == 3
    assert {match.tries.count() for match in Match.objects.all()} == {1}


def test_stop_flag_counts_from_the_signal(monkeypatch):
    clock = [50.0]
    monkeypatch.setattr(celery.time, "monotonic", lambda: clock[0])
    assert celery.stop_seconds() == 0.0
    try:
        celery.worker_shutting_down.send(sender=None)
        clock[0] += 2.5
        assert celery.stop_seconds() == 2.5
    finally:
        celery._stopping_since.value = 0.0


@pytest.mark.parametrize("name", ["dispatch", "validate", "play_matches", "sweep"])
def test_every_task_has_its_queue_and_keeps_no_result(name):
    task = celery.app.tasks[f"tournament.{name}"]
    queue = celery.app.conf.task_routes[task.name]["queue"]
    expected = {"dispatch": "control", "play_matches": "matches"}.get(name, "validation")
    assert queue == expected
    assert task.acks_late
    assert task.ignore_result
    assert task.expires is None


def test_nobody_else_publishes():
    """Only tasks.py sends messages: services leave rows, and rows are the requests."""
    import ast
    from pathlib import Path

    root = Path(tasks.__file__).parent
    senders = {
        str(path.relative_to(root))
        for path in root.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute) and node.attr in {"apply_async", "send_task", "delay"}
    }
    assert senders == {"tasks.py"}
