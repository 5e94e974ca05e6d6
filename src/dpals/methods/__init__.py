"""One algorithm per file, in terms of the three zones: private, release, public."""
