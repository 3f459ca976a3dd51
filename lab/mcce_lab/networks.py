"""torch for whatever trains networks: imported late, in one thread, with seeds of its own.

Always true: without torch the error names the extra to install; the number of threads and the
random numbers of the caller are as before, and threads of the caller take turns.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from mcce.errors import ParameterError, missing_extra, shorten

# torch has one random state per process: two threads would take each other's numbers. Reentrant,
# because a predictor may itself explain.
_ALONE = threading.RLock()


def check_device(device: Any) -> None:
    """Raise unless a device is one that these methods can use; needs no torch."""
    if not isinstance(device, str) or not re.fullmatch(r"cpu|cuda(:[0-9]{1,3})?", device):
        raise ParameterError(
            f'device must be "cpu", "cuda" or a numbered one such as "cuda:0", got '
            f"{shorten(device)}."
        )


def import_torch(method: str, device: str) -> Any:
    """The library, with a device that is there.

    Parameters
    ----------
    method
        The method that needs it, for the error.
    device
        Where the method computes.

    Returns
    -------
    module
        torch.

    Raises
    ------
    MissingExtraError
        If torch is not installed.
    ParameterError
        If the device is absent.
    """
    try:
        torch = import_module("torch")
    except ImportError as error:
        raise missing_extra("torch", "deep", method, folder="./lab") from error
    wanted = torch.device(device)
    n_devices = torch.cuda.device_count() if torch.cuda.is_available() else 0
    if wanted.type == "cuda" and (wanted.index or 0) >= n_devices:
        raise ParameterError(
            f"device={device!r} is not there: torch sees {n_devices} CUDA devices on this machine. "
            'Pass device="cpu", or install a torch that supports the GPU.'
        )
    return torch


@contextmanager
def isolated(seed: int) -> Iterator[Any]:
    """One thread, seeded random numbers and gradients inside; afterwards all is as before."""
    import torch

    with _ALONE, torch.random.fork_rng(devices=[]), torch.enable_grad():
        n_threads = torch.get_num_threads()
        # Not torch.manual_seed, which would also seed the GPUs of the caller.
        torch.default_generator.manual_seed(seed)
        torch.set_num_threads(1)
        try:
            yield torch
        finally:
            torch.set_num_threads(n_threads)
