"""The site's settings, in a home that goes away with the process, and a broker that leads nowhere.

Every process of a test run (each xdist worker is one) has a home of its own. Tests of the whole stack
start processes with the real settings instead.

``ARENA_TEST_DATABASE=postgresql`` starts a PostgreSQL server for the run; as an address it names one that
runs already, on which databases may be made. Each process makes its own database there.
"""

from __future__ import annotations

import atexit
import os
import shutil
import sys
import tempfile
from pathlib import Path

if "mypy" in sys.modules:  # it leaves without saying good-bye, and writes nothing into the home
    os.environ["ARENA_HOME"] = str(Path(__file__).parents[1] / ".mypy_cache" / "arena-home")
else:
    os.environ["ARENA_HOME"] = tempfile.mkdtemp(prefix="arena-test-")
    atexit.register(shutil.rmtree, os.environ["ARENA_HOME"], ignore_errors=True)
os.environ["ARENA_BROKER_URL"] = "memory://"
for _name in ("ARENA_DATABASE", "ARENA_DEBUG", "ARENA_TRUST_BOTS", "ARENA_HTTPS"):
    os.environ.pop(_name, None)
if os.environ.get("ARENA_TEST_DATABASE") == "postgresql":
    from tests.postgresql import serve_until_exit

    os.environ["ARENA_TEST_DATABASE"] = serve_until_exit()  # where xdist's processes find it
if os.environ.get("ARENA_TEST_DATABASE"):
    os.environ["ARENA_DATABASE"] = os.environ["ARENA_TEST_DATABASE"]

from tournament.settings import *  # noqa: E402, F403 - the home has to be set before

PASSWORD_HASHERS = ["django.contrib.auth.hashers.MD5PasswordHasher"]
WHITENOISE_AUTOREFRESH = True
"""Static files are looked for when they are asked for, not all of them by each new client."""
ARENA_RATE_PERCENT = 0
"""Tests ask as often as they like; those of the limits set it."""
