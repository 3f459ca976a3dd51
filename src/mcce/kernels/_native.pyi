import numpy as np
from numpy.typing import NDArray

class CancelledError(RuntimeError): ...
class ExpiredError(TimeoutError): ...

class Cancellation:
    def __init__(
        self, max_seconds: float | None = None, outer: Cancellation | None = None
    ) -> None: ...
    def cancel(self) -> None: ...
    def check(self) -> None: ...
    @property
    def cancelled(self) -> bool: ...
    @property
    def expired(self) -> bool: ...

class Watch:
    def __init__(self, cancellation: Cancellation | None, signals: bool) -> None: ...

class Limits:
    def __init__(
        self,
        own: NDArray[np.int32],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        runs: NDArray[np.int32],
        near: NDArray[np.int32],
        /,
    ) -> None: ...

class Forest:
    def __init__(
        self,
        roots: NDArray[np.int64],
        feature: NDArray[np.int32],
        cut: NDArray[np.int32],
        left: NDArray[np.int32],
        right: NDArray[np.int32],
        start: NDArray[np.int64],
        count: NDArray[np.int32],
        sets: NDArray[np.uint64],
        values: NDArray[np.int32],
        responses: NDArray[np.int32],
        n_levels: NDArray[np.int32],
        /,
    ) -> None: ...
    def sample(
        self,
        given: NDArray[np.int32],
        keys: NDArray[np.uint64],
        draws: NDArray[np.int64],
        limits: Limits | None,
        least: NDArray[np.int64] | None,
        pooled: bool,
        watch: Watch,
    ) -> NDArray[np.int32]: ...
    def enumerate_rows(
        self,
        given: NDArray[np.int32],
        own: NDArray[np.int32],
        stays: NDArray[np.int32],
        limits: Limits | None,
        costs: NDArray[np.float64],
        offsets: NDArray[np.int64],
        n_changes: int,
        n_best: int,
        max_nodes: int,
        after_total: float,
        after: NDArray[np.int32],
        watch: Watch,
    ) -> tuple[NDArray[np.int32], NDArray[np.float64], int, bool]: ...
    def gather_holdings(
        self, contradictions: bool, most_levels: int, watch: Watch
    ) -> tuple[np.ndarray, ...]: ...

class Holdings:
    def __init__(
        self,
        forest: Forest,
        contradictions: bool,
        size: NDArray[np.int32],
        offset: NDArray[np.int64],
        sets: NDArray[np.uint64],
        /,
    ) -> None: ...
    def nonconformity(self, codes: NDArray[np.int32], watch: Watch) -> NDArray[np.int32]: ...

class Ensemble:
    def __init__(
        self,
        roots: NDArray[np.int32],
        feature: NDArray[np.int32],
        cut: NDArray[np.int32],
        left: NDArray[np.int32],
        value: NDArray[np.int64],
        inputs: NDArray[np.int32],
        first: NDArray[np.int64],
        bins: NDArray[np.uint8],
        /,
    ) -> None: ...
    def predict(
        self, codes: NDArray[np.int32], rows: NDArray[np.int64], watch: Watch
    ) -> NDArray[np.int64]: ...

class Neighbours:
    def __init__(
        self,
        points: NDArray[np.float64],
        first: NDArray[np.int64],
        last: NDArray[np.int64],
        left: NDArray[np.int64],
        right: NDArray[np.int64],
        column: NDArray[np.int32],
        left_edge: NDArray[np.float64],
        right_edge: NDArray[np.float64],
        is_level: NDArray[np.uint8],
        /,
    ) -> None: ...
    def nearest(self, rows: NDArray[np.float64], k: int, watch: Watch) -> NDArray[np.float64]: ...

def boost(
    bins: NDArray[np.uint8],
    n_bins: NDArray[np.int32],
    units: NDArray[np.int64],
    n_trees: int,
    max_leaves: int,
    min_samples_leaf: int,
    shrinkage: int,
    watch: Watch,
    /,
) -> tuple[np.ndarray, ...]: ...
def grow_tree(
    codes: list[np.ndarray],
    n_codes: NDArray[np.int32],
    by_set: NDArray[np.uint8],
    ordered: NDArray[np.uint8],
    inputs: NDArray[np.int32],
    units: NDArray[np.int64],
    classes: NDArray[np.int32],
    n_classes: int,
    answers: NDArray[np.int32],
    min_samples_leaf: int,
    min_samples_split: int,
    max_depth: int,
    decision_column: int,
    grow_undesired: bool,
    levels_per_row: int,
    many_levels: int,
    smallest_part: int,
    max_features: int,
    key: int,
    drawn: NDArray[np.int64] | None,
    watch: Watch,
    /,
) -> tuple[np.ndarray, ...]: ...
def build_neighbours(
    points: NDArray[np.float64], is_level: NDArray[np.uint8], watch: Watch, /
) -> tuple[np.ndarray, ...]: ...

class RowTable:
    def __init__(self, width: int, /) -> None: ...
    def place(self, rows: NDArray[np.int32], watch: Watch, /) -> NDArray[np.int64]: ...

def weigh_errors(
    cells: NDArray[np.int32],
    rows: NDArray[np.int64],
    first: NDArray[np.int64],
    last: NDArray[np.int64],
    known: NDArray[np.int64],
    error: NDArray[np.float64],
    total: NDArray[np.float64],
    weight: NDArray[np.float64],
    watch: Watch,
    /,
) -> tuple[NDArray[np.float64], NDArray[np.float64]]: ...
def first_of_each(codes: NDArray[np.int32], watch: Watch, /) -> NDArray[np.uint8]: ...

class Measure:
    def __init__(
        self,
        places: list[NDArray[np.float64] | None],
        own_places: list[NDArray[np.float64] | None],
        spreads: NDArray[np.float64],
        weights: NDArray[np.float64],
        n_present: NDArray[np.float64],
        squared: bool,
        city_block: bool,
        mean: bool,
        ignores_missing: bool,
        /,
    ) -> None: ...

def measure(
    codes: NDArray[np.int32],
    own_codes: NDArray[np.int32],
    group: NDArray[np.int64],
    axes: Measure,
    watch: Watch,
    /,
) -> NDArray[np.float64]: ...
def rank(
    codes: NDArray[np.int32],
    numbers: list[NDArray[np.float64] | None],
    own_codes: NDArray[np.int32],
    own_numbers: NDArray[np.float64],
    spreads: NDArray[np.float64],
    group: NDArray[np.int64],
    allowed: NDArray[np.uint8],
    distance: NDArray[np.float64],
    n_features: int,
    n_best: int,
    first_key: int,
    second_key: int,
    tolerance: float,
    max_sparsity: int,
    max_distance: float,
    axes: Measure | None,
    watch: Watch,
) -> tuple[np.ndarray, ...]: ...
