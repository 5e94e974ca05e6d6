"""From tables in any form to Ratings: columns, ids, checks. Imported where data is read, since polars is."""
