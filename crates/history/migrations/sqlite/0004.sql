-- What the list and trends show of a run as columns, so that neither reads records: 100,000 of them take seconds to parse.
-- The values come from the header and the tests; a run whose header cannot be read has no target here. Notes of the user.

ALTER TABLE runs ADD COLUMN started_unix_ms INTEGER;
ALTER TABLE runs ADD COLUMN target TEXT;
ALTER TABLE runs ADD COLUMN kind TEXT;
ALTER TABLE runs ADD COLUMN command TEXT;
ALTER TABLE runs ADD COLUMN hostname TEXT;
ALTER TABLE runs ADD COLUMN device TEXT;
ALTER TABLE runs ADD COLUMN volume_type TEXT;
ALTER TABLE runs ADD COLUMN labels TEXT;
ALTER TABLE runs ADD COLUMN tool_version TEXT;
ALTER TABLE runs ADD COLUMN tests INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN finding_count INTEGER NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN read_iops REAL;
ALTER TABLE runs ADD COLUMN write_iops REAL;
ALTER TABLE runs ADD COLUMN bytes_per_second REAL;
ALTER TABLE runs ADD COLUMN lat_p50_ns REAL;

-- Holds every column that a list needs: the table itself has the headers between them.
CREATE INDEX runs_listed ON runs (
    id, status, stored_unix_ms, verdict, started_unix_ms, target, kind, command, hostname, device, volume_type, labels,
    tool_version, tests, finding_count, read_iops, write_iops, bytes_per_second, lat_p50_ns
);
CREATE INDEX runs_started ON runs (started_unix_ms);

ALTER TABLE tests ADD COLUMN id TEXT;
CREATE INDEX tests_named ON tests (id, run_id);

CREATE TABLE notes (
    run_id          INTEGER NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    written_unix_ms INTEGER NOT NULL,
    text            TEXT NOT NULL
) STRICT;

CREATE INDEX notes_of_run ON notes (run_id);
