"""What a site's workers are, and what bots get there: reported by each worker, shown to staff and authors.

A report is a row of the database, so it outlives the broker. This app must not know how work flows.
"""
