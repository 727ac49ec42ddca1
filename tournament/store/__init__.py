"""What the other apps keep things with: blobs by SHA-256, leases on work, tables of transitions.

It must not know what a bot, a match or a tournament is.
"""
