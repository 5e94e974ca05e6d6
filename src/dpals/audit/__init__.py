"""Evidence that the promise holds, for people who do not take it on trust.

Five levels, each a function of a method and each with its own kind of evidence:

``replay``        neighbouring data sets, release by release, in exact integers
``noise``         is the noise what it should be, and never the same twice
``canary``        a user who reaches every bound, and how well releases give that user away
``one_run``       attacks on the published model alone
``planted_bugs``  does this audit notice mistakes that someone planted

All of them work on simulated data: an audit looks at what may not be published, so it is not for real ratings.
"""
