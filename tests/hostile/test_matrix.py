"""Every wall holds something that nothing else holds, and together they hold everything."""

from __future__ import annotations

import pytest

from tests.hostile.matrix import ALL, REFEREE, make_matrix, spell
from tests.hostile.stage import nothing_left_behind
from tests.hostile.weaken import WITHOUT

pytestmark = [pytest.mark.sandbox, pytest.mark.slow, pytest.mark.exhaustive]


@pytest.fixture(scope="module")
def matrix(tmp_path_factory):
    folder = tmp_path_factory.mktemp("matrix")
    (folder / "with").mkdir()
    (folder / "without").mkdir()
    with nothing_left_behind():
        made = make_matrix(folder)
    print(spell(made))
    return made


def test_no_attack_goes_through_all_walls(matrix):
    assert matrix[ALL] == set()


@pytest.mark.parametrize("wall", [*WITHOUT, *REFEREE])
def test_some_attack_goes_through_when_a_wall_is_missing(matrix, wall):
    assert matrix[wall]
