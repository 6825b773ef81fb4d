"""The HTTP service behind ``empirisk serve``."""
