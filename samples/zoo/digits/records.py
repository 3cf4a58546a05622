"""Records of digits as arrays, for both frameworks."""

import numpy as np

PIXELS = 64
RECORD_BYTES = PIXELS + 1  # and the digit


def images_and_digits(batch):
    """float32 images (n, 8, 8) from 0 to 1, and int64 digits (n,)."""
    records = batch.column("record")
    values = np.frombuffer(b"".join(records.to_pylist()), np.uint8).reshape(len(records), RECORD_BYTES)
    images = values[:, :PIXELS].astype(np.float32).reshape(-1, 8, 8) / 16
    return images, values[:, PIXELS].astype(np.int64)


def probabilities(logits):
    """Softmax, (n, 10)."""
    powers = np.exp(logits - logits.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)
