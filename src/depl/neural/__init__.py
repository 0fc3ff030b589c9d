"""Vectors to rankings: the encoder, its training, the index. The only room that imports torch."""
