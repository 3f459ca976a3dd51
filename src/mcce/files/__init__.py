"""Tables in files: people come in blocks, their answers go out in parts.

``sources`` reads rows, ``cell_values`` reads cells as values of the columns of a fitted explainer
and ``people_reader`` makes blocks of people; ``partitions`` cuts many files. ``training`` and
``training_sample`` read the rows that an explainer is fitted on. ``answer_tables`` makes and writes
tables of answers, and ``parts_folder`` goes from blocks to a folder of parts.
"""
