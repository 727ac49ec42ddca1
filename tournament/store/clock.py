"""The database's clock. Only it decides leases, slots and what is due."""

from __future__ import annotations

from datetime import datetime, timedelta

from django.db import connection
from django.db.models import DateTimeField, DurationField, ExpressionWrapper, Value
from django.db.models.expressions import CombinedExpression
from django.db.models.functions import Now
from django.utils import timezone


def read_clock() -> datetime:
    """What the database's clock shows, in UTC."""
    if connection.vendor == "postgresql":
        with connection.cursor() as cursor:
            cursor.execute("SELECT clock_timestamp()")
            now: datetime = cursor.fetchone()[0]
            return now
    return timezone.now()  # SQLite runs in this process and reads the same clock


def in_seconds(seconds: float) -> ExpressionWrapper[CombinedExpression]:
    """An expression: the database's time, `seconds` from now."""
    shift = Value(timedelta(seconds=seconds), output_field=DurationField())
    return ExpressionWrapper(CombinedExpression(Now(), "+", shift), output_field=DateTimeField())
