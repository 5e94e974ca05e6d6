"""The audit of a private method: evidence that its promise holds, for people who do not take it on trust.

Four levels, each a function of a method. All of them train on simulated data: an audit looks at what may not be
published, so it is not for real ratings. `run` puts the levels together.

========================  ================================================================================
``run``                   a whole audit: `run_audit`
``report``, ``plots``     what an audit found, as text, data or a page with plots
``recorded_run``          train a method with a mechanism that records its releases, or replays others
``published_values``      all that a training run publishes, to be compared to the last bit
``simulated_data``        the users that methods are trained on

``replay``                level 1: neighbouring data sets that see the same releases
``neighbours``            what differs between two such runs
``accounting_checks``     whether releases, ledger and statement agree
``checkpoint_contents``   whether a checkpoint tells more than releases
``serving``               whether what a user is served depends on others
``search_replay``         whether a search tells more than its best try

``noise``                 level 2: whether the noise is what the record states
``noise_samples``         noise of fits, of repeats of their releases, and of taller tables
``noise_use``             noise used twice, without payment, or from a known seed
``p_values``              statistical tests, and when a check fails because of them

``canary``                level 3: canaries, users who reach the bound of every release
``canary_contributions``  what canaries contribute
``canary_scores``         how canaries are scored
``search_canary``         the best of many tries
``confidence_bounds``     lower bounds on mu and epsilon from error rates

``one_run``               level 4: attacks on the model of one training run
``membership_attack``     how users are scored from a published model
``guess_bounds``          lower bounds on epsilon from correct guesses
========================  ================================================================================

``tests/privacy`` tests that the library itself keeps its promise, whatever the method, and that this audit notices
planted bugs.
"""
