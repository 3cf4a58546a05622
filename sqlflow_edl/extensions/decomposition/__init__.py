"""Principal components, autoencoders, and factors of users and items."""
