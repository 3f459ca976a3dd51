"""Tables in files: people come in blocks, their answers go out in parts.

``sources`` reads rows, ``cell_values`` says what a cell is in the columns of a fitted explainer
and ``people`` makes blocks of people; ``units`` cuts many files. ``training`` and ``sampling`` read
what an explainer is fitted on. ``answer_tables`` makes and writes tables of answers, and ``parts``
goes from blocks to a folder of parts.
"""
