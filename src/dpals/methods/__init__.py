"""One algorithm per file, each a walk through the three rooms: private, release, public."""
