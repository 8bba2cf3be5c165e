"""Message stores: SQL is the truth."""
