"""Trees on binned columns: bins, the search for a split, growth alone and in a team."""
