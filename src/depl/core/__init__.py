"""The ground: what goes between the rooms (corpora, rankings), and how it is kept on disk."""
