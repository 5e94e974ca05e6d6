"""What was spent on which data set, recorded before noise is drawn; and checkpoints of runs that may be resumed."""
