"""The private room: code that may look at ratings.

It computes, user by user, what each user offers to a release. It draws no noise, spends no budget and never
sees what the public room made of the results, except as arguments.
"""
