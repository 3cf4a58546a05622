"""Layers that read ids in their order: bidirectional LSTM and attention pooling, in Keras and in PyTorch."""
