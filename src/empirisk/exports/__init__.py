"""Models for other programs: graphs of ONNX, files of Python that need NumPy alone, and SQL."""
