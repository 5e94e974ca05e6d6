"""Evidence that the promise holds, for people who do not take it on trust.

Five levels, each a function of a method and each with its own kind of evidence. `run` puts them together, `report` is
what they find, `recording` the double of the mechanism that they all use, `data` the people that they train on.

======================  ======================================================================  ======================
``replay``              neighbouring data sets, release by release, in exact integers:          level 1
                        ``neighbours``, ``books``, ``serving``, ``search_replay``, and drills
                        of the mechanism (``drills``), the ledger and resumed runs
``noise``               is the noise what it should be, and never the same twice:               level 2
                        ``noise_samples``, ``streams``, ``tries``, ``surprise``
``canary``              a user who reaches every bound, and how well releases give that user    level 3
                        away: ``crowd``, ``search_canary``, ``bounds``
``one_run``             attacks on the published model alone: ``attacks``, ``guessing``         level 4
``planted_bugs``        does this audit notice mistakes that someone planted: ``bugs.toml``     level 5
======================  ======================================================================  ======================

All of them work on simulated data: an audit looks at what may not be published, so it is not for real ratings.
"""
