-- The first format that servers have: the tables of a history in a file, in a schema of their own, which is the current one.
-- Texts are compared byte by byte, as in a file. What lists and trends read stays in the row, and large parts of the record are
-- stored apart from it, so that a scan does not read them.

-- An administrator may have made the schema for users who must not make one.
DO $$ BEGIN
    IF to_regnamespace('fathom') IS NULL THEN
        CREATE SCHEMA fathom;
    END IF;
END $$;

CREATE TABLE history_format (
    application_id BIGINT NOT NULL,
    number         BIGINT NOT NULL
);

CREATE TABLE runs (
    id               BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    status           TEXT COLLATE "C" NOT NULL DEFAULT 'incomplete'
                     CHECK (status IN ('incomplete', 'complete', 'failed', 'skipped')),
    schema           TEXT COLLATE "C" NOT NULL,
    header           TEXT COLLATE "C" NOT NULL,
    findings         TEXT COLLATE "C" NOT NULL DEFAULT '[]',
    stored_unix_ms   BIGINT,
    verdict          TEXT COLLATE "C" CHECK (verdict IN ('met', 'missed', 'inconclusive')),
    started_unix_ms  BIGINT,
    target           TEXT COLLATE "C",
    kind             TEXT COLLATE "C",
    command          TEXT COLLATE "C",
    hostname         TEXT COLLATE "C",
    device           TEXT COLLATE "C",
    volume_type      TEXT COLLATE "C",
    labels           TEXT COLLATE "C",
    tool_version     TEXT COLLATE "C",
    tests            BIGINT NOT NULL DEFAULT 0,
    finding_count    BIGINT NOT NULL DEFAULT 0,
    read_iops        DOUBLE PRECISION,
    write_iops       DOUBLE PRECISION,
    bytes_per_second DOUBLE PRECISION,
    lat_p50_ns       DOUBLE PRECISION
) WITH (toast_tuple_target = 128);

ALTER TABLE runs
    ALTER COLUMN target SET STORAGE MAIN,
    ALTER COLUMN command SET STORAGE MAIN,
    ALTER COLUMN hostname SET STORAGE MAIN,
    ALTER COLUMN device SET STORAGE MAIN,
    ALTER COLUMN volume_type SET STORAGE MAIN,
    ALTER COLUMN labels SET STORAGE MAIN,
    ALTER COLUMN tool_version SET STORAGE MAIN;

CREATE INDEX runs_started ON runs (started_unix_ms);

CREATE TABLE tests (
    run_id   BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    position BIGINT NOT NULL,
    id       TEXT COLLATE "C",
    body     TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, position)
);

CREATE INDEX tests_named ON tests (id, run_id);

CREATE TABLE tags (
    run_id BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    tag    TEXT COLLATE "C" NOT NULL,
    PRIMARY KEY (run_id, tag)
);

CREATE TABLE notes (
    rowid           BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    run_id          BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    written_unix_ms BIGINT NOT NULL,
    text            TEXT COLLATE "C" NOT NULL
);

CREATE INDEX notes_of_run ON notes (run_id);

CREATE TABLE metrics (
    run_id BIGINT NOT NULL REFERENCES runs (id) ON DELETE CASCADE,
    test   TEXT COLLATE "C" NOT NULL,
    metric TEXT COLLATE "C" NOT NULL,
    value  DOUBLE PRECISION NOT NULL,
    PRIMARY KEY (metric, test, run_id) INCLUDE (value)
);

CREATE INDEX metrics_of_run ON metrics (run_id);
