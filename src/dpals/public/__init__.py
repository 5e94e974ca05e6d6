"""The public zone: code that sees released statistics only. Whatever it does, it cannot break privacy."""
