"""The sparsity pass: changes that a counterfactual does not need are undone.

Laugel et al. 2018, the last step of Growing Spheres. Takes valid points and their people; each
feature that changed is put back, the smallest change first, as long as the point stays valid.

Always true: a point stays valid by a call of the predictor, and changes no feature that it did not
change before.
"""

from __future__ import annotations

import numpy as np

from mcce.kernels import FloatArray, IntArray

from .baseline import Declined
from .space import Space


def undo_needless(
    space: Space, declined: Declined, owner: IntArray, points: FloatArray
) -> FloatArray:
    """Valid points with as many features put back as can be, one at a time.

    Parameters
    ----------
    space
        The cube of the points.
    declined
        The people, and the predictor that is called.
    owner : (n_points,)
        Position of each point's person.
    points : (n_points, n_axes)
        Projected points that are valid.

    Returns
    -------
    (n_points, n_axes)
        Projected points that are valid.
    """
    own, points = space.encode(declined.rows)[owner], points.copy()
    moves = np.zeros((len(points), len(space.schema.features)))
    for axis, at in enumerate(space.feature):
        moves[:, at] = np.maximum(moves[:, at], np.abs(points[:, axis] - own[:, axis]))
    order = np.argsort(moves, axis=1, kind="stable")
    for rank in range(order.shape[1]):
        feature = order[:, rank]
        # A row whose only change this is would become the declined person.
        several = space.n_changes(points, own) > 1
        tried = np.flatnonzero(several & (moves[np.arange(len(moves)), feature] > 0))
        if not tried.size:
            continue
        undone = np.arange(order.shape[1]) == feature[tried, None]
        shorter = space.revert(points[tried], own[tried], undone)
        valid = declined.score(space.compose(declined.rows, owner[tried], shorter)).valid
        points[tried[valid]] = shorter[valid]
    return points
