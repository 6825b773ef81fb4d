"""The rows of a table: which of them learn, which judge, and how they are encoded."""
