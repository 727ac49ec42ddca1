"""What holds a bot: one process of its own per seat and rotation, behind walls that the kernel keeps.

`policy` says what is allowed (as data), `runtime` what is visible, `launcher` starts a process behind the
walls, `bot_host` is what runs in there, `agent` is the referee's side, `probe` tries the walls. The child
imports this package too, so this file imports nothing; and nothing here may know matches or tournaments.
"""
