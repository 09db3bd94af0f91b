"""What needs a foreign library: tokenizers now, model providers later."""
