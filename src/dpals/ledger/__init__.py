"""What was spent on which data set, recorded before noise is drawn; and checkpoints of runs that may be resumed.

``entries``       the rows of a ledger
``hash_chain``    the file of a ledger, chained by hashes
``transactions``  exclusive and durable transactions on it
``totals``        what entries add up to
``amounts``       these totals in words, rounded to the safe side
``user_sketch``   whether the users of a data set are in the ledger under another name
``ledger``        the ledger itself: declare, reserve, spend, publish, end
``checkpoint``    the tables that a run has released, so that it can resume
"""
