"""What ``--aftermath`` prints decides by its bound: who lives on for longer is counted."""

from __future__ import annotations

import pytest

from engine.sandbox.zygote_launcher import shared_launcher
from tests.hostile import aftermath, matrix
from tests.hostile.attempts import attempts_here
from tests.hostile.stage import close_zygotes


@pytest.mark.sandbox
def test_who_lives_longer_than_the_bound_is_late(monkeypatch, capsys):
    monkeypatch.setattr(aftermath, "attempts_here", lambda: attempts_here()[:1])
    try:
        launcher = shared_launcher("landlock")
        assert aftermath.print_aftermath("landlock", launcher, ["act_crash"]) == 0
        assert "LATE" not in capsys.readouterr().out
        assert aftermath.print_aftermath("landlock", launcher, ["act_crash"], within=-1.0) == 2
        assert capsys.readouterr().out.count("LATE ") == 2
    finally:
        close_zygotes()


def test_bound_without_the_aftermath_is_refused(capsys):
    with pytest.raises(SystemExit):
        matrix.main(["--within", "5"])
    assert "--within goes with --aftermath" in capsys.readouterr().err
