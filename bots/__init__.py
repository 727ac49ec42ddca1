"""The house's reference bots: plugins like anyone's, one file each, importing only `engine.sdk`.

Read them as examples: `chance` is the smallest bot that plays everything, `greedy` is the one of the
tutorial. They must not know referees, records or tournaments.
"""
