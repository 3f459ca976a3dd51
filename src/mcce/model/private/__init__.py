"""Step 1 with differential privacy: what is public, what is spent, and the trees."""

from .domains import Domain, plain_domains, read_domains
from .ledger import Entry, Ledger
from .trees import PrivateTrees

__all__ = ["Domain", "Entry", "Ledger", "PrivateTrees", "plain_domains", "read_domains"]
