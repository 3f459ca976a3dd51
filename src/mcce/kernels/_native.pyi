import numpy as np
from numpy.typing import NDArray

def grow_tree(
    codes: list[np.ndarray],
    n_codes: NDArray[np.int32],
    by_set: NDArray[np.uint8],
    ordered: NDArray[np.uint8],
    sorted_rows: list[np.ndarray | None],
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
    /,
) -> tuple[np.ndarray, ...]: ...
def sample(*arrays: np.ndarray | int) -> NDArray[np.int32]: ...
def enumerate_rows(
    *arguments: np.ndarray | float,
) -> tuple[NDArray[np.int32], NDArray[np.float64], int, bool]: ...
def first_of_each(codes: NDArray[np.int32], /) -> NDArray[np.uint8]: ...
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
    /,
) -> tuple[np.ndarray, ...]: ...
def first_equal(rows: NDArray[np.int32], /) -> NDArray[np.int64]: ...
def gather_holdings(*arrays: np.ndarray | bool) -> tuple[np.ndarray, ...]: ...
def strain(*arrays: np.ndarray) -> NDArray[np.int32]: ...
def build_neighbours(
    points: NDArray[np.float64], is_level: NDArray[np.uint8], /
) -> tuple[np.ndarray, ...]: ...
def nearest(*arrays: np.ndarray | int) -> NDArray[np.float64]: ...
