"""Trees on sorted columns: every split of every column is tried."""
