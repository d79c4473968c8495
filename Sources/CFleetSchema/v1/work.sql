
-- ---------------------------------------------------------------------------------------------------- tables of places

-- A share or volume that several agents watch. Its marker file is .inlet/place in it. The holder lists and admits;
-- members send.
CREATE TABLE IF NOT EXISTS place (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, marker uuid NOT NULL UNIQUE,
    holder int REFERENCES agent, session bigint NOT NULL DEFAULT 0, fence bigint NOT NULL DEFAULT 0,
    held_since timestamptz
) WITH (fillfactor = 50);
CREATE TABLE IF NOT EXISTS member (
    place int NOT NULL REFERENCES place ON DELETE CASCADE, agent int NOT NULL REFERENCES agent ON DELETE CASCADE,
    at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (place, agent));

-- Each version of a file in a place, by hashes of its path and of (size, mtime): admitted once, whoever holds the
-- place. State: o open, d delivered, f finished (or agents' own from before the folder was a place), x failed.
-- `sent`: a delivery ended otherwise than superseded. `own`: the agents whose own it is. Only of versions that were
-- made by reports after a loss: `whole`, how many deliveries were admitted, and `told`, the destinations of those that
-- agents reported.
CREATE TABLE IF NOT EXISTS file (
    path uuid NOT NULL, version uuid NOT NULL, place int NOT NULL, remaining smallint NOT NULL DEFAULT 1,
    state "char" NOT NULL DEFAULT 'o', sent boolean NOT NULL DEFAULT false, at timestamptz NOT NULL DEFAULT now(),
    whole smallint, told int[], PRIMARY KEY (place, path, version)) PARTITION BY HASH (path);
SELECT inlet._add_column('inlet.file', 'sent', 'boolean NOT NULL DEFAULT false');
SELECT inlet._add_column('inlet.file', 'whole', 'smallint');
SELECT inlet._add_column('inlet.file', 'told', 'int[]');
SELECT inlet._add_column('inlet.file', 'own', 'int[]');

-- Open deliveries of places, and the finishing of their sources (kind 'f'), which waits for all of them. Rows go when
-- they end. State: r ready, c claimed, p parked. `notes` is for a successor: part size, upload id, offset. `fence`
-- grows with each claim. No reference to `place`: each row would lock that of its place, and places stay.
CREATE TABLE IF NOT EXISTS work (
    id bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY, place int NOT NULL,
    path uuid NOT NULL, version uuid NOT NULL, kind "char" NOT NULL DEFAULT 'd' CHECK (kind IN ('d', 'f')),
    state "char" NOT NULL DEFAULT 'r' CHECK (state IN ('r', 'c', 'p')),
    priority smallint NOT NULL DEFAULT 1 CHECK (priority BETWEEN 0 AND 2), attempts smallint NOT NULL DEFAULT 0,
    agent int, session bigint, fence bigint NOT NULL DEFAULT 0, next_at timestamptz NOT NULL DEFAULT now(),
    destination int, ref bigint, key text, name bytea NOT NULL, size bigint NOT NULL,
    plan jsonb NOT NULL DEFAULT '{}', notes jsonb, code text, reason text
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 1000, autovacuum_vacuum_scale_factor = 0.02,
    autovacuum_vacuum_cost_delay = 0);
DO $$ BEGIN
    IF EXISTS (SELECT FROM pg_constraint WHERE conrelid = 'inlet.work'::regclass AND conname = 'work_place_fkey') THEN
        ALTER TABLE inlet.work DROP CONSTRAINT work_place_fkey;
    END IF;
END $$;
CREATE INDEX IF NOT EXISTS work_ready ON work (place, priority, next_at, id) WHERE state = 'r';
CREATE INDEX IF NOT EXISTS work_claimed ON work (agent, place) WHERE state = 'c';
DROP INDEX IF EXISTS work_file;
CREATE INDEX IF NOT EXISTS work_delivery ON work (place, path, version) WHERE kind = 'd';

-- A file has room for its updates beside it: its index stays as it is.
DO $$ DECLARE n int; t text; BEGIN
    FOREACH t IN ARRAY ARRAY['key', 'content', 'file'] LOOP
        FOR n IN 0..15 LOOP
            EXECUTE format('CREATE TABLE IF NOT EXISTS inlet.%I PARTITION OF inlet.%I '
                'FOR VALUES WITH (MODULUS 16, REMAINDER %s) WITH (fillfactor = %s)', t || '_' || n, t, n,
                CASE t WHEN 'file' THEN 70 ELSE 100 END);
        END LOOP;
    END LOOP;
END $$;
INSERT INTO fleet DEFAULT VALUES ON CONFLICT DO NOTHING;
