"""Networks of the built-in models as plain arrays, for formats that neither Keras nor PyTorch writes."""
