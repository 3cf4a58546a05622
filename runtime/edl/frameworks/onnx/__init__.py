"""ONNX graphs of models over the raw columns of a table."""
