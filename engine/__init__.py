"""Domino Arena's engine: games, bots, referee, sandbox, formats and ratings.

Everything that needs neither a database nor a broker. It must not know of Django, Celery or Redis.
"""

__version__ = "0.1.0"
