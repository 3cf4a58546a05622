"""Keras on TensorFlow behind the contract of `edl.frameworks.adapter`."""
