"""Long runs: journals that survive a crash, and several fits at once."""
