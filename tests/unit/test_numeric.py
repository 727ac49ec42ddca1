"""Which bots are to find numpy loaded is read in their files, running nothing of them."""

from __future__ import annotations

import pytest

from engine.sandbox.numeric import names_numpy


@pytest.mark.parametrize(
    ("path", "text", "named"),
    [
        ("bot.py", "import numpy as np\n", True),
        ("package/deep/table.py", "from numpy.linalg import inv\n", True),  # wherever it lies
        ("bot.py", "np = __import__('numpy')\n", True),  # however it is imported
        ("pyproject.toml", 'dependencies = ["numpy>=2"]\n', True),
        ("bot-1.0.dist-info/METADATA", "Requires-Dist: numpy>=2\n", True),
        ("bot.py", "import random\n", False),
        ("weights.txt", "made with numpy\n", False),  # no file that is run or read by us
        (".venv/lib/numpy.py", "import numpy\n", False),  # an author's own tools
        ("__pycache__/bot.py", "import numpy\n", False),
    ],
)
def test_bot_names_numpy_in_its_source_or_in_what_it_requires(tmp_path, path, text, named):
    (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / path).write_text(text)
    assert names_numpy(tmp_path) is named


def test_virtual_environment_is_no_part_of_a_bot_whatever_its_name(tmp_path):
    (tmp_path / "tools" / "lib").mkdir(parents=True)
    (tmp_path / "tools" / "pyvenv.cfg").write_text("home = /usr\n")
    (tmp_path / "tools" / "lib" / "other.py").write_text("import numpy\n")
    assert not names_numpy(tmp_path)


def test_file_that_nobody_can_read_names_nothing(tmp_path):
    (tmp_path / "bot.py").symlink_to(tmp_path / "gone.py")
    assert not names_numpy(tmp_path)
