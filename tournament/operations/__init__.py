"""Running a site: the processes it consists of, kept going by one supervisor, and its first start.

This package starts, watches and ends processes and brings a fresh site to life through the same
services and pages as everyone. It must not know how a match is played or a tournament advances.
"""
