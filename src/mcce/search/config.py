"""Which search to run: the paper's, the named searches beyond it, and your own.

What a search needs from the explainer is checked here too, before anything is drawn.

``PRESETS`` defines each search by name: "paper", "sparse", "balanced", "plausible", "near", "fast"
and "exact".
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar, Literal, get_args

from ..constraints.collection import Constraints
from ..distances import Gower, is_gower
from ..errors import ConstraintError, NotFittedError, ParameterError, shorten
from ..fitted import Fitted, Needs
from ..generate import GUIDANCE_NEEDED
from ..model.registry import is_private, require
from ..parameters import check_choice, check_count, check_flag, check_real, check_whole
from ..protocols import Distance, Generator

if TYPE_CHECKING:
    from ..relations.relation import Relation

SearchName = Literal["paper", "sparse", "balanced", "plausible", "near", "fast", "exact"]
Preference = Literal["sparsity", "knn_distance", "distance", "balanced"]
RankKey = Literal["sparsity", "n_actions", "distance"]
Copies = Literal["last", "never", "allow"]
ConsequenceMode = Literal["recompute", "redraw", "none"]
# The paper's ranking: fewest changes first, then the smallest distance.
RANK_BY: tuple[RankKey, ...] = ("sparsity", "distance")
BY_ACTIONS: tuple[RankKey, ...] = ("n_actions", "distance")
# How often guided draws keep a person's own value.
KEEP_PROBABILITY = 0.8
ENUMERATION_NEEDED = "The exact search lists all rows that can be drawn"


@dataclass(frozen=True)
class Search:
    """A search for counterfactuals by sampling, and what it looks for.

    Without targets, the best draws are the answers: that is the paper's search. With targets, the
    search walks from the person towards several valid draws, changing one feature at a time, undoes
    what is not needed, and selects among the rows it visited. A surrogate that imitates the
    predictor (``surrogate_``) guides it: the predictor scores the rows that would be returned, and
    some that may be better. :meth:`preset` gives the named searches; pass changes to adapt one.

    Parameters
    ----------
    n_targets
        Draws to walk towards, per person; 0 returns the draws themselves. Twice as many take
        longer and give slightly fewer changes.
    min_plausibility
        The smallest plausibility of an answer: the share of real accepted people who look at least
        as unusual. It may be less where the answer is no more unusual than the person already is. A
        larger share gives more realistic answers with more changes; 0 requires nothing.
    allow_implausible
        Whether people for whom no row is plausible enough get the best of the others. The measure
        ``plausible`` marks them. Needs ``min_plausibility`` above 0.
    extra_changes
        Changes above a person's minimum, allowed in exchange for a better answer by ``prefer``.
    prefer
        Which answer to select among those with few enough changes: the one with the fewest changes,
        unless one more brings it much closer to real accepted rows (``"sparsity"``); the closest to
        real accepted rows (``"knn_distance"``); the closest to the person (``"distance"``); or a
        weighted sum of all three (``"balanced"``).
    keep_probability
        Probability that a draw keeps the person's own value where the model could have drawn it. 0
        is the paper's. Higher values need fewer draws, but the draws differ less. Above 0, with
        ``keep_unseen``, changes that are not needed are undone: an answer need not be a draw.
    keep_unseen
        Whether own values may stay that training never held. Without ``keep_probability``, a draw
        of the training value nearest to such a number keeps the number. With it, draws keep the
        number or change it to the nearest, and also keep levels and missing values. False is the
        paper's: such values always change.
    back_off
        Whether a value is drawn from a larger node of the model's tree where the leaf holds none
        that the person may have, and for people without an answer where it holds few. False is the
        paper's: the own value is kept there.
    n_samples, max_samples
        Draws per person, and the most that people without an answer get; None gives them no more.
    max_sparsity, max_distance
        Upper bounds on the number of changes and on the distance of an answer.
    margin
        How far inside the desired set the score must be, see :meth:`Decision.score_margins`. People
        whose score is inside already have the desired decision, whatever the margin.
    copies
        What to do with exact copies of training rows: return them only where there is nothing else
        (``"last"``), never, or like any other row (``"allow"``).
    consequences
        What happens to a column that is computed from changed ones, by a formula that you declared
        (:func:`mcce.constraints.derived`) or a relation found at fit, or is determined by one.
        ``"recompute"``: it follows, keeping the person's own deviation; it never changes by itself.
        ``"redraw"``: it changes like any other, and rows that break the relation are excluded.
        ``"none"``: relations found at fit are ignored, and declared ones only exclude rows.
    rank_by
        How draws are ranked, the decisive key first; only without targets. With targets,
        ``("n_actions", "distance")`` counts actions where answers are compared by their number of
        changes: recomputed columns cost nothing.
    tolerance
        Numeric differences up to this share of the training range do not count as changes. Only to
        reproduce tables that were counted that way; 0 counts exactly.
    max_evaluations
        Rows that the predictor scores for a person at most, the person's own and the final call on
        what is returned not counted. When they are used up, the person gets the best answers so
        far, or a reason. None sets no limit. Only with targets.

    See Also
    --------
    ExactSearch : the best row that the model could draw, with a proof.

    Examples
    --------
    >>> Search.preset("sparse", max_sparsity=2).prefer
    'sparsity'
    """

    n_targets: int = 12
    min_plausibility: float = 0.05
    allow_implausible: bool = False
    extra_changes: int = 1
    prefer: Preference = "balanced"
    keep_probability: float = 0.0
    keep_unseen: bool = False
    back_off: bool = True
    n_samples: int = 100
    max_samples: int | None = 10_000
    max_sparsity: int | None = None
    max_distance: float | None = None
    margin: float = 0.0
    copies: Copies = "last"
    consequences: ConsequenceMode = "recompute"
    rank_by: Sequence[RankKey] = RANK_BY
    tolerance: float = 0.0
    max_evaluations: int | None = None
    is_exact: ClassVar[bool] = False

    def __post_init__(self) -> None:
        if isinstance(self.n_targets, str):
            name = shorten(self.n_targets)
            raise ParameterError(
                f"n_targets must be a whole number, got {name}. For a named search, pass "
                f"search={name}, or Search.preset({name}) to adapt it."
            )
        check_whole("n_targets", self.n_targets, 0, 1000)
        check_below_one("min_plausibility", self.min_plausibility, "at least 0 and below 1")
        check_flag("allow_implausible", self.allow_implausible)
        check_whole("extra_changes", self.extra_changes, 0, 1000)
        check_choice("prefer", self.prefer, get_args(Preference))
        check_below_one("keep_probability", self.keep_probability, "at least 0 and below 1")
        check_flag("keep_unseen", self.keep_unseen)
        check_flag("back_off", self.back_off)
        check_samples(self.n_samples, self.max_samples)
        check_bounds(self.max_sparsity, self.max_distance)
        check_margin_and_copies(self.margin, self.copies, get_args(Copies))
        check_choice("consequences", self.consequences, get_args(ConsequenceMode))
        check_rank_by(self.rank_by)
        check_real("tolerance", self.tolerance, "a finite number >= 0")
        if self.max_evaluations is not None:
            check_count("max_evaluations", self.max_evaluations)
        if self.allow_implausible and not self.min_plausibility:
            raise ParameterError(
                "allow_implausible=True allows nothing more where min_plausibility is 0, as in the "
                "search 'paper'. Pass min_plausibility above 0, or leave allow_implausible out."
            )
        self._check_targets()

    def _check_targets(self) -> None:
        if self.n_targets and tuple(self.rank_by) not in (RANK_BY, BY_ACTIONS):
            raise ParameterError(
                f"rank_by={self.rank_by!r} ranks draws, but a search with targets selects among "
                f"the rows it visits. Leave rank_by out, pass {BY_ACTIONS!r}, or pass n_targets=0."
            )
        if not self.n_targets and "n_actions" in self.rank_by:
            raise ParameterError(
                f"rank_by={self.rank_by!r} counts actions, but a search without targets ranks "
                'draws by "sparsity" and "distance". Pass these, or n_targets above 0.'
            )
        if not self.n_targets and (self.extra_changes, self.prefer) != (0, "distance"):
            raise ParameterError(
                "A search without targets has nothing to prefer beyond its ranking. Pass "
                "extra_changes=0 and prefer='distance', or n_targets above 0; got "
                f"extra_changes={self.extra_changes!r} and prefer={self.prefer!r}."
            )
        if not self.n_targets and self.max_evaluations is not None:
            raise ParameterError(
                "max_evaluations needs a search with targets, such as 'sparse' or 'balanced'. "
                "Without targets the predictor scores draws: pass n_samples and max_samples to "
                f"bound their number; got max_evaluations={self.max_evaluations!r}."
            )

    @classmethod
    def preset(cls, name: SearchName, **changes: Any) -> Search:
        """A named search, with some of its parameters changed.

        Parameters
        ----------
        name
            ``"paper"``: the best draws, as published. ``"sparse"``: the fewest changes.
            ``"balanced"``: few and small changes that look real. ``"plausible"``: rows close to
            real accepted ones, for about one extra change. ``"near"``: the fewest, then the
            smallest changes. ``"fast"``: the best of guided draws.
        **changes
            Parameters of :class:`Search` to change.

        Returns
        -------
        Search
            The search.

        Raises
        ------
        ParameterError
            If there is no such search, or a parameter cannot have its value.

        Examples
        --------
        >>> Search.preset("paper", max_sparsity=3).n_samples
        1000
        """
        search = find_search(name)
        if not isinstance(search, Search):
            raise ParameterError("'exact' is an ExactSearch. Pass ExactSearch(...) instead.")
        known = list(cls.__dataclass_fields__)
        unknown = [given for given in changes if given not in known]
        if unknown:
            raise ParameterError(
                f"Search has no parameter {unknown[0]!r}. Its parameters are {known!r}."
            )
        return replace(search, **changes)

    @property
    def sampling(self) -> Search:
        """The search itself."""
        return self

    @property
    def needs(self) -> Needs:
        """What this search needs from the explainer."""
        requires_plausibility = self.n_targets > 0 or self.min_plausibility > 0
        relations = self.consequences != "none"
        return Needs(
            beyond_paper=requires_plausibility or relations,
            requires_plausibility=requires_plausibility,
            surrogate=self.n_targets > 0,
            relations=relations,
            # With targets, the accepted rows are there, and only they can be copied.
            training_rows=self.copies == "never" or (self.copies == "last" and not self.n_targets),
            guidance=self.keep_probability > 0,
        )


@dataclass(frozen=True)
class ExactSearch:
    """The best of all rows that the model could draw, with a proof; by name ``"exact"``.

    Rows are visited in the order of the ranking, by number of changes and then Gower distance. So
    the first valid and allowed row is the best: no number of draws can improve on it. Further
    answers are the next ones that would lose the decision with some of their changes undone. People
    who exceed the budget get answers from guided draws, or keep those found so far; either way
    ``proven`` is False. Such answers need not be rows that the model could draw.

    Parameters
    ----------
    max_rows
        Rows visited per person; the predictor scores those that are allowed.
    max_nodes
        Leaves of the model visited to list a person's rows, a million in about 0.1 s.
    n_samples, max_samples
        Draws for a person beyond that budget, and the most that people without an answer get.
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
    n_samples: int = 1000
    max_samples: int | None = 10_000
    max_sparsity: int | None = None
    max_distance: float | None = None
    keep_unseen: bool = True
    margin: float = 0.0
    copies: Copies = "allow"
    is_exact: ClassVar[bool] = True

    def __post_init__(self) -> None:
        check_count("max_rows", self.max_rows)
        check_whole("max_nodes", self.max_nodes, 1, 2**53)
        check_flag("keep_unseen", self.keep_unseen)
        check_samples(self.n_samples, self.max_samples)
        check_bounds(self.max_sparsity, self.max_distance)
        check_margin_and_copies(self.margin, self.copies, get_args(Copies))

    @property
    def needs(self) -> Needs:
        """What this search needs from the explainer."""
        return Needs(
            beyond_paper=True,
            relations=True,
            training_rows=self.copies != "allow",
            guidance=True,
            enumeration=True,
            diversity=False,
            gower=True,
        )

    @property
    def sampling(self) -> Search:
        """The search by sampling for people whose rows exceed the budget."""
        return _sampling(
            keep_probability=KEEP_PROBABILITY,
            keep_unseen=self.keep_unseen,
            back_off=False,
            n_samples=self.n_samples,
            max_samples=self.max_samples,
            max_sparsity=self.max_sparsity,
            max_distance=self.max_distance,
            margin=self.margin,
            copies=self.copies,
        )


def find_search(search: Any) -> Search | ExactSearch:
    """The search of that name, or the object itself."""
    if isinstance(search, str) and search in PRESETS:
        return PRESETS[search]
    if isinstance(search, type) and issubclass(search, (Search, ExactSearch)):
        raise ParameterError(
            f"search must be a name or an object, got the class {search.__name__}. "
            f"Pass an instance: search={search.__name__}()."
        )
    if not isinstance(search, (Search, ExactSearch)):
        raise ParameterError(
            f"search must be one of {list(PRESETS)!r}, a Search or an ExactSearch, got "
            f"{shorten(search)}."
        )
    return search


def check_below_one(name: str, value: Any, expected: str) -> None:
    """Raise unless a value is a share below 1."""
    check_real(name, value, expected, most=1.0)
    if value == 1:
        raise ParameterError(f"{name} must be {expected}, got {shorten(value)}.")


def check_samples(n_samples: Any, max_samples: Any) -> None:
    """Raise unless these are numbers of draws, the second not the smaller one."""
    check_count("n_samples", n_samples)
    if max_samples is None:
        return
    check_count("max_samples", max_samples)
    if max_samples < n_samples:
        raise ParameterError(
            f"max_samples must be at least n_samples, {n_samples}, got {shorten(max_samples)}."
        )


def check_bounds(max_sparsity: Any, max_distance: Any) -> None:
    """Raise unless these are bounds on changes and distance, or None."""
    if max_sparsity is not None:
        check_count("max_sparsity", max_sparsity, least=0)
    if max_distance is not None:
        check_real("max_distance", max_distance, "a number >= 0", infinite=True)


def check_margin_and_copies(margin: Any, copies: Any, choices: Sequence[str]) -> None:
    """Raise unless these are a margin, and what to do with copies of training rows."""
    check_real("margin", margin, "a finite number >= 0")
    check_choice("copies", copies, choices)


def check_rank_by(names: Any) -> None:
    """Raise unless the keys of a ranking are known and named once each."""
    listed = isinstance(names, (list, tuple)) and all(isinstance(name, str) for name in names)
    if not listed or not names or len({*names} & {*get_args(RankKey)}) < len(names):
        raise ParameterError(
            'rank_by must list "sparsity" (or "n_actions"), "distance" or both, most important '
            f'first, got {shorten(names)}. Write e.g. rank_by=["distance"].'
        )


def check_needs(
    generator: Generator, search: Search | ExactSearch, distance: Distance, diversity: float | None
) -> None:
    """Raise for what a search needs and does not get."""
    needs = search.needs
    if needs.enumeration:
        require(generator, "enumeration", ENUMERATION_NEEDED)
    if needs.guidance:
        require(generator, "guidance", GUIDANCE_NEEDED)
    if needs.gower and not is_gower(distance):
        raise _not_for_exact("distance", "gower", distance.name)
    if not needs.diversity and diversity is not None:
        raise _not_for_exact("diversity", None, diversity)


def check_private(
    generator: Generator,
    search: Search | ExactSearch,
    distance: Distance,
    ignore_relations: Any,
) -> None:
    """Raise if the model is private, and a search or distance reads training rows without noise."""
    if not is_private(generator):
        return
    needs = search.needs
    reads = {
        "learns what accepted training rows look like": needs.requires_plausibility
        or needs.surrogate,
        "keeps the training rows, to tell copies of them": needs.training_rows,
        "keeps relations that are found in the training rows": (
            needs.relations and ignore_relations is not True
        ),
    }
    unprotected = [what for what, does in reads.items() if does]
    if unprotected:
        raise ParameterError(
            f"The generator {type(generator).__name__} is private, but the search "
            f"{' and '.join(unprotected)}, which its budget does not cover. Use search='paper'; or "
            "search='fast' or search='exact' with ignore_relations=True."
        )
    if getattr(distance, "reads_rows", True):
        raise ParameterError(
            f"The generator {type(generator).__name__} is private, but the distance "
            f"{distance.name!r} learns from training rows, which its budget does not cover. Use "
            "distance='gower', whose ranges are those of the declared domains."
        )


def check_refit(generator: Generator, training: Any) -> None:
    """Raise if a private model would be fitted again, which spends its budget each time."""
    if training is not None and is_private(generator):
        raise ParameterError(
            f"The generator {type(generator).__name__} is private, and to fit it again with other "
            "immutable features would spend its budget once for each. Leave training out."
        )


def check_inputs(fitted: Fitted, search: Search | ExactSearch) -> None:
    """Raise if trees consider some inputs only, and the search is the paper's."""
    most = getattr(fitted.generator, "max_inputs", None)
    if most is not None and fitted.plausibility is not None and not search.needs.beyond_paper:
        raise NotFittedError(
            f"This search draws from trees that consider all columns, but fit had another search, "
            f"for which each tree of a table with {len(fitted.schema.features)} columns considers "
            f"{most} of them. Fit again with this search."
        )


def kept_relations(
    fitted: Fitted,
    search: Search | ExactSearch,
    ignored: bool | Sequence[str],
    constraints: Constraints,
) -> list[Relation]:
    """All relations found at fit, except ignored ones.

    A formula that the user declared replaces the relations with its target.
    """
    if ignored is True or not search.needs.relations:
        return []
    if fitted.relations is None:
        raise NotFittedError(
            "ignore_relations or search was changed after fit, which did not look for relations "
            "between columns. Fit again, or pass ignore_relations=True."
        )
    declared = {derived.target for derived in constraints.derived}
    relations = [found.relation for found in fitted.relations]
    kept = [relation for relation in relations if relation.name not in (ignored or ())]
    return [relation for relation in kept if relation.target not in declared]


def weighted(distance: Distance, constraints: Constraints) -> Distance:
    """The distance with the weights of constraints."""
    if constraints.weights is None:
        return distance
    if not is_gower(distance) or getattr(distance, "weights", None) is not None:
        raise ConstraintError(
            "Constraints with weights apply to the plain Gower distance, but distance is "
            f"{distance!r}. Leave out the weights or the distance."
        )
    return Gower(constraints.weights)


def _not_for_exact(name: str, supported: str | None, given: str | float) -> ParameterError:
    return ParameterError(
        "The exact search proves which rows have the fewest changes and then the smallest Gower "
        f"distance, so {name} must be {supported!r}, got {shorten(given)}. Leave it out, or use "
        "another search."
    )


def _sampling(*, copies: Copies = "allow", **changes: Any) -> Search:
    """A search whose draws are the answers."""
    no_walk: dict[str, Any] = {"n_targets": 0, "extra_changes": 0, "prefer": "distance"}
    return Search(min_plausibility=0, copies=copies, **no_walk, **changes)


PRESETS: dict[str, Search | ExactSearch] = {
    "paper": _sampling(n_samples=1000, max_samples=None, back_off=False, consequences="none"),
    "sparse": Search(min_plausibility=0.01, extra_changes=0, prefer="sparsity"),
    "balanced": Search(prefer="balanced"),
    "plausible": Search(n_targets=10, min_plausibility=0.25, prefer="knn_distance"),
    "near": Search(min_plausibility=0.01, extra_changes=0, prefer="distance"),
    "fast": _sampling(
        keep_probability=KEEP_PROBABILITY, keep_unseen=True, n_samples=200, max_samples=1000
    ),
    "exact": ExactSearch(),
}
