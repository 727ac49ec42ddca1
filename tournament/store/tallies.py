"""Numbers that the metrics show: counted up by whoever does the counting, or measured now and then.

They lie in the database, so that every process tells the same, and one that starts anew begins where the last left off.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping

from django.db import transaction
from django.db.models import F

from tournament.store.models import Tally

STORE_BYTES = "store_bytes"
"""What all blobs take."""
STORE_FILES = "store_files"
"""How many they are."""
SLOTS = "slots"
"""How much all workers together do at once."""


@transaction.atomic
def count(name: str, more: Mapping[str, float]) -> None:
    """Count up the values of a metric by their labels, in the order of these, so that no two wait for each other."""
    for label in sorted(more):
        rows = Tally.objects.filter(name=name, label=label)
        if not rows.update(value=F("value") + more[label]):
            Tally.objects.get_or_create(name=name, label=label)
            rows.update(value=F("value") + more[label])


def measure(name: str, value: float, *, label: str = "") -> None:
    """Note what a value is now."""
    Tally.objects.update_or_create(name=name, label=label, defaults={"value": value})


def read_tallies() -> Mapping[str, Mapping[str, float]]:
    """All of them: by name and label, in one query. A name that was never counted has none."""
    found: defaultdict[str, dict[str, float]] = defaultdict(dict)
    for name, label, value in Tally.objects.order_by("name", "label").values_list(
        "name", "label", "value"
    ):
        found[name][label] = value
    return found
