"""After the contest: the winner fitted again, tested once, and compared with its rivals."""
