-- Runs, their tests one by one, and the names given to runs. The texts are the parts of a run record as JSON.

CREATE TABLE runs (
    id       INTEGER PRIMARY KEY AUTOINCREMENT,
    status   TEXT NOT NULL DEFAULT 'incomplete'
             CHECK (status IN ('incomplete', 'complete', 'failed', 'skipped')),
    schema   TEXT NOT NULL,
    header   TEXT NOT NULL,
    findings TEXT NOT NULL DEFAULT '[]'
) STRICT;

CREATE TABLE tests (
    run_id   INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position INTEGER NOT NULL,
    body     TEXT NOT NULL,
    UNIQUE (run_id, position)
) STRICT;

CREATE TABLE tags (
    run_id INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    tag    TEXT NOT NULL,
    PRIMARY KEY (run_id, tag)
) STRICT, WITHOUT ROWID;
