"""The shell: one file for each command, imported when it is called."""
