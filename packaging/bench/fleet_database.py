"""What needs PostgreSQL alone: the rights of the agents' role, random arguments, the beats of a thousand agents, and the
work of a share."""

import json
import random
import subprocess
import time
import uuid
from pathlib import Path

from postgres import Cluster, Pooler
from report import Failed, Row, bounded, figure, none, percentile
from stations import LOGIN, inlet

# Of agents that only the bench knows.
SECRET = "sha256('the bench')"


def rights(folder: Path, seed: int, minutes: float) -> list[Row]:
    with Cluster(folder / "postgres") as cluster:
        inlet("fleet", "init", "--url", cluster.url())
        cluster.sql(f"CREATE ROLE {LOGIN} LOGIN IN ROLE inlet_agent")
        tables = cluster.sql("""SELECT c.oid::regclass, c.relkind FROM pg_class c
            WHERE c.relnamespace = 'inlet'::regnamespace AND c.relkind IN ('r', 'p', 'v', 'm')""")
        functions = cluster.sql("""SELECT p.proname, array_to_string(ARRAY(SELECT format('NULL::%s', format_type(t, NULL))
            FROM unnest(p.proargtypes) t), ', ') FROM pg_proc p WHERE p.pronamespace = 'inlet'::regnamespace""")
        closed = [name for name in functions if name[0].startswith("_") or name[0].startswith("v1_admin_")]
        statements = [f"SELECT * FROM {table}" for table, _ in tables]
        statements += [f"DELETE FROM {table}" for table, kind in tables if kind in "rp"]
        statements += [f"SELECT inlet.{name}({words})" for name, words in closed]
        said = cluster.errors(statements, LOGIN)
        allowed = len(statements) - sum(line.startswith("42501") for line in said)
        return [Row("G: tables and functions tried", str(len(statements))), none("G: allowed to the agents' role", allowed),
                *strangers(cluster), *fuzz(cluster, functions, random.Random(seed), 60 * minutes)]


def strangers(cluster: Cluster) -> list[Row]:
    """A wrong token, another agent's number, a retired agent: each is refused."""
    cluster.sql(f"SELECT inlet.v1_admin_secret({SECRET})")
    for number, name in enumerate(("fuzzer", "victim", "gone"), 1):
        cluster.sql(f"""SELECT inlet.v1_join({SECRET}, '{name}', '{"abc"[number - 1] * 6}', gen_random_uuid(),
            {token(number)}, 0, '{{}}')""")
        cluster.sql(f"SELECT inlet.v1_hello({number}, {token(number)}, 1, gen_random_uuid(), '\\x00', 0, '1', '{{}}')")
    cluster.sql("SELECT inlet.v1_admin_agent('gone', 'retired')")
    cases = [(1, token(2), 1), (2, token(1), 1), (1, "NULL", 1), (3, token(3), 3), (99, token(1), 1)]
    statements = [f"SELECT inlet.v1_beat({agent}, {proof}, {session(cluster, real)}, 0, true)" for agent, proof, real in cases]
    said = cluster.errors(statements, LOGIN)
    return [none("G: strangers let in", len(cases) - sum(line.startswith("IN002") for line in said))]


def token(number: int) -> str:
    return f"sha256('{number}'::bytea)"


def session(cluster: Cluster, agent: int) -> str:
    return cluster.one(f"SELECT session FROM inlet.beat WHERE agent = {agent}")


def fuzz(cluster: Cluster, functions: list[list[str]], draw: random.Random, seconds: float) -> list[Row]:
    """Random arguments, half of them with a right token: no internal error, and nothing of another agent changes."""
    others = "SELECT coalesce(md5(string_agg(k::text, ',' ORDER BY k::text)), '') FROM inlet.{} k WHERE k.{} = 2"
    rows = [("key", "owner"), ("beat", "agent"), ("receipt", "agent"), ("prefix", "agent"), ("report", "agent"),
            ("member", "agent"), ("place", "holder"), ("work", "agent")]
    # A key, a share and work of the victim, which the fuzzer must not get.
    victim = f"2, {token(2)}, {session(cluster, 2)}"
    file = {"path": str(uuid.UUID(int=1)), "version": str(uuid.UUID(int=2)), "name": "YS5tb3Y=", "size": 1, "destination": 1,
            "ref": 8, "key": "b.mov", "plan": {}}
    for call in (f"v1_destination({victim}, sha256('d'), 's3', 'store', false)",
                 f"v1_reserve({victim}, 0, 1, '{{a.mov}}', '{{7}}', NULL)",
                 f"v1_place({victim}, 'media', gen_random_uuid())", f"v1_hold({victim}, 0, '{{1}}')",
                 f"v1_admit({victim}, 0, 1, 1, '[{json.dumps(file)}]')", f"v1_claim({victim}, 0, '{{1}}', 1)"):
        cluster.sql(f"SELECT * FROM inlet.{call}")
    if cluster.one("SELECT count(*) FROM inlet.work WHERE state = 'c' AND agent = 2") != "1":
        raise Failed("the victim of the fuzzer has no work")
    before = [cluster.one(others.format(*row)) for row in rows]
    open_functions = [function for function in functions if function[0].startswith("v1_") and "admin" not in function[0]]
    values = {
        "integer": ["NULL", "0", "1", "2", "-1", "2147483647"], "bigint": ["NULL", "0", "1", "-1", "9223372036854775807"],
        "bytea": ["NULL", "'\\x00'", token(1), "'\\xff'::bytea"], "boolean": ["NULL", "true", "false"],
        "uuid": ["NULL", "gen_random_uuid()"],
        "text": ["NULL", "''", "'a.mov'", "'a/'", "'%_\\'", "repeat('x', 100000)", "'fuzzer'"],
        "jsonb": ["NULL", "'{}'", "'[]'", "'[1]'", "'[{\"seq\": 1}]'", "'\"a\"'", "'{\"a\": {\"b\": [null]}}'"],
        "text[]": ["NULL", "'{}'", "'{a.mov,NULL}'", "'{a_bbbbbb.mov}'"], "bigint[]": ["NULL", "'{}'", "'{1,NULL}'", "'{1}'"],
        "integer[]": ["NULL", "'{}'", "'{1,NULL}'"], "uuid[]": ["NULL", "'{}'"], "bytea[]": ["NULL", "'{}'"],
        "smallint": ["NULL", "0", "-1"], "smallint[]": ["NULL", "'{}'"], "interval": ["NULL", "'1 s'"],
    }
    tried, outside, internal, ends = 0, 0, [], time.monotonic() + seconds
    while time.monotonic() < ends or not tried:
        # Random calls end its session, retire it, and make the fleet recover: each batch begins with an agent that lives
        # in an open fleet, and is short, so that most calls come to more than a refusal.
        cluster.sql(f"""UPDATE inlet.beat SET hello = 0, mark = 0, until = clock_timestamp() + '1 hour' WHERE agent = 1;
            UPDATE inlet.fleet SET state = 'open';
            UPDATE inlet.agent SET state = 'active', token_hash = sha256({token(1)}), epoch = (SELECT epoch FROM inlet.fleet)
            WHERE id = 1;""")
        statements, present = [], session(cluster, 1)
        for _ in range(50):
            name, words = draw.choice(open_functions)
            types = [word.removeprefix("NULL::") for word in words.split(", ") if word]
            given = [f"{draw.choice(values.get(kind, ['NULL']))}::{kind}" for kind in types]
            if draw.random() < 0.7 and len(given) >= 3 and name != "v1_join":
                given[:2] = ["1", token(1)]
                given[2] = present if types[2] == "bigint" else given[2]
            statements.append(f"SELECT * FROM inlet.{name}({', '.join(given)})")
        said = cluster.errors(statements, LOGIN)
        tried += len(statements)
        outside += sum(line.startswith(("IN002", "IN003", "IN006", "IN008")) for line in said)
        internal += [line for line in said if line.startswith("XX")]
    after = [cluster.one(others.format(*row)) for row in rows]
    if internal:
        print("\nG: internal errors\n" + "\n".join(f"  {line}" for line in internal[:20]), flush=True)
    changed = [row[0] for row, old, new in zip(rows, before, after) if old != new]
    return [Row("G: calls with random arguments", f"{tried:,}"),
            Row("G: of these refused before their arguments were looked at", f"{outside:,}"), none("G: internal errors", len(internal)),
            none(f"G: tables with changed rows of others {changed or ''}".strip(), len(changed))]


# A file of a share of the crowd: the agent that lists it admits and finishes it.
CYCLE = """\\set n random(1, 1000000000000000)
SELECT a.mark FROM public.lister l, inlet.v1_admit(l.agent, l.token, l.session, 0, 1, l.fence, jsonb_build_array(
    jsonb_build_object('path', md5('path' || :n)::uuid, 'version', md5('version' || :n)::uuid, 'name', 'YS5tb3Y=', 'size', 1000,
        'destination', 1, 'ref', :n, 'key', 'clip-' || :n || '.mov', 'plan', '{}'::jsonb))) a;
SELECT coalesce(jsonb_agg(jsonb_build_object('work', c.work, 'fence', c.fence, 'outcome', 'delivered')), '[]') AS claims
    FROM public.lister l, inlet.v1_claim(l.agent, l.token, l.session, 0, '{1}', 10) c \\gset
SELECT coalesce(jsonb_agg(jsonb_build_object('work', s.finish, 'fence', 1, 'outcome', 'finished')), '[]') AS ends
    FROM public.lister l, inlet.v1_settle_many(l.agent, l.token, l.session, 0, $j$:claims$j$) s \\gset
SELECT count(*) FROM public.lister l, inlet.v1_settle_many(l.agent, l.token, l.session, 0, $j$:ends$j$) s;
"""


# A client's first beat comes at a random moment, each later one so long after the last answer. pgbench's latencies include
# that pause.
PAUSE = 5
# Seconds before the figures count.
WARM = 30
BEAT = f"""\\if :begins
\\set pause random(1, {1000 * PAUSE})
\\sleep :pause ms
\\set begins 0
\\else
\\sleep {PAUSE} s
\\endif
SELECT b.left_ms FROM public.alive c,
    inlet.v1_beat(c.agent, sha256(c.client::text::bytea), c.session, 0, false) b WHERE c.client = :client_id;
"""


def crowd(folder: Path, minutes: float, agents: int = 1000) -> list[Row]:
    """Simulated agents with the usual lease of 15 s beat each third of it, 200 a second together. Beside them ten files a second
    go through a share."""
    with Cluster(folder / "postgres", max_connections="60") as cluster, Pooler(cluster) as pooler:
        inlet("fleet", "init", "--url", cluster.url())
        cluster.sql(f"""SELECT inlet.v1_admin_secret({SECRET});
            CREATE TABLE public.crowd (client int PRIMARY KEY, agent int);
            INSERT INTO public.crowd (client, agent) SELECT n, (inlet.v1_join({SECRET}, 'agent-' || n,
                translate(lpad(n::text, 6, '0'), '0189', 'abcd'), gen_random_uuid(), sha256(n::text::bytea), 0, '{{}}')).agent
            FROM generate_series(0, {agents - 1}) n;
            CREATE TABLE public.alive AS SELECT client, agent, (inlet.v1_hello(agent, sha256(client::text::bytea), 1,
                gen_random_uuid(), '\\x00', 0, '1', '{{}}')).session FROM public.crowd;
            CREATE UNIQUE INDEX ON public.alive (client);
            CREATE TABLE public.lister AS SELECT agent, sha256(client::text::bytea) AS token, session, 1::bigint AS fence
            FROM public.alive WHERE client = 0;
            SELECT inlet.v1_place(agent, token, session, 'media', '{uuid.UUID(int=1)}') FROM public.lister;
            SELECT inlet.v1_destination(agent, token, session, sha256('d'), 's3', 'store', false) FROM public.lister;
            SELECT inlet.v1_hold(agent, token, session, 0, '{{1}}') FROM public.lister;""")
        script, files = folder / "beat.sql", folder / "file.sql"
        files.write_text(CYCLE)
        script.write_text(BEAT)

        def size(table: str) -> float:
            return int(cluster.one(f"SELECT pg_total_relation_size('inlet.{table}')")) / 1024

        def start(*words: object) -> subprocess.Popen:
            return subprocess.Popen(["prlimit", "--nofile=8192", str(cluster.bin / "pgbench"), "-n", "-T",
                                     str(WARM + int(60 * minutes)), *map(str, words), cluster.url(port=pooler.port)],
                                    stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)

        began = time.time()
        with start("-f", files, "-R", 10) as share, start("-f", script, "-D", "begins=1", "-c", agents, "-j", 4, "-l",
                                                         f"--log-prefix={folder}/log") as beats:
            time.sleep(WARM)
            before = size("beat")
            said = [process.communicate()[1] for process in (beats, share)]
        # Whose beat is refused ends, and says so.
        lost = said[0].count("aborted")
        if share.returncode or beats.returncode and not lost:
            raise Failed(f"pgbench: {said[0][-600:]}\n{said[1][-600:]}")
        lines = [line.split() for path in folder.glob("log.*") for line in path.read_text().splitlines()]
        times = [int(line[2]) / 1000 - 1000 * PAUSE for line in lines if int(line[4]) > began + WARM]
        return [figure("J: minutes", minutes), Row("J: beats", f"{len(times):,}"),
                figure("J: beats, p50", percentile(times, 0.5), " ms"),
                bounded("J: beats, p99", percentile(times, 0.99), 100, " ms"),
                figure("J: beats, longest", max(times), " ms"), none("J: sessions lost", lost),
                bounded("J: table of beats at the end", size("beat"), 2 * before, " KiB", 0),
                Row("J: files of a share", cluster.one("SELECT count(*) FROM inlet.file WHERE state = 'f'")),
                # What autovacuum leaves of a minute or two; an hour without it would leave 40 MiB.
                bounded("J: table of work at the end", size("work"), 8 << 10, " KiB", 0)]


# Each statement a transaction of its own, as agents ask: 500 deliveries are claimed, settled, and their sources finished.
WORK = """\\set agent :client_id + 1
SELECT coalesce(jsonb_agg(jsonb_build_object('work', c.work, 'fence', c.fence, 'outcome', 'delivered')), '[]') AS claims
    FROM public.alive a, inlet.v1_claim(a.agent, a.token, a.session, 0, '{1}', 500) c WHERE a.agent = :agent \\gset
SELECT coalesce(jsonb_agg(jsonb_build_object('work', s.finish, 'fence', 1, 'outcome', 'finished')), '[]') AS ends
    FROM public.alive a, inlet.v1_settle_many(a.agent, a.token, a.session, 0, $j$:claims$j$) s WHERE a.agent = :agent \\gset
SELECT count(*) FROM public.alive a, inlet.v1_settle_many(a.agent, a.token, a.session, 0, $j$:ends$j$) s WHERE a.agent = :agent;
"""


# A call that reserves so many keys that nobody has.
KEYS = 200
RESERVE = f"""\\set agent :client_id + 1
\\set first random(1, 1000000000000000)
SELECT cardinality(r.granted) FROM public.alive a, inlet.v1_reserve(a.agent, a.token, a.session, 0, 1,
    ARRAY(SELECT 'clip-' || (:first + n) || '.mov' FROM generate_series(1, {KEYS}) n),
    ARRAY(SELECT :first + n FROM generate_series(1, {KEYS}) n), NULL) r WHERE a.agent = :agent;
"""


def pgbench(cluster: Cluster, script: Path, connections: int, *more: str) -> float:
    """- Returns: the seconds that it took."""
    began = time.monotonic()
    done = subprocess.run([str(cluster.bin / "pgbench"), "-n", "-f", str(script), "-c", str(connections), "-j",
                           str(min(4, connections)), *more, cluster.url()], capture_output=True, text=True)
    if done.returncode:
        raise Failed(f"pgbench: {done.stderr[-600:]}")
    return time.monotonic() - began


def reserved(cluster: Cluster, folder: Path, connections: int, calls: int = 400) -> Row:
    """How many keys are reserved a second; 200 go in a call, as agents ask."""
    script = folder / "reserve.sql"
    script.write_text(RESERVE)
    seconds = pgbench(cluster, script, connections, "-t", str(calls // connections))
    return figure(f"W: keys a second reserved, {KEYS} a call, {connections} connections", calls * KEYS / seconds, digits=0)


def work(folder: Path, files: int = 100_000, agents: int = 4, batch: int = 500) -> list[Row]:
    """Agents reserve keys, and claim, settle and finish the files of a share, each with a delivery, as fast as PostgreSQL
    lets them."""
    with Cluster(folder / "postgres", shared_buffers="1GB", max_wal_size="4GB") as cluster:
        inlet("fleet", "init", "--url", cluster.url(), "--ttl", "5m")
        cluster.sql(f"""SELECT inlet.v1_admin_secret({SECRET});
            CREATE TABLE public.alive AS SELECT j.agent, sha256(n::text::bytea) AS token, 0::bigint AS session
            FROM generate_series(1, 8) n,
                inlet.v1_join({SECRET}, 'agent-' || n, repeat(chr(96 + n), 6), gen_random_uuid(), sha256(n::text::bytea), 0, '{{}}') j;
            UPDATE public.alive a SET session = h.session FROM public.alive b, inlet.v1_hello(b.agent, b.token, 1,
                gen_random_uuid(), '\\x00', 0, '1', '{{}}') h WHERE a.agent = b.agent;
            SELECT inlet.v1_place(agent, token, session, 'media', '{uuid.UUID(int=1)}') FROM public.alive;
            SELECT inlet.v1_destination(agent, token, session, sha256('d'), 's3', 'store', false)
            FROM public.alive WHERE agent = 1;
            SELECT inlet.v1_hold(agent, token, session, 0, '{{1}}') FROM public.alive WHERE agent = 1;""")
        keys = [reserved(cluster, folder, connections) for connections in (1, 4, 8)]
        script = folder / "work.sql"
        script.write_text(WORK)
        # As after a night in which autovacuum found the queue empty.
        cluster.sql("\n".join(admission(first, batch) for first in range(files, files + 2 * batch, batch)))
        pgbench(cluster, script, 1, "-t", "2")
        cluster.sql("ANALYZE inlet.work; ANALYZE inlet.file;")
        began = time.monotonic()
        cluster.sql("\n".join(admission(first, batch) for first in range(0, files, batch)))
        admitted = files / (time.monotonic() - began)
        half = str(files // batch // agents // 2)
        empty = pgbench(cluster, script, agents, "-t", half)
        cluster.sql("VACUUM ANALYZE inlet.work; VACUUM ANALYZE inlet.file;")
        usual = pgbench(cluster, script, agents, "-t", half)
        left, finished = map(int, cluster.sql(
            "SELECT (SELECT count(*) FROM inlet.work), (SELECT count(*) FROM inlet.file WHERE state = 'f')")[0])
        each = (finished - 2 * batch) / 2
        ended = f"W: files a second claimed, settled and finished, {agents} connections"
        return [*keys, figure("W: files a second admitted, 1 connection", admitted, digits=0),
                bounded(ended, each / usual, 10_000, digits=0, is_least=True),
                bounded(f"{ended}, with the statistics of an empty queue", each / empty, 5000, digits=0, is_least=True),
                none("W: work left", left)]


def admission(first: int, count: int) -> str:
    """A call that admits so many files."""
    return f"""SELECT inlet.v1_admit(a.agent, a.token, a.session, 0, 1, p.fence, (SELECT jsonb_agg(jsonb_build_object('path',
        md5('path' || n)::uuid, 'version', md5('version' || n)::uuid, 'name', encode(convert_to('clip-' || n || '.mov', 'UTF8'),
        'base64'), 'size', 1000, 'destination', 1, 'ref', n, 'key', 'clip-' || n || '.mov', 'plan', '{{}}'::jsonb))
        FROM generate_series({first}, {first + count - 1}) n)) FROM public.alive a, inlet.place p WHERE a.agent = 1;"""
