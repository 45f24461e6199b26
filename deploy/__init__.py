"""Code to run, build and document cppmill elsewhere: engines on this machine, Google Cloud, peers, releases, the site.

Scripts and recipes belong here, run from the checkout and never shipped. What a run imports belongs in `pipelines`.
"""
