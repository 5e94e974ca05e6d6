"""The mechanism: the only code that adds noise or spends privacy budget.

Every private statistic of this library has one form. User i contributes an integer vector x_i and integer
coefficients c_ij for its items, and the mechanism publishes, for every item j,

    sum_i c_ij * x_i  +  Gaussian noise.

Read the files in this order, with docs/privacy.md, the proof, beside them:

``contribution``  what users contribute, on an integer grid, clipped to the sensitivity user by user
``sums``          exact sums of the contributions
``passes``        one pass over the blocks of users, each of which counts once
``noise``         exact integer Gaussian noise from a cryptographic generator
``accounting``    what a release costs, and what costs add up to
``mechanism``     the mechanism itself: clip, sum, pay, add noise, in this order
``selection``     the best of a secret number of tries, and what choosing it costs

The ledger, where the mechanism records what it spends, is `dpals.ledger`. What people read is `dpals.statement`.
"""
