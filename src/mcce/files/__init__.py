"""Tables in files: people come in blocks, their answers go out in parts.

``formats`` tells formats apart, ``sources`` and ``arrow`` read rows, ``cells`` says what a cell is
in the columns of a fitted explainer, ``people`` makes blocks of them, ``training`` reads what an
explainer is fitted on. ``answers`` makes the table of answers, ``writing`` writes it, ``run``
goes from blocks to parts.
"""
