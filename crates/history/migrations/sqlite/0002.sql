-- The figures of every test under the names of their metrics, so that a trend is one query.

CREATE TABLE metrics (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    test   TEXT NOT NULL,
    metric TEXT NOT NULL,
    value  REAL NOT NULL,
    PRIMARY KEY (metric, test, run_id)
) STRICT, WITHOUT ROWID;

CREATE INDEX metrics_of_run ON metrics (run_id);
