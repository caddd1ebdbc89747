"""Stand-in for PyTorch, with what autograd.py needs of it."""
