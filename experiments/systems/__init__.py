"""Other systems of the paper's tables, each the algorithm in a module of its own.

They get what depl gets: the same tf-idf vectors, or the same encoder and tokens. Where a published
system comes with an encoder that cannot be had here, this is its algorithm on our encoder, not the
published system, and the tables say so.
"""
