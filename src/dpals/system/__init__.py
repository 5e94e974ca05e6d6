"""Files that are whole or absent, locks, and what people see on a terminal."""
