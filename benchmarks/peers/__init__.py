"""The peers that depl's benchmarks compare with, each run in a process of its own."""

from peers.environments import PINNED, PeerError, environment
from peers.running import PEERS, PeerResult, kept_result, run_peer

__all__ = [
    "PEERS",
    "PINNED",
    "PeerError",
    "PeerResult",
    "environment",
    "kept_result",
    "run_peer",
]
