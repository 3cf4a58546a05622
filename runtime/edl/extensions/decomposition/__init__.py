"""Models that factorize matrices: principal components and autoencoders of rows, and users and items of ratings.

Generated programs of PyTorch import the names of this package.
"""

from edl.extensions.decomposition.alternating_least_squares import AlternatingLeastSquares
from edl.extensions.decomposition.components import ExactComponents
from edl.extensions.decomposition.layers import Autoencoder, FactorProducts, PrincipalComponents

__all__ = [
    "AlternatingLeastSquares",
    "Autoencoder",
    "ExactComponents",
    "FactorProducts",
    "PrincipalComponents",
]
