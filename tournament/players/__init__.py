"""Players, their tokens and their bots: submission and validation of wheels.

It must not know of tournaments, matches or ratings.
"""
