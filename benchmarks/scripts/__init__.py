"""One training loop in four forms: of PyTorch's tutorials, and with what each way to survive a lost worker adds."""
