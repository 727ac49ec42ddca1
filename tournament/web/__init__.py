"""What all pages share: base templates, components, static files, the home page, headers, the API's root.

The features' own pages live with the features. It knows players, leaderboards and competitions, and
must not know processes, brokers or workers.
"""
