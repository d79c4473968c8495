-- The shared layer of a fleet: PostgreSQL 15 or newer, schema `inlet`, version 1.
--
-- Idempotent: running it again changes nothing. Agents call v1_* functions only, one statement a transaction, so that
-- pgbouncer's transaction mode is safe. No session state, no temporary table and no LISTEN is needed. Time is this
-- server's (clock_timestamp(): a lock may have been waited for). Durations travel as milliseconds that remain.
-- Migrations add; a v1_ function keeps its signature and meaning.
--
-- SQLSTATEs of our own, all retryable except where noted:
--   IN001 the schema is newer or older than needed (not retryable)
--   IN002 unknown agent or wrong token (not retryable)
--   IN003 the session is over: say hello
--   IN004 another process of this agent is alive
--   IN005 the journal went back, or this identity is used twice (a person decides)
--   IN006 the epoch is new: report first
--   IN007 the database went back: say hello with `seen`
--   IN008 nothing is granted now (confirming or recovering)
--   IN009 the fence is past: another has it
--   IN010 the agent is no member of the place
--   IN011 argument out of bounds (not retryable)

BEGIN;
SELECT pg_advisory_xact_lock(hashtext('inlet.migration'));
SET LOCAL client_min_messages = warning;
-- While this waits for a table, all calls wait behind it.
SET LOCAL lock_timeout = '5s';

DO $$ DECLARE found int; name text; BEGIN
    IF current_setting('server_version_num')::int < 150000 THEN
        RAISE EXCEPTION 'a fleet needs PostgreSQL 15 or newer; this is %', current_setting('server_version')
            USING ERRCODE = 'IN001';
    END IF;
    IF current_setting('server_encoding') <> 'UTF8' THEN
        RAISE EXCEPTION 'the database has the encoding %; create one with UTF8', current_setting('server_encoding')
            USING ERRCODE = 'IN001';
    END IF;
    IF to_regclass('inlet.migration') IS NOT NULL THEN
        SELECT max(version) INTO found FROM inlet.migration;
        IF found > 1 THEN
            RAISE EXCEPTION 'the schema has version %, this program knows 1', found USING ERRCODE = 'IN001';
        END IF;
    END IF;
    -- inlet_owner owns everything and never logs in. People and agents get a login role in one of the others.
    FOREACH name IN ARRAY ARRAY['inlet_owner', 'inlet_agent', 'inlet_reader', 'inlet_admin'] LOOP
        CONTINUE WHEN to_regrole(name) IS NOT NULL;
        BEGIN
            EXECUTE format('CREATE ROLE %I NOLOGIN', name);
        EXCEPTION WHEN duplicate_object OR unique_violation THEN NULL;       -- For another database of this server.
        END;
    END LOOP;
    IF NOT pg_has_role('inlet_admin', 'inlet_reader', 'USAGE') THEN GRANT inlet_reader TO inlet_admin; END IF;
    IF NOT pg_has_role('inlet_owner', 'USAGE') THEN EXECUTE format('GRANT inlet_owner TO %I', current_user); END IF;
    -- A token is a parameter: it must not reach the log of slow statements. Only superusers may set that.
    BEGIN
        EXECUTE format('ALTER DATABASE %I SET log_parameter_max_length = 0', current_database());
    EXCEPTION WHEN insufficient_privilege THEN NULL;
    END;
END $$;

CREATE SCHEMA IF NOT EXISTS inlet AUTHORIZATION inlet_owner;
SET LOCAL ROLE inlet_owner;
SET LOCAL search_path = inlet, pg_catalog;

-- ALTER TABLE locks everybody out, also where the column is there.
CREATE OR REPLACE FUNCTION _add_column(p_table regclass, p_name text, p_type text) RETURNS void LANGUAGE plpgsql AS $$
BEGIN
    IF NOT EXISTS (SELECT FROM pg_attribute WHERE attrelid = p_table AND attname = p_name AND NOT attisdropped) THEN
        EXECUTE format('ALTER TABLE %s ADD COLUMN %I %s', p_table, p_name, p_type);
    END IF;
END $$;

CREATE TABLE IF NOT EXISTS migration (
    version int PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), by text NOT NULL DEFAULT session_user);

-- One row. `epoch` grows when commits were lost (restore, failover). `started`, `system_id` and `timeline` tell that
-- this is still the server that the agents know. In `confirming` (a restart) and `recovering` (lost commits) nothing
-- is granted. `synchronous_at`: a beat saw then that commits wait for all standbys that may be promoted; NULL where
-- nobody promises to promote no other.
CREATE TABLE IF NOT EXISTS fleet (
    one boolean PRIMARY KEY DEFAULT true CHECK (one),
    id uuid NOT NULL DEFAULT gen_random_uuid(), name text NOT NULL DEFAULT 'inlet',
    epoch int NOT NULL DEFAULT 1,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'confirming', 'recovering')),
    why text, since timestamptz NOT NULL DEFAULT now(), confirm_until timestamptz NOT NULL DEFAULT '-infinity',
    started timestamptz NOT NULL DEFAULT pg_postmaster_start_time(),
    system_id bigint NOT NULL DEFAULT (pg_control_system()).system_identifier,
    timeline text NOT NULL DEFAULT left(pg_walfile_name(pg_current_wal_insert_lsn()), 8),
    ttl interval NOT NULL DEFAULT '15 s' CHECK (ttl BETWEEN '1 s' AND '10 min'),
    join_hash bytea, receipts_days int NOT NULL DEFAULT 90 CHECK (receipts_days BETWEEN 1 AND 3650),
    created_at timestamptz NOT NULL DEFAULT now(), synchronous_at timestamptz);
SELECT inlet._add_column('inlet.fleet', 'synchronous_at', 'timestamptz');
CREATE SEQUENCE IF NOT EXISTS session_seq;

-- Who. `tag` is six letters of [a-z2-7]: keys that end in _TAG belong to this agent without a reservation. `epoch` is
-- the one in which it last reported what it has. `missing`: others know it, this database does not (a restore).
CREATE TABLE IF NOT EXISTS agent (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
    name text NOT NULL UNIQUE CHECK (length(name) BETWEEN 1 AND 128),
    tag text NOT NULL UNIQUE CHECK (tag ~ '^[a-z2-7]{6}$'), token_hash bytea, journal uuid NOT NULL,
    state text NOT NULL DEFAULT 'active' CHECK (state IN ('active', 'draining', 'retired', 'missing')),
    epoch int NOT NULL DEFAULT 0, version text, api int NOT NULL DEFAULT 1, about jsonb NOT NULL DEFAULT '{}',
    joined_at timestamptz NOT NULL DEFAULT now());

-- Alive. One narrow row an agent, never a changed index: every update is HOT. `mark` counts the agent's durable
-- calls: an agent that has seen a higher one knows that commits were lost. `hello` counts the starts of its journal:
-- two that count the same are two.
CREATE TABLE IF NOT EXISTS beat (
    agent int PRIMARY KEY REFERENCES agent ON DELETE CASCADE,
    session bigint NOT NULL DEFAULT 0, since timestamptz NOT NULL DEFAULT '-infinity',
    until timestamptz NOT NULL DEFAULT '-infinity', at timestamptz NOT NULL DEFAULT '-infinity',
    mark bigint NOT NULL DEFAULT 0, hello bigint NOT NULL DEFAULT 0,
    started timestamptz, instance uuid, seat bytea, receipts bigint NOT NULL DEFAULT 0
) WITH (fillfactor = 30, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0,
    autovacuum_vacuum_cost_delay = 0);

CREATE TABLE IF NOT EXISTS report (
    agent int PRIMARY KEY REFERENCES agent ON DELETE CASCADE, at timestamptz NOT NULL, body jsonb NOT NULL
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- A destination is its address: SHA-256 of type and normalised address. `creates`: the store enforces If-None-Match;
-- agents do not keep that, and say false. The limits are the fleet's; `by_admin`: a person set them, and the agents'
-- configurations do not count.
CREATE TABLE IF NOT EXISTS destination (
    id int GENERATED ALWAYS AS IDENTITY PRIMARY KEY, address bytea NOT NULL UNIQUE CHECK (length(address) = 32),
    type text NOT NULL, label text NOT NULL, creates boolean NOT NULL DEFAULT false,
    bandwidth bigint CHECK (bandwidth >= 0), slots int CHECK (slots >= 1), by_admin boolean NOT NULL DEFAULT false,
    first_seen timestamptz NOT NULL DEFAULT now());

-- The limits that agents' configurations name. The oldest one of an agent that is not retired is the fleet's.
CREATE TABLE IF NOT EXISTS named_limit (
    destination int NOT NULL REFERENCES destination, agent int NOT NULL REFERENCES agent ON DELETE CASCADE,
    bandwidth bigint CHECK (bandwidth >= 0), slots int CHECK (slots >= 1), at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (destination, agent));

-- Folders of a destination that one agent has for itself: no reservation below, for it; none at all, for others.
CREATE TABLE IF NOT EXISTS prefix (
    destination int NOT NULL REFERENCES destination, prefix text NOT NULL CHECK (prefix LIKE '%_/'),
    agent int NOT NULL REFERENCES agent, at timestamptz NOT NULL DEFAULT now(), PRIMARY KEY (destination, prefix));

-- Keys that are taken, for ever: 16 bytes of the key's SHA-256, and whose they are: an agent (owner > 0) or a place
-- (-owner). `ref` is the delivery: random for an agent's own files, made of place, path, version and destination else.
CREATE TABLE IF NOT EXISTS key (
    ref bigint NOT NULL, hash uuid NOT NULL, destination int NOT NULL, owner int NOT NULL,
    PRIMARY KEY (destination, hash)) PARTITION BY HASH (hash);

-- Contents of routes with `dedupe`: who brings it, or that it is there. `purpose` is a hash of the fields.
CREATE TABLE IF NOT EXISTS content (
    digest bytea NOT NULL CHECK (length(digest) = 32), destination int NOT NULL, purpose bigint NOT NULL,
    size bigint NOT NULL, agent int NOT NULL, session bigint NOT NULL, ref bigint NOT NULL,
    there boolean NOT NULL DEFAULT false, key text, url text, at timestamptz NOT NULL DEFAULT now(),
    PRIMARY KEY (destination, digest, purpose)) PARTITION BY HASH (digest);
CREATE INDEX IF NOT EXISTS content_coming ON content (agent) WHERE NOT there;

-- Receipts, by day, for search: which machine has my file, where is it now. Names and keys may be longer than an entry
-- of an index can be.
CREATE TABLE IF NOT EXISTS receipt (
    at timestamptz NOT NULL DEFAULT clock_timestamp(), agent int NOT NULL, seq bigint NOT NULL, destination int,
    size bigint, state text NOT NULL, root text, path text NOT NULL, name text NOT NULL, mtime bigint, key text,
    url text, sha256 bytea, labels jsonb
) PARTITION BY RANGE (at);
CREATE INDEX IF NOT EXISTS receipt_name ON receipt (left(lower(name), 250) text_pattern_ops);
CREATE INDEX IF NOT EXISTS receipt_key ON receipt (left(key, 250) text_pattern_ops) WHERE key IS NOT NULL;
CREATE INDEX IF NOT EXISTS receipt_content ON receipt (sha256) WHERE sha256 IS NOT NULL;

-- Orders from the fleet page. The agent journals the id in the transaction of the effect: exactly once.
CREATE TABLE IF NOT EXISTS command (
    id uuid PRIMARY KEY DEFAULT gen_random_uuid(), agent int NOT NULL REFERENCES agent ON DELETE CASCADE,
    verb text NOT NULL
        CHECK (verb IN ('retry', 'pause', 'resume', 'rescan', 'cancel', 'drain', 'undrain', 'limit')),
    args jsonb NOT NULL DEFAULT '{}', asked_by text NOT NULL, at timestamptz NOT NULL DEFAULT now(),
    expires_at timestamptz NOT NULL,
    state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done', 'refused', 'expired')),
    ended_at timestamptz, result jsonb);
CREATE INDEX IF NOT EXISTS command_open ON command (agent, at) WHERE state = 'open';

-- How fast each agent may send to a limited destination, until when. The sum never exceeds the limit.
CREATE TABLE IF NOT EXISTS share (
    destination int NOT NULL REFERENCES destination, agent int NOT NULL REFERENCES agent ON DELETE CASCADE,
    rate bigint, slots int, until timestamptz NOT NULL, PRIMARY KEY (destination, agent)
) WITH (fillfactor = 50, autovacuum_vacuum_threshold = 500, autovacuum_vacuum_scale_factor = 0);

-- Clashes, takeovers, restores: the fleet's own log. Pruned with the receipts.
CREATE TABLE IF NOT EXISTS event (
    at timestamptz NOT NULL DEFAULT clock_timestamp(), agent int, name text NOT NULL, body jsonb NOT NULL DEFAULT '{}');
CREATE INDEX IF NOT EXISTS event_at ON event USING brin (at);
