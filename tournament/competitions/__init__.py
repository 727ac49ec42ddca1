"""Tournaments from the announcement to the final standings: entrants, rounds, matches, dispatch.

The database is the truth here; what Celery carries only says "look at this row".
"""
