
-- -------------------------------------------------------------------------------------------- ends of claims of places

-- Whether a row of work is this claim. Statements here find rows of `work` by their ids: in a LATERAL with OFFSET 0, in
-- an array, or one by one. Where statistics say that the table is empty, a plain join would compare all of it with
-- each row of the call.
CREATE OR REPLACE FUNCTION _is_claim(p_work inlet.work, p_fence bigint, p_agent int, p_session bigint) RETURNS boolean
LANGUAGE sql IMMUTABLE AS $$
    SELECT p_work.fence = p_fence AND p_work.state = 'c' AND p_work.agent = p_agent AND p_work.session = p_session
$$;

-- What a successor needs (upload id, part size), before it is used. Also asks: is this still mine? No notes change
-- nothing. p_rows: [{work, fence, notes}]. A row each in the answer, in their order: code NULL is done, IN009 another
-- has it. Settings: as of v1_settle_many.
CREATE OR REPLACE FUNCTION v1_note_many(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_rows jsonb)
RETURNS TABLE (work bigint, code text, mark bigint, left_ms int)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET jit = off AS $$
DECLARE m bigint; rest int; has_notes boolean; noted record;
BEGIN
    PERFORM inlet._check_rows(p_rows, 500);
    has_notes := EXISTS (SELECT FROM jsonb_to_recordset(p_rows) r(notes jsonb) WHERE r.notes IS NOT NULL);
    m := inlet._enter(p_agent, p_token, p_session, p_seen, true, has_notes);
    SELECT inlet._left(b.until) INTO rest FROM inlet.beat b WHERE b.agent = p_agent;
    FOR noted IN SELECT r.work, r.notes
        FROM (SELECT x.* FROM jsonb_to_recordset(p_rows) x(work bigint, fence bigint, notes jsonb)
            WHERE x.notes IS NOT NULL ORDER BY x.work) r
        CROSS JOIN LATERAL (SELECT x FROM inlet.work x
            WHERE x.id = r.work AND x.agent = p_agent AND x.session = p_session FOR UPDATE OFFSET 0) l
        WHERE inlet._is_claim(l.x, r.fence, p_agent, p_session)
    LOOP
        UPDATE inlet.work w SET notes = noted.notes WHERE w.id = noted.work;
    END LOOP;
    -- Still true of claims that got notes: their rows are locked, and a fence never comes back.
    RETURN QUERY SELECT r.work, CASE WHEN inlet._is_claim(l.x, r.fence, p_agent, p_session) THEN NULL ELSE 'IN009' END,
        m, rest
    FROM ROWS FROM (jsonb_to_recordset(p_rows) AS (work bigint, fence bigint)) WITH ORDINALITY r(work, fence, n)
    LEFT JOIN LATERAL (SELECT x FROM inlet.work x WHERE x.id = r.work OFFSET 0) l ON true
    ORDER BY r.n;
END $$;

CREATE OR REPLACE FUNCTION v1_note(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_work bigint,
    p_fence bigint, p_notes jsonb) RETURNS TABLE (mark bigint, left_ms int) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    SELECT * INTO r FROM inlet.v1_note_many(p_agent, p_token, p_session, p_seen,
        jsonb_build_array(jsonb_build_object('work', p_work, 'fence', p_fence, 'notes', p_notes)));
    IF r.code IS NOT NULL THEN RAISE EXCEPTION 'another has this delivery' USING ERRCODE = r.code; END IF;
    RETURN QUERY SELECT r.mark, r.left_ms;
END $$;

-- Of earlier states of this version of the schema: CREATE OR REPLACE changes no result.
DROP FUNCTION IF EXISTS inlet._settle(int, bigint, jsonb, jsonb);
DO $$ BEGIN
    IF pg_get_function_result(to_regprocedure('inlet.v1_settle_many(int, bytea, bigint, bigint, jsonb)'))
        NOT LIKE '%failed boolean%' THEN
        DROP FUNCTION inlet.v1_settle_many(int, bytea, bigint, bigint, jsonb);
    END IF;
END $$;

-- Ends claims. delivered: durable point 2. failed, superseded: the version ends as failed. The last delivery of a
-- version to end makes the work of finishing it (archive, delete, quarantine), claimed by who settled, with fence 1;
-- `failed`: a delivery of the version has not arrived. finished: durable point 3. retry, park: back, after after_ms.
-- p_rows: [{work, fence, outcome, after_ms, code, reason}]. A row each in the answer, in their order: refused NULL is
-- done, IN009 another has it, IN011 the outcome does not fit. Settings: no plan may read all versions.
CREATE OR REPLACE FUNCTION v1_settle_many(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_rows jsonb)
RETURNS TABLE (work bigint, refused text, finish bigint, mark bigint, left_ms int, failed boolean)
LANGUAGE plpgsql SET enable_seqscan = off SET enable_bitmapscan = off SET enable_hashjoin = off SET jit = off AS $$
DECLARE m bigint; held inlet.work[]; numbers bigint[]; outcomes text[]; rest int;
BEGIN
    PERFORM inlet._check_rows(p_rows, 500);
    m := inlet._enter(p_agent, p_token, p_session, p_seen, true, true);
    -- Of a claim that is named twice the first row counts.
    SELECT array_agg(h.w), array_agg(h.n), array_agg(h.outcome) INTO held, numbers, outcomes FROM (
        SELECT DISTINCT ON (r.work) l.w, r.n, r.outcome
        FROM (SELECT x.* FROM
            ROWS FROM (jsonb_to_recordset(p_rows) AS (work bigint, fence bigint, outcome text, after_ms bigint))
                WITH ORDINALITY x(work, fence, outcome, after_ms, n) ORDER BY x.work) r
        CROSS JOIN LATERAL (SELECT w FROM inlet.work w
            WHERE w.id = r.work AND w.agent = p_agent AND w.session = p_session FOR UPDATE OFFSET 0) l
        WHERE inlet._is_claim(l.w, r.fence, p_agent, p_session)
            AND CASE WHEN r.outcome IN ('retry', 'park') THEN coalesce(r.after_ms, 0) BETWEEN 0 AND 31536000000
                WHEN (l.w).kind = 'd' THEN r.outcome IN ('delivered', 'failed', 'superseded')
                ELSE r.outcome = 'finished' END
        ORDER BY r.work, r.n) h;
    -- Of which nothing was sent: the file went away, or was another. When it is back, it is admitted again.
    IF EXISTS (SELECT FROM unnest(held) h WHERE h.kind = 'f' AND h.code = 'failed') THEN
        DELETE FROM inlet.file f USING ROWS FROM (unnest(outcomes), unnest(held)) h(outcome)
        WHERE h.outcome = 'finished' AND f.place = h.place AND f.path = h.path AND f.version = h.version
            AND f.state = 'x' AND f.remaining = 0 AND NOT f.sent;
    END IF;
    SELECT inlet._left(b.until) INTO rest FROM inlet.beat b WHERE b.agent = p_agent;
    RETURN QUERY SELECT r.work, CASE WHEN h.n IS NULL THEN CASE WHEN inlet._is_claim(
            (SELECT w FROM inlet.work w WHERE w.id = r.work), r.fence, p_agent, p_session)
            THEN 'IN011' ELSE 'IN009' END END,
        s.finish, m, rest, coalesce(s.failed, false)
    FROM ROWS FROM (jsonb_to_recordset(p_rows) AS (work bigint, fence bigint)) WITH ORDINALITY r(work, fence, n)
    LEFT JOIN unnest(numbers) h(n) ON h.n = r.n
    LEFT JOIN inlet._settle(p_agent, p_session, p_rows, held, numbers, outcomes) s ON s.n = r.n
    ORDER BY r.n;
END $$;

-- Claims that are locked, with the numbers and outcomes of their rows. Versions follow in their order: two agents that
-- settle parts of the same ones never wait for each other. plpgsql keeps its plans.
CREATE OR REPLACE FUNCTION _settle(p_agent int, p_session bigint, p_rows jsonb, p_held inlet.work[],
    p_numbers bigint[], p_outcomes text[])
RETURNS TABLE (n bigint, finish bigint, failed boolean) LANGUAGE plpgsql AS $$
#variable_conflict use_column
DECLARE r record;
BEGIN
    FOR r IN SELECT h.id, h.outcome, g.after_ms, g.code, g.reason
        FROM ROWS FROM (unnest(p_numbers), unnest(p_outcomes), unnest(p_held)) h(n, outcome)
        CROSS JOIN LATERAL jsonb_to_record(p_rows -> (h.n - 1)::int) g(after_ms bigint, code text, reason text)
        WHERE h.outcome IN ('retry', 'park')
    LOOP
        UPDATE inlet.work w SET state = CASE r.outcome WHEN 'park' THEN 'p' ELSE 'r' END::"char", agent = NULL,
            session = NULL, next_at = clock_timestamp() + coalesce(r.after_ms, 0) * interval '1 ms',
            -- Of a finishing it says that the version has failed.
            code = CASE w.kind WHEN 'f' THEN w.code ELSE left(r.code, 100) END, reason = left(r.reason, 500)
        WHERE w.id = r.id;
    END LOOP;
    RETURN QUERY WITH ended AS (
        SELECT place, path, version, max(ARRAY[n, id]) AS last, count(*) FILTER (WHERE kind = 'd') AS ends,
            bool_or(outcome IN ('failed', 'superseded')) AS failed,
            bool_or(outcome IN ('delivered', 'failed')) AS sent, bool_or(outcome = 'finished') AS finished
        FROM ROWS FROM (unnest(p_numbers), unnest(p_outcomes), unnest(p_held)) h(n, outcome)
        WHERE outcome NOT IN ('retry', 'park') GROUP BY 1, 2, 3 ORDER BY 1, 2, 3
    ), files AS (
        UPDATE inlet.file f SET remaining = f.remaining - e.ends, sent = f.sent OR e.sent, at = clock_timestamp(),
            -- Also where nobody knows how a delivery has ended: the agent that had it was waived.
            state = CASE WHEN e.failed OR f.state = 'x'
                OR e.ends > 0 AND f.remaining = e.ends AND f.whole > cardinality(f.told) THEN 'x'
                WHEN e.finished THEN 'f'
                WHEN f.state = 'o' AND f.remaining = e.ends THEN 'd' ELSE f.state END
        FROM ended e WHERE f.place = e.place AND f.path = e.path AND f.version = e.version
        RETURNING f.remaining = 0 AND e.ends > 0 AS is_last, f.state, e.last[1] AS n, e.last[2] AS last,
            concat(f.place, f.path, f.version) AS name
    ), lasts AS (
        SELECT array_agg(n) AS numbers, array_agg(name) AS names FROM files WHERE is_last
    )
    -- The last delivery becomes the finishing, under a number of its own.
    UPDATE inlet.work w SET id = DEFAULT, kind = 'f', priority = DEFAULT, attempts = 0, fence = 1,
        next_at = DEFAULT, destination = NULL, ref = NULL, key = NULL, notes = NULL,
        code = CASE WHEN w.id = ANY (ARRAY(SELECT last FROM files WHERE is_last AND state = 'x')) THEN 'failed' END,
        reason = NULL
    WHERE w.id = ANY (ARRAY(SELECT last FROM files WHERE is_last))
    RETURNING (SELECT numbers FROM lasts)[array_position(
        (SELECT names FROM lasts), concat(w.place, w.path, w.version))], w.id, w.code IS NOT NULL;
    DELETE FROM inlet.work w WHERE w.id = ANY (ARRAY(
        SELECT h.id FROM ROWS FROM (unnest(p_outcomes), unnest(p_held)) h(outcome)
        WHERE h.outcome NOT IN ('retry', 'park')));
END $$;

CREATE OR REPLACE FUNCTION v1_settle(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_work bigint,
    p_fence bigint, p_outcome text, p_after_ms bigint, p_code text, p_reason text)
RETURNS TABLE (mark bigint, finish bigint, left_ms int) LANGUAGE plpgsql AS $$
DECLARE r record;
BEGIN
    SELECT * INTO r FROM inlet.v1_settle_many(p_agent, p_token, p_session, p_seen, jsonb_build_array(
        jsonb_build_object('work', p_work, 'fence', p_fence, 'outcome', p_outcome, 'after_ms', p_after_ms,
            'code', p_code, 'reason', p_reason)));
    IF r.refused = 'IN009' THEN RAISE EXCEPTION 'another has this delivery' USING ERRCODE = 'IN009'; END IF;
    PERFORM inlet._check(r.refused IS NULL, format('outcome %s does not fit', p_outcome));
    RETURN QUERY SELECT r.mark, r.finish, r.left_ms;
END $$;

-- The destination has something else under the key of a claim: reserves another one for the place, and gives it to the
-- claim. Its notes go: they are of the former key. A repeated call gets the same answer.
CREATE OR REPLACE FUNCTION v1_rename(p_agent int, p_token bytea, p_session bigint, p_seen bigint, p_work bigint,
    p_fence bigint, p_key text) RETURNS TABLE (mark bigint, granted boolean) LANGUAGE plpgsql AS $$
DECLARE w inlet.work;
BEGIN
    PERFORM inlet._check(p_key <> '', 'a key');
    mark := inlet._enter(p_agent, p_token, p_session, p_seen, true, true);
    SELECT * INTO w FROM inlet.work x WHERE x.id = p_work AND x.fence = p_fence AND x.state = 'c'
        AND x.agent = p_agent AND x.session = p_session FOR UPDATE;
    IF NOT FOUND THEN RAISE EXCEPTION 'another has this delivery' USING ERRCODE = 'IN009'; END IF;
    PERFORM inlet._check(w.kind = 'd', 'a delivery');
    granted := (inlet._reserve(-w.place, w.destination, ARRAY[p_key], ARRAY[w.ref]))[1];
    IF granted AND w.key <> p_key THEN
        UPDATE inlet.work x SET key = p_key, notes = NULL WHERE x.id = p_work;
    END IF;
    RETURN NEXT;
END $$;
