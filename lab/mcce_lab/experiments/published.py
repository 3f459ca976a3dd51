"""Figures as published; a comment says where.

Costs come with their sample standard deviations over people (``_sd``); ``l0`` is counted with a
tolerance of 1e-5 of the range.
"""

from __future__ import annotations

from io import StringIO

import pandas as pd


def _table(text: str) -> pd.DataFrame:
    return pd.read_csv(StringIO(text), sep=r"\s+")


# Table of Experiment 1, all methods (16-core Threadripper 1950X, the others on a GTX 1080 Ti).
RESULTS = _table("""
dataset method    l0   l0_sd  l1  l1_sd violation violation_sd success n_ce seconds
adult   C-CHVAE   7.76  1.02 3.13  1.10  0.00 0.00 1.00 1000    86.29
adult   CEM-VAE   6.92  2.06 3.18  1.65  1.38 0.59 0.50 1000   646.29
adult   CLUE     13.00  0.00 7.83  0.31  1.36 0.48 1.00 1000  2754.35
adult   CRUDS     7.87  1.08 3.90  1.11  0.00 0.00 1.00 1000 10017.76
adult   FACE      7.03  1.58 3.27  1.54  1.40 0.52 1.00 1000  4151.14
adult   REViSE    5.54  0.96 1.13  0.83  0.00 0.00 1.00 1000  8400.42
adult   MCCE      2.70  0.73 0.56  0.45  0.00 0.00 1.00 1000    15.00
gmc     C-CHVAE   8.98  0.15 0.95  0.29  0.00 0.00 1.00 1000    94.38
gmc     CEM-VAE   8.62  1.08 1.61  0.57  0.96 0.19 0.93 1000   685.88
gmc     CLUE     10.00  0.04 1.41  0.32  1.00 0.03 1.00 1000  2533.57
gmc     CRUDS     9.00  0.00 1.68  0.36  0.00 0.00 1.00 1000  8137.49
gmc     FACE      8.53  1.08 1.65  0.53  0.98 0.16 1.00 1000 13986.24
gmc     REViSE    8.36  1.06 0.70  0.27  0.00 0.00 1.00 1000  5722.87
gmc     MCCE      4.52  0.97 0.61  0.32  0.00 0.00 1.00 1000    19.58
german  C-CHVAE  10.62  1.23 4.79  1.31  0.00 0.00 1.00  200    12.88
german  CEM-VAE  10.16  1.89 6.97  1.93  1.44 0.53 0.67   63   147.86
german  CLUE     20.09  0.00 13.4  0.53  1.55 0.50 1.00  200   719.94
german  CRUDS    13.01  1.29 9.22  1.28  0.00 0.00 1.00  200  2453.17
german  FACE      9.75  2.10 6.68  1.97  1.50 0.55 1.00  200    73.68
german  REViSE    7.56  1.56 2.28  1.29  0.00 0.00 1.00  172  2021.15
german  MCCE      3.62  0.93 1.90  0.76  0.00 0.00 1.00  200     3.71
fico    C-CHVAE  21.99  0.09 2.08  0.84  0.00 0.00 1.00 1000    16.39
fico    CEM-VAE  19.52  2.46 3.11  0.87  0.95 0.21 0.31  478   734.83
fico    CLUE     23.00  0.00 2.40  0.56  1.00 0.00 1.00   99  3523.77
fico    CRUDS    22.00  0.00 9.32  2.20  0.00 0.00 1.00  592  7639.12
fico    FACE     19.11  2.32 3.01  0.90  0.98 0.16 1.00 1000   428.44
fico    REViSE   21.71  0.78 1.64  0.54  0.00 0.00 1.00  926  5589.01
fico    MCCE     12.67  1.91 1.95  0.78  0.00 0.00 1.00 1000    15.47
""")

# Table of Experiment 2, Adult, 1000 people.
SAMPLES = _table("""
k      l0   l0_sd l1   l1_sd n_ce  model generate postprocess total
10     3.98 1.10  1.59 0.94   999  3.8     0.38     5.56    9.74
50     3.39 0.94  1.10 0.77  1000  3.8     0.58     5.61    9.99
100    3.18 0.90  0.93 0.69  1000  3.8     0.76     5.72   10.28
1000   2.70 0.73  0.56 0.45  1000  3.8     4.39     7.23   15.43
5000   2.51 0.66  0.45 0.39  1000  3.8    21.29    12.34   37.43
10000  2.43 0.64  0.43 0.37  1000  3.8    42.61    17.71   64.11
25000  2.39 0.64  0.41 0.36  1000  3.8   106.93    29.50  140.23
""")

# Appendix, table "we do not condition on the decision", Adult, 1000 people.
UNCONDITIONED = _table("""
k      l0   l0_sd l1   l1_sd n_ce  model generate postprocess total
10     4.66 1.40  2.19 1.22   633  3.87    1.09     2.44    7.41
50     4.04 1.27  1.71 1.09   837  3.87    1.59     3.91    9.37
100    3.79 1.24  1.50 1.05   875  3.87    1.77     4.12    9.76
1000   3.19 1.13  1.00 0.85   974  3.87    5.56     4.92   14.35
5000   2.78 0.90  0.69 0.59  1000  3.87   22.69     6.20   32.76
10000  2.64 0.82  0.62 0.54  1000  3.87   43.95     7.45   55.28
25000  2.45 0.81  0.55 0.50  1000  3.87  108.74    10.95  123.56
""")

# Appendix, table of MCCE with a random forest, Adult, 1000 people.
FOREST = _table("""
dataset l0   l0_sd l1   l1_sd violation violation_sd success n_ce seconds
adult   2.48 0.83  0.42 0.43  0.0       0.0          1.0     1000 36.53
""")

# Appendix, table of MCCE with features that are not binarized, Adult, 1000 people.
LEVELS = _table("""
dataset l0   l0_sd l1   l1_sd violation violation_sd success n_ce seconds
adult   3.14 0.98  0.90 0.76  0.0       0.0          1.0     1000 29.95
""")

# Appendix on leaving out the decision, text.
DRAWS = pd.DataFrame(
    {
        "model": ["with the decision", "without the decision"],
        "valid_and_unique_%": [86.0, 25.0],
    }
)

# Text of Experiment 3, accuracy of a random forest.
DISCRIMINATOR = _table("""
dataset accuracy_%
adult   62.8
gmc     56.5
fico    59.1
german  55.7
""")

# Section on privacy, table of copies.
COPIES = _table("""
dataset n_ce copies
adult   1000 11
gmc     1000  4
fico    1000  0
german   200  2
""")
