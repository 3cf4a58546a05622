"""Handwritten digits, 8 x 8 pixels, with a network of your own in PyTorch.

python samples/python/digits_torch.py              # in this process
python samples/python/digits_torch.py --workers 2  # in two workers, which run this script up to edl.train
"""

import argparse

import numpy as np
from sklearn.datasets import load_digits
from torch import nn

import edl


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(
            nn.Conv2d(1, 16, 3, padding=1),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(16 * 4 * 4, 10),
        )

    def forward(self, images):
        return self.layers(images.reshape(-1, 1, 8, 8) / 16)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--epochs", type=int, default=15)
    options = parser.parse_args()

    images, digits = load_digits(return_X_y=True)
    trained = edl.train(
        Net,
        (images, digits),
        loss=nn.CrossEntropyLoss(),
        optimizer="adam",
        learning_rate=0.005,
        epochs=options.epochs,
        batch_size=64,
        validation=0.2,  # a random fifth of the rows
        metrics=["accuracy"],
        workers=options.workers,
    )
    print(f"accuracy on the validation rows: {trained.metrics['accuracy']:.3f}")
    print("a three looks like", np.argmax(trained.predict(images[3:4])))
