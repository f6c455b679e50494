-- Documents change at every heartbeat. No index but the key, and room on each page: so these updates stay HOT.
CREATE TABLE @documents (
    name text COLLATE "C" PRIMARY KEY,
    version bigint NOT NULL,
    body bytea NOT NULL
) WITH (fillfactor = 80, autovacuum_vacuum_scale_factor = 0.05);
COMMENT ON TABLE @documents IS 'Tenure: what is going on now, one row for each job and instance';

CREATE TABLE @history (
    name text COLLATE "C" NOT NULL,
    run text COLLATE "C" NOT NULL,
    slot bigint NOT NULL,
    status text NOT NULL,
    ended bigint NOT NULL,
    keep bigint NOT NULL,
    body bytea NOT NULL,
    PRIMARY KEY (name, run)
) WITH (autovacuum_vacuum_scale_factor = 0.05);
CREATE INDEX @@history_slot ON @history (name, slot, run);
COMMENT ON TABLE @history IS 'Tenure: ended runs; slot, ended and keep are milliseconds since 1970, body is JSON';

CREATE TABLE @marks (
    name text COLLATE "C" NOT NULL,
    slot bigint NOT NULL,
    request text COLLATE "C" NOT NULL,
    until bigint NOT NULL,
    count bigint NOT NULL,
    why text NOT NULL,
    whom text NOT NULL,
    at bigint NOT NULL,
    noted_by text NOT NULL,
    PRIMARY KEY (name, slot, request)
);
CREATE INDEX @@marks_until ON @marks (name, request, until);
COMMENT ON TABLE @marks IS 'Tenure: why nothing ran, from slot to until';
