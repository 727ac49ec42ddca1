"""Asks for 3 GB at its import."""

HOARD = bytearray(3 * 10**9)
