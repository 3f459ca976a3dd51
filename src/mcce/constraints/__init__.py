"""Constraints: what a person can and cannot change.

Pass a list of them, or the path of a TOML file, as ``MCCE(constraints=...)``.
"""

from .constraint import Constraint as Constraint
from .files import BUILDERS
from .of_features import between as between
from .of_features import change as change
from .of_features import discouraged as discouraged
from .of_features import levels as levels
from .of_features import never_advise as never_advise
from .of_features import not_down as not_down
from .of_features import not_up as not_up
from .of_features import only_down as only_down
from .of_features import only_up as only_up
from .of_features import step as step
from .of_features import transitions as transitions
from .of_features import weight as weight
from .of_rows import derived as derived
from .of_rows import frozen as frozen
from .of_rows import max_changes as max_changes
from .of_rows import relation as relation
from .of_rows import together as together

__all__ = ["Constraint", *BUILDERS]
