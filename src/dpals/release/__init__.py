"""The mechanism: the only code that adds noise or spends privacy budget.

Every private statistic of this library has one form. User i contributes an integer vector x_i and integer
coefficients c_ij for its items, and the mechanism publishes, for every item j,

    sum_i c_ij * x_i  +  Gaussian noise.

Read the files in this order:

``contribution``  what users contribute, on an integer grid, with the bound enforced user by user
``sums``          exact sums of what was contributed
``randomness``    exact integer noise from a cryptographic generator
``accounting``    what a release costs and what costs add up to
``rounding``      numbers for people, rounded to the safe side
``entries``       the rows of a ledger
``chain``         the file of a ledger, chained by hashes
``totals``        what entries add up to
``population``    whether people are known under another name
``ledger``        the durable record of what was reserved and spent
``mechanism``     the mechanism itself: bound, sum, pay, add noise, in this order
``selection``     the best of a secret number of tries, and what choosing costs
``statement``     what was promised, for people
"""
