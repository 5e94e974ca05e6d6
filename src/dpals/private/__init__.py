"""The private zone: code that may look at ratings.

It computes, user by user, what each user contributes to a release. It draws no noise, spends no budget, and knows the
results of the public zone only as arguments.
"""
