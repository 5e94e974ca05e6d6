"""Files that are whole or absent, locks on files, and output to a terminal."""
