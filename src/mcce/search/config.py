"""How answers are searched for: the paper's way, and named ways that go beyond it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, get_args

from ..errors import ParameterError
from ..parameters import check_real, check_whole

Prefer = Literal["sparsity", "knn_distance", "distance", "both"]
# Probability of keeping an own value that serves guided draws well.
KEEP = 0.8


@dataclass(frozen=True)
class Search:
    """What is looked for, and how hard.

    The presets, by name: ``"paper"`` ranks the draws as they are. The others walk from the person
    towards several draws and keep what is needed: ``"sparse"`` for the fewest changes,
    ``"balanced"`` for few and small ones that look real, ``"plausible"`` for rows that could hardly
    be told from real accepted ones, ``"near"`` for the fewest and then smallest changes.
    ``"fast"`` ranks guided draws: worse than these, better than the paper's, and quick.

    Parameters
    ----------
    targets
        Valid draws to walk towards, per person; 0: the draws themselves are the answers. Each
        costs a few rows of the predictor; twice as many give slightly fewer changes.
    support
        Share of real accepted rows that are inside the calibrated support; answers must be inside
        where that is possible. The smaller, the more realistic are answers and the more changes
        they need. None: realism is not asked for.
    slack
        Changes above a person's fewest that may be spent on what is preferred.
    prefer
        Which of a person's answers within the slack is taken: that of fewest changes unless one
        more brings it much nearer to real accepted rows (``"sparsity"``), the one nearest to real
        accepted rows (``"knn_distance"``) or to the person (``"distance"``), or a balance of these
        (``"both"``).
    keep
        Probability with which a draw keeps the person's own value where the model could have drawn
        it. 0 is the paper. The higher, the fewer draws are needed, but the less they differ.
    n_samples, max_samples
        Draws per person, and how many people without an answer get at most; None: no further ones.
    """

    targets: int = 12
    support: float | None = 0.95
    slack: int = 1
    prefer: Prefer = "both"
    keep: float = 0.0
    n_samples: int = 100
    max_samples: int | None = 10_000

    def __post_init__(self) -> None:
        check_whole("targets", self.targets, 0, 1000)
        if self.support is not None:
            told = "None or a share above 0 and below 1"
            check_real("support", self.support, told, zero=False, most=1.0)
            if self.support == 1:
                raise ParameterError(f"support must be {told}, got {self.support!r}.")
        check_whole("slack", self.slack, 0, 1000)
        if self.prefer not in get_args(Prefer):
            raise ParameterError(
                f"prefer must be one of {list(get_args(Prefer))!r}, got {self.prefer!r}."
            )
        check_real("keep", self.keep, "a probability from 0 up to, but not, 1", most=1.0)
        if self.keep == 1:
            raise ParameterError("keep must be below 1: at 1 nothing would ever change, got 1.")
        if not self.targets and (self.slack, self.prefer) != (0, "distance"):
            raise ParameterError(
                "Without targets there is nothing to choose from beyond the ranking: give "
                f"slack=0 and prefer='distance', or some targets; got slack={self.slack!r} and "
                f"prefer={self.prefer!r}."
            )
        check_whole("n_samples", self.n_samples, 1, 2**31 - 1)
        if self.max_samples is None:
            return
        check_whole("max_samples", self.max_samples, 1, 2**31 - 1)
        if self.max_samples < self.n_samples:
            raise ParameterError(
                f"max_samples must be at least n_samples, {self.n_samples}, got "
                f"{self.max_samples!r}."
            )

    @property
    def draws(self) -> Search:
        """The search for whom draws are needed: everybody."""
        return self

    @property
    def needs_plausibility(self) -> bool:
        """Whether fit must learn what real accepted rows look like."""
        return self.targets > 0 or self.support is not None


@dataclass(frozen=True)
class ExactSearch:
    """The best of all rows that the model could draw, with a proof; by name ``"exact"``.

    Rows are looked at in the order of the ranking, by number of changes and then distance, so the
    first that is valid and allowed is the best: no number of draws can better it. For whom that
    takes too long there are guided draws, unless some of several answers were found by then, and
    ``proven`` in the measures is False.

    Parameters
    ----------
    max_rows
        Rows of a person that are looked at; the predictor is asked about those that are allowed.
    max_nodes
        Leaves of the model that are visited to list a person's rows, a million in about 0.1 s.
    n_samples, max_samples
        Draws for a person beyond that, and how many people without an answer get at most.
    """

    max_rows: int = 100_000
    max_nodes: int = 30_000_000
    n_samples: int = 1000
    max_samples: int | None = 10_000

    def __post_init__(self) -> None:
        check_whole("max_rows", self.max_rows, 1, 2**31 - 1)
        check_whole("max_nodes", self.max_nodes, 1, 2**53)
        _ = self.draws  # which checks the rest

    @property
    def draws(self) -> Search:
        """The search for those whom the budget does not suffice for."""
        return _draws(keep=KEEP, n_samples=self.n_samples, max_samples=self.max_samples)

    @property
    def support(self) -> None:
        """Realism is not asked for."""

    @property
    def needs_plausibility(self) -> bool:
        """Accepted rows are not looked at."""
        return False


def _draws(**knobs: Any) -> Search:
    return Search(targets=0, support=None, slack=0, prefer="distance", **knobs)


SEARCHES: dict[str, Search | ExactSearch] = {
    "paper": _draws(n_samples=1000, max_samples=None),
    "sparse": Search(prefer="sparsity"),
    "balanced": Search(),
    "plausible": Search(targets=10, support=0.75, prefer="knn_distance"),
    "near": Search(slack=0, prefer="distance"),
    "fast": _draws(keep=KEEP, n_samples=200, max_samples=1000),
    "exact": ExactSearch(),
}


def find_search(search: Any) -> Search | ExactSearch:
    """The search of that name, or the object itself."""
    if isinstance(search, str) and search in SEARCHES:
        return SEARCHES[search]
    if isinstance(search, type) and issubclass(search, (Search, ExactSearch)):
        raise ParameterError(
            f"search must be a name or an object, got the class {search.__name__}. "
            f"Pass an instance: search={search.__name__}()."
        )
    if not isinstance(search, (Search, ExactSearch)):
        raise ParameterError(
            f"search must be one of {list(SEARCHES)!r}, a Search or an ExactSearch, got {search!r}."
        )
    return search
