"""The studio: learning in the browser, on this machine."""
