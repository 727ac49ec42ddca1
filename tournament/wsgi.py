"""The site as a WSGI application."""

from __future__ import annotations

import atexit
import os

from django.conf import settings
from django.core.wsgi import get_wsgi_application
from django.db import connection

from tournament.operations.home import Home
from tournament.web.warming import warm_up

os.environ.setdefault("DJANGO_SETTINGS_MODULE", "tournament.settings")

application = get_wsgi_application()
warm_up()
serving = Home(settings.ARENA_HOME).serve() if connection.vendor == "sqlite" else None
"""Held open, so that nobody moves the database away below this process; its workers and dispatch tell by their pulses."""
if serving is not None:
    atexit.register(serving.close)
