"""What training leaves behind: serving users, saving and loading, batches of recommendations."""
