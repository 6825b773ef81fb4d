"""Files and frames of other libraries as tables."""
