"""Rating pools, their append-only logs and the ratings that follow from them.

It must not know of tournaments: competitions hand it events, it folds them.
"""
