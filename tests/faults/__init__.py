"""Failures on purpose: whatever dies, freezes or forgets, nothing is lost and nothing counts twice.

`harness` starts a whole site (PostgreSQL, Valkey, workers, beat) that a test may break, `cups` gives it
something to play, and `oracle` says afterwards whether all is as if nothing had happened.
"""
