"""Fails at its import."""

raise ValueError("not today")
