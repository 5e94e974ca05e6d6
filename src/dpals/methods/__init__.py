"""One algorithm per file, each a walk through the three zones: private, release, public."""
