"""The workbench: from a table to a tested model in the browser."""
