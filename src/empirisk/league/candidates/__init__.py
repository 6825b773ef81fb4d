"""Who competes: kinds of machines, their settings for a table, their probabilities, and votes of them."""
