"""The board's schema, step by step. Run at every start, under a lock; `tenure db upgrade` runs it by itself."""
