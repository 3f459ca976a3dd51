"""Which search to run: the paper's, the named searches beyond it, and your own.

What a search needs from the explainer is checked here too, before anything is drawn. ``PRESETS``
holds each search by name, ``DEFAULTS`` what it requires of answers.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import KW_ONLY, dataclass, fields
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args

from ..errors import ParameterError, did_you_mean, shorten
from ..fitted import Needs
from ..parameters import check_choice, check_count, check_flag, check_real, check_whole

if TYPE_CHECKING:
    from ..survival.committee import Survival

SearchName = Literal["paper", "sparse", "balanced", "plausible", "near", "nearest", "exact"]
RankKey = Literal["sparsity", "n_actions", "distance"]
Copies = Literal["last", "never", "allow"]
ConsequenceMode = Literal["recompute", "redraw", "none"]
# The paper's ranking: fewest changes first, then the smallest distance.
RANK_BY: tuple[RankKey, ...] = ("sparsity", "distance")
BY_ACTIONS: tuple[RankKey, ...] = ("n_actions", "distance")
ENUMERATION_NEEDED = "The exact search lists all rows that can be drawn"
# The rankings of the paper's search, and those of the others.
RANKINGS_OF_PAPER = (RANK_BY, RANK_BY[::-1], ("sparsity",), ("distance",))
RANKINGS = RANK_BY, BY_ACTIONS
# Draws per person, the K of the paper: of its search, and of all others.
N_SAMPLES_OF_PAPER, N_SAMPLES = 1000, 100
# The largest default margin whose cost in changes is hard to see; docs/search_methods.md has it.
MARGIN = 0.02
# For people who still have no answer, up to this many.
MAX_SAMPLES = 10_000


class Defaults(NamedTuple):
    """What a named search requires of answers, unless told otherwise."""

    min_plausibility: float = 0.0
    extra_changes: int = 0
    # Whether fewer changes always come first, whatever the gain.
    fewest_first: bool = True
    # As a share of the largest margin.
    margin: float = 0.0


DEFAULTS: dict[str, Defaults] = {
    "paper": Defaults(),
    "sparse": Defaults(0.01, margin=MARGIN),
    "balanced": Defaults(0.05, extra_changes=1, fewest_first=False, margin=MARGIN),
    "plausible": Defaults(0.25, extra_changes=1, fewest_first=False),
    "near": Defaults(0.01, margin=MARGIN),
    "nearest": Defaults(0.01, extra_changes=1000, fewest_first=False),
}


@dataclass(frozen=True)
class Search:
    """A search for counterfactuals, by name, with the limits of its answers.

    Parameters
    ----------
    name
        ``"balanced"``: few and small changes that look real. ``"sparse"``: the fewest changes.
        ``"near"``: the fewest, then the smallest changes. ``"nearest"``: the smallest distance,
        however many changes. ``"plausible"``: rows close to real accepted ones, for about one extra
        change. ``"paper"``: the best draws, as published.
    min_plausibility
        The smallest plausibility of an answer: the share of real accepted people who look at least
        as unusual. It may be less where the answer is no more unusual than the person already is.
        Above 0, an answer also holds no pair of values that no training row has, though chance
        would have given it to many, unless the person has it. A larger share gives more realistic
        answers with more changes; 0 requires nothing. None is 0.05 for "balanced", 0.25 for
        "plausible", 0 for "paper" and 0.01 for the others.
    extra_changes
        How many changes an answer may have beyond the fewest known to suffice for the person, if
        that makes it better. Holds for every answer, and for the first one as far as is known
        before further ones are looked for. None is 1 for "balanced" and "plausible", and
        any number for "nearest". The others put the fewest changes first and accept 0 alone; their
        further answers have as many changes as it takes.
    max_samples
        The most draws of people without an answer. None draws no more for the paper's search, and
        up to 10,000 for the others.
    max_sparsity, max_distance
        Upper bounds on the number of changes and on the distance of an answer.
    margin
        How far inside the desired set the score must be, see :meth:`Decision.score_margins`. People
        whose score is inside already have the desired decision, whatever the margin. None is 2 % of
        the largest margin that a score can have, .51 for a probability that must be at least .5,
        and gives way where nothing else is found: whoever has no answer with it gets the best one
        without. It is 0 for "paper", "plausible" and "nearest", with ``max_evaluations``, and for
        scores without known bounds. ``result.min_margin`` says what it was.
    copies
        What to do with exact copies of training rows: return them only where there is nothing else
        (``"last"``), never, or like any other row (``"allow"``). None is ``"allow"`` for the
        paper's search and ``"last"`` for the others, which look for copies of accepted rows alone.
    consequences
        What happens to a column that is computed from changed ones, by a formula that you declared
        (:func:`mcce.constraints.derived`) or a relation found at fit, or is determined by one.
        ``"recompute"``: it follows, keeping the person's own deviation; it never changes by itself,
        and counts as a change of the row. ``"redraw"``: it changes like any other, and rows that
        break the relation are excluded. ``"none"``: relations found at fit are ignored, and
        declared ones only exclude rows. None is ``"none"`` for the paper's search and
        ``"recompute"`` for the others.
    rank_by
        How the paper's search ranks draws, the decisive key first. In the others,
        ``("n_actions", "distance")`` counts actions alone where answers are compared by their
        number of changes: recomputed columns cost nothing.
    tolerance
        In the paper's search, numeric differences up to this share of the training range do not
        count as changes. Only to reproduce tables that were counted that way; 0 counts exactly.
    max_evaluations
        Most rows the predictor scores per person, not counting the person's own row and the final
        check. When they are used up, the person gets the best answers so far, or a reason. None
        sets no limit. Not for the paper's search.

    See Also
    --------
    ExactSearch : the best row that the model could draw, with a proof.

    Examples
    --------
    >>> Search("sparse", max_sparsity=2).min_plausibility
    0.01
    """

    name: Literal["paper", "sparse", "balanced", "plausible", "near", "nearest"] = "balanced"
    _: KW_ONLY
    min_plausibility: float | None = None
    extra_changes: int | None = None
    max_samples: int | None = None
    max_sparsity: int | None = None
    max_distance: float | None = None
    margin: float | None = None
    copies: Copies | None = None
    consequences: ConsequenceMode | None = None
    rank_by: Sequence[RankKey] = RANK_BY
    tolerance: float = 0.0
    max_evaluations: int | None = None

    def __post_init__(self) -> None:
        if str(self.name) == "exact":
            raise ParameterError("'exact' is an ExactSearch. Pass ExactSearch(...) instead.")
        check_choice("name", self.name, tuple(DEFAULTS))
        defaults, of_paper = DEFAULTS[self.name], self.is_paper
        self._resolve("min_plausibility", defaults.min_plausibility)
        self._resolve("extra_changes", defaults.extra_changes)
        self._resolve("copies", "allow" if of_paper else "last")
        self._resolve("consequences", "none" if of_paper else "recompute")
        below_one = math.nextafter(1.0, 0.0)
        expected = "at least 0 and below 1"
        check_real("min_plausibility", self.min_plausibility, expected, most=below_one)
        check_whole("extra_changes", self.extra_changes, 0, 1000)
        if self.extra_changes and defaults.fewest_first:
            raise ParameterError(
                f"{self.name!r} puts the fewest changes first: extra_changes must be 0, got "
                f"{self.extra_changes!r}. Leave it out, or use another search, such as 'balanced'."
            )
        if self.max_samples is not None:
            check_count("max_samples", self.max_samples)
        _check_limits(self)
        check_choice("consequences", self.consequences, get_args(ConsequenceMode))
        self._check_rank_by()
        check_real("tolerance", self.tolerance, "a finite number >= 0")
        if self.max_evaluations is not None:
            check_count("max_evaluations", self.max_evaluations)
        self._check_kind()

    def _resolve(self, name: str, default: Any) -> None:
        if getattr(self, name) is None:
            object.__setattr__(self, name, default)

    def _check_kind(self) -> None:
        """Raise for what only the paper's search has, or only the others."""
        if self.is_paper and self.max_evaluations is not None:
            raise ParameterError(
                "max_evaluations is not for the paper's search, whose predictor scores draws: pass "
                "n_samples and max_samples to bound their number, or use another search, such as "
                f"'sparse' or 'balanced'; got max_evaluations={self.max_evaluations!r}."
            )
        if self.tolerance and not self.is_paper:
            raise ParameterError(
                f"tolerance={self.tolerance!r} is for the paper's search, to reproduce tables that "
                f"were counted that way; {self.name!r} counts exactly. Leave it out."
            )

    def _check_rank_by(self) -> None:
        given, allowed = self.rank_by, RANKINGS_OF_PAPER if self.is_paper else RANKINGS
        listed = isinstance(given, (list, tuple)) and all(isinstance(name, str) for name in given)
        if not listed or tuple(given) not in allowed:
            raise ParameterError(
                f"rank_by must be one of {allowed!r} for the search {self.name!r}, got "
                f"{shorten(given)}. The decisive key comes first."
            )
        object.__setattr__(self, "rank_by", tuple(given))

    @property
    def is_paper(self) -> bool:
        """Whether this is the paper's search, whose answers are draws."""
        return self.name == "paper"

    def resolve_samples(self, n_samples: int | None) -> tuple[int, int]:
        """Draws per person, and the most of people without an answer.

        Parameters
        ----------
        n_samples
            What the explainer says; None is what this search says.

        Returns
        -------
        tuple of int
            ``n_samples`` and ``max_samples``.
        """
        n_samples = n_samples or (N_SAMPLES_OF_PAPER if self.is_paper else N_SAMPLES)
        max_samples = self.max_samples or (n_samples if self.is_paper else MAX_SAMPLES)
        return n_samples, max(n_samples, max_samples)

    @property
    def sampling_search(self) -> Search:
        """The search by draws and changes: this one."""
        return self

    @property
    def needs(self) -> Needs:
        """What this search needs from the explainer."""
        relations = self.consequences != "none"
        return Needs(
            beyond_paper=not self.is_paper or bool(self.min_plausibility) or relations,
            requires_plausibility=not self.is_paper or bool(self.min_plausibility),
            surrogate=not self.is_paper,
            relations=relations,
            # The other searches have the accepted rows, and look for copies of these.
            training_rows=self.copies == "never" or (self.copies == "last" and self.is_paper),
        )


@dataclass(frozen=True)
class ExactSearch:
    """The best of all rows that the model could draw, with a proof; by name ``"exact"``.

    Rows are visited in the order of the ranking, by number of changes and then Gower distance. So
    the first valid and allowed row is the best: no number of draws can improve on it. Further
    answers are the next ones that would lose the decision with some of their changes undone. People
    who exceed the budget get answers from the search "near" without required plausibility, or keep
    those found so far; either way ``proven`` is False. Such answers need not be rows that the model
    could draw.

    Parameters
    ----------
    max_rows
        Rows visited per person; the predictor scores those that are allowed.
    max_nodes
        Leaves of the model visited to list a person's rows, a million in about 0.1 s.
    max_sparsity, max_distance
        Upper bounds on the number of changes and on the distance of an answer.
    keep_unseen
        Whether own values may stay that training never held: numbers wherever the model could draw
        the nearest training value, levels and missing values anywhere.
    margin, copies
        How far inside the desired set the score must be, and what to do with copies of training
        rows, as for :class:`Search`. With ``copies="last"``, what is proven is the best row that is
        no copy, if there is one.

    Examples
    --------
    >>> ExactSearch(max_sparsity=2).max_rows
    100000
    """

    max_rows: int = 100_000
    max_nodes: int = 30_000_000
    max_sparsity: int | None = None
    max_distance: float | None = None
    keep_unseen: bool = True
    margin: float = 0.0
    copies: Copies = "allow"

    def __post_init__(self) -> None:
        check_count("max_rows", self.max_rows)
        check_whole("max_nodes", self.max_nodes, 1, 2**53)
        check_flag("keep_unseen", self.keep_unseen)
        _check_limits(self)

    @property
    def needs(self) -> Needs:
        """What this search needs from the explainer."""
        return Needs(
            beyond_paper=True,
            # For people whose proof exceeds the budget; a private model goes without.
            surrogate=True,
            relations=True,
            training_rows=self.copies != "allow",
        )

    @property
    def sampling_search(self) -> Search:
        """The search by draws and changes: the one for people whose proof exceeds the budget."""
        return Search(
            "near",
            min_plausibility=0.0,
            max_sparsity=self.max_sparsity,
            max_distance=self.max_distance,
            margin=self.margin,
            copies=self.copies,
        )


@dataclass(frozen=True)
class ExplainSettings:
    """The parameters of an explainer that may change between ``fit`` and ``explain``."""

    search: Search | ExactSearch
    n_samples: int | None
    n_counterfactuals: int
    diversity: float | None
    ignore_relations: bool | Sequence[str]
    memory: float
    n_jobs: int | None
    max_seconds: float | None
    verbose: bool

    @classmethod
    def from_parameters(cls, parameters: Mapping[str, Any], *, private: bool) -> ExplainSettings:
        """The settings among the parameters of an explainer, whose generator may be private."""
        named = {f.name: parameters[f.name] for f in fields(cls)}
        return cls(**named | {"search": find_search(parameters["search"], private=private)})


def find_search(search: Any, *, private: bool) -> Search | ExactSearch:
    """The search of that name, or the object itself; None is the default.

    That is "balanced", or "paper" with a private generator, whose budget covers nothing else.
    """
    if search is None:
        search = "paper" if private else "balanced"
    if isinstance(search, str) and search in PRESETS:
        return PRESETS[search]
    if isinstance(search, type) and issubclass(search, (Search, ExactSearch)):
        raise ParameterError(
            f"search must be a name or an object, got the class {search.__name__}. "
            f"Pass an instance: search={search.__name__}()."
        )
    if not isinstance(search, (Search, ExactSearch)):
        raise ParameterError(
            f"search must be None, one of {list(PRESETS)!r}, a Search or an ExactSearch, got "
            f"{shorten(search)}.{did_you_mean(search, PRESETS)}"
        )
    return search


def find_survival(given: Any, search: Search | ExactSearch, *, private: bool) -> Survival | None:
    """How answers are to last: a share, or the object itself."""
    if given is None:
        return None
    from ..survival.committee import Survival

    survival = given if isinstance(given, Survival) else Survival(given)
    if private or not isinstance(search, Search) or search.is_paper:
        raise ParameterError(
            "survival is for the searches beyond the paper, without a proof and with a generator "
            f"that is not private; got search={search!r}. Leave it out, or use search='balanced'."
        )
    if survival.share and search.margin:
        raise ParameterError(
            f"survival={given!r} and margin={search.margin!r} both say how far inside the desired "
            "set answers are to be. Leave one of them out."
        )
    return survival


def _check_limits(search: Search | ExactSearch) -> None:
    """Raise unless the limits of answers are bounds, a margin, and what to do with copies."""
    if search.max_sparsity is not None:
        check_count("max_sparsity", search.max_sparsity, least=0)
    if search.max_distance is not None:
        check_real("max_distance", search.max_distance, "a number >= 0", infinite=True)
    # None is the default of Search alone.
    if search.margin is not None or isinstance(search, ExactSearch):
        check_real("margin", search.margin, "a finite number >= 0")
    check_choice("copies", search.copies, get_args(Copies))


PRESETS: dict[str, Search | ExactSearch] = {name: Search(name) for name in DEFAULTS} | {  # type: ignore[arg-type]
    "exact": ExactSearch()
}
