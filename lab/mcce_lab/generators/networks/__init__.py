"""Networks that draw rows: trained with torch, used without it, in fixed point."""

from .ctgan import CTGAN
from .made import MADE

__all__ = ["CTGAN", "MADE"]
