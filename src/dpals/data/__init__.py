"""Reading input: from files, frames, arrays and matrices to `Ratings`.

What becomes of a row depends on that row and on what is declared. In the order of reading:

=====================  =======================================================================================
``ratings``            `Ratings`: how to make them, look up ids, leave out entries
``rating_arrays``      the arrays they hold, checked once and never changed
``read``               `dpals.read_ratings`
``file_format``        is a file Parquet or text?
``file_changes``       a file that changes while it is read is an error
``text_file``          a text file becomes rows: encoding, compression, chunks of lines
``text_format``        its columns and its separator
``text_lines``         its lines, split into fields
``parquet``            a Parquet file, or a folder of them, becomes rows
``frames``             frames and arrays become rows
``sources``            what these have in common: batches of rows, each with its place
``columns``            which column is the user, the item, the rating, the timestamp
``cells``              cells by the type of their column, or one by one
``rating_values``      cells with ratings
``timestamps``         cells with numbers, dates and times
``ids``                cells with ids: integers or text; where ids are found
``build``              ratings from any source
``row_checks``         which rows can be used
``bad_rows``           what happens to the others: an error, or dropped and counted
``rating_range``       the declared range
``id_encoder``         ids numbered
``deduplicate``        rows sorted, repeated rows collapsed
``reading_report``     what became of the rows
``sparse``             ratings from a sparse matrix
``streamed_history``   a history larger than memory, some users at a time
``external_sort``      tables larger than memory, sorted by user
``write``              ratings written to files
``simulate``           simulated ratings; ``film_titles`` names their items
``datasets``           MovieLens: ``movielens`` by name, ``download``, ``archive`` found and read
=====================  =======================================================================================

Most of these import polars, so they are imported where data is read.
"""
