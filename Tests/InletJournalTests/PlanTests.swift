import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import SystemPackage
import Testing

#if DEBUG
    /// What the agent asks at its start, in its loops and for `status` never walks through what has ended or what waits: each
    /// statement that SQLite is really given is asked for its plan.
    @Suite(.enabled(if: SQLiteShell.isInstalled)) struct PlanTests {
        private static let tables = ["delivery", "file", "receipt", "batch", "content", "twin", "spent_key"]

        /// Indexes of what is in hand or open, which may be read from end to end.
        private static let short = [
            "delivery_claimed", "delivery_owned", "delivery_parked", "delivery_waiting", "batch_open",
        ]

        /// What is wrong with a plan; nil for a good one.
        private static func objection(to plan: String) -> String? {
            for line in plan.split(separator: "\n") {
                let words = line.split { " |`-(".contains($0) }.map(String.init)
                if words.first == "SCAN", words.count > 1, tables.contains(words[1]),
                    !words.contains(where: short.contains)
                {
                    return "walks \(words[1])"
                }
                if line.contains("TEMP B-TREE") { return "sorts" }
            }
            return nil
        }

        /// Something of every kind: fresh, tried, worked on, held, parked, delivered.
        private func filled() async throws -> Bench {
            let bench = try Bench()
            for name in ["a", "b", "c", "d"] { try await bench.admit(name, to: ["r2", "disk"], expire: .seconds(60)) }
            try await bench.admit("small", lane: .small)
            try await bench.admit(.test("unit/x", unit: "unit"))
            try await bench.settle(.again(Bench.start + .seconds(5), counts: true))
            try await bench.settle(.waiting(until: Bench.start, saying: "at work"))
            try await bench.settle(.test(.delivered))
            return bench
        }

        private func expectNoWalk(
            _ bench: Bench, except sorting: String? = nil, _ body: (Journal) async throws -> Void
        ) async throws {
            let journal = bench.journal
            let statements = try await journal.statements { try await body(journal) }
            let asked = statements.filter { statement in
                ["SELECT", "UPDATE", "DELETE", "INSERT"].contains { statement.hasPrefix($0) }
            }
            #expect(!asked.isEmpty)
            for statement in asked {
                let plan = try SQLiteShell.run(journal.path, "EXPLAIN QUERY PLAN \(statement)")
                guard let objection = Self.objection(to: plan) else { continue }
                if objection == "sorts", let sorting, statement.contains(sorting) { continue }
                Issue.record("\(objection): \(statement)\n\(plan)")
            }
        }

        @Test func `a start`() async throws {
            let bench = try await filled()
            let wish = ClaimRequest(lane: .big, room: .test(), most: 1)
            try await bench.exchange(for: wish)
            try await expectNoWalk(bench) { journal in
                _ = try await journal.recover(destinations: ["r2"], boot: 1, at: Bench.start)
                _ = try await journal.recover(destinations: ["r2", "disk"], boot: 1, at: Bench.start)
                _ = try await (journal.paused(), journal.uptimes(), journal.queueCounts())
                _ = try await journal.closeUnits(exceptOf: [WatchSettings(path: "/in")], uptimes: [:], at: Bench.start)
                _ = try await journal.begunDeliveries(limit: 100)
                _ = try await journal.waitingFiles(limit: 100)
                _ = try await journal.bytes(ofWaiting: ["r2": 3])
                _ = try await journal.setSinks([], at: Bench.start)
            }
        }

        @Test func `claims, of whatever priority`() async throws {
            let bench = try await filled()
            try await expectNoWalk(bench) { journal in
                for lane in Lane.allCases {
                    for room in [ClaimCapacity.test(), .test("disk")] {
                        let wish = ClaimRequest(lane: lane, room: room, most: 9)
                        let claims = try await journal.exchange([], for: wish, at: Bench.start).claims
                        let ended: [EndedClaim] = claims.map { ($0.delivery.id, .test(.delivered)) }
                        _ = try await journal.exchange(ended, for: wish, at: Bench.start)
                        _ = try await journal.nextDue(lane, rooms: [room])
                    }
                }
            }
        }

        /// Those that destinations work on are few, and sorted.
        @Test func `claims of what has been begun`() async throws {
            let bench = try await filled()
            try await expectNoWalk(bench, except: "delivery_waiting") { journal in
                let room = ClaimCapacity(destination: "r2", limits: [.small: 9], isForBegunOnly: true)
                _ = try await journal.nextDue(.small, rooms: [room])
                let wish = ClaimRequest(lane: .small, room: room, most: 9)
                #expect(try await journal.exchange([], for: wish, at: Bench.start).claims.count == 1)
            }
        }

        @Test func `what failed while a destination was away`() async throws {
            let bench = try await filled()
            try await bench.settle(.ended(.failed, code: .timedOut, reason: "slow"))
            try await expectNoWalk(bench) { journal in
                let found = try await journal.failedFiles(
                    at: "r2", from: ErrorCode.ofOutages, since: Bench.start, by: Bench.start, after: 0, limit: 9)
                #expect(found.count == 1)
            }
        }

        /// The outbox is bounded, and what is read of it is an index.
        @Test func `status`() async throws {
            let bench = try await filled()
            try await expectNoWalk(bench, except: "outbox") { journal in
                _ = try await (journal.totals(), journal.queueCounts(), journal.paused(), journal.oldestPending())
                _ = try await (journal.waiting(limit: 100), journal.outboxBacklog(), journal.rejectedLeft())
            }
        }

        /// What has been given up and needs an abort is sorted, and the lists that are owed.
        @Test func `what services ask when nothing happens`() async throws {
            let bench = try await filled()
            let now = Bench.start
            try await expectNoWalk(bench, except: "next_at") { journal in
                _ = try await (journal.queueLength(of: ["r2", "disk"]), journal.pending())
                _ = try await journal.nextExpiries(of: ["r2", "disk"])
                _ = try await journal.setUptime("r2", 100_000, at: now)
                for removals in [nil, true, false] {
                    _ = try await journal.unfinished(at: now, limit: 9, removals: removals)
                    _ = try await journal.nextFinish(removals: removals)
                }
                _ = try await (journal.leftovers(at: now, limit: 9), journal.nextLeftover())
                _ = try await (journal.nextManifest(at: now), journal.manifestDue())
                _ = try await (journal.nextNotice("ops", at: now), journal.boundOutbox(to: 100))
            }
        }

        @Test func `a walk would be noticed`() async throws {
            let bench = try await filled()
            let plan = try SQLiteShell.run(
                bench.journal.path, "EXPLAIN QUERY PLAN SELECT count(*) FROM delivery WHERE state = 'delivered'")
            #expect(Self.objection(to: plan) == "walks delivery")
            let sorted = try SQLiteShell.run(
                bench.journal.path, "EXPLAIN QUERY PLAN SELECT id FROM file WHERE id > 7 ORDER BY size")
            #expect(Self.objection(to: sorted) == "sorts")
        }
    }

    /// Thousands of small files a second go through these statements: none is there without need.
    @Suite struct CostTests {
        private let bench: Bench
        init() throws { bench = try Bench() }

        private func kinds(_ body: () async throws -> Void) async throws -> [String] {
            let words = ["SELECT", "INSERT", "UPDATE", "DELETE"]
            return try await bench.journal.statements(of: body).compactMap { statement in
                // Many rows begin with their values: WITH done(…) AS (VALUES …) UPDATE ….
                statement.split(whereSeparator: \.isWhitespace).lazy.map(String.init).first(where: words.contains)
            }
        }

        @Test func `a plain file is admitted, claimed and settled in twelve statements`() async throws {
            let rule: EndingRule = { _ in ("kept", []) }
            let admitted = try await kinds() { try await bench.admit("a", lane: .small) }
            // What is known of its path here and in the history; the file; whose its key is; the delivery; when a file last
            // came into the folder, once for all files of a commit.
            #expect(admitted == ["SELECT", "SELECT", "INSERT", "SELECT", "INSERT", "UPDATE"])
            var claims: [Claim] = []
            let claimed = try await kinds() { claims = try await bench.claimAll(lane: .small, most: 1) }
            #expect(claimed == ["SELECT", "SELECT", "UPDATE"] && claims.count == 1)
            let ended: [EndedClaim] = [(try #require(claims.first).delivery.id, .test(.delivered))]
            let wish = ClaimRequest.none(.small)
            let settled = try await kinds() {
                try await bench.exchange(ended, for: wish, ending: rule)
            }
            #expect(settled == ["UPDATE", "UPDATE", "INSERT"])
            #expect(try await bench.job(1).file.finishedAt == Bench.start)
        }

        @Test func `the plain files of a listing need six statements for thirty-two`() async throws {
            let files = (100..<132).map { FileAdmission.test("\($0)", lane: .small) }
            let admitted = try await kinds() { _ = try await bench.offer(files) }
            // What is known of all paths here and in the history; the files; whether a key was spent, which begins with WITH;
            // the deliveries; when a file last came into the folder.
            #expect(admitted == ["SELECT", "SELECT", "INSERT", "SELECT", "INSERT", "UPDATE"])
            // Events bring the same files in any order.
            for arrivals in [files.map(\.arrival), files.reversed().map(\.arrival)] {
                let asked = try await kinds() { _ = try await bench.recall(arrivals) }
                #expect(asked == ["SELECT"])
            }
        }

        @Test
        func `of a file that scans see again one question is asked, and two where the history has it`() async throws {
            _ = try await bench.bury("there")
            try await bench.admit("here")
            for (name, questions) in [("here", 1), ("there", 2), ("nowhere", 2)] {
                let asked = try await kinds() { _ = try await bench.recall([.test(name)]) }
                #expect(asked == Array(repeating: "SELECT", count: questions), "\(name)")
            }
        }

        /// As `inlet send` asks about the first of those that are left, until none is.
        @Test(arguments: [60, 240])
        func `following costs two statements a file that has ended, and two a question`(_ count: Int) async throws {
            var jobs: [Int64] = []
            for number in 0..<count { jobs.append(try await bench.admit("\(number)")) }
            var left = jobs[...]
            var (asked, questions) = (0, 0)
            while !left.isEmpty {
                for _ in 0..<20 { try await bench.settle(.test(.delivered)) }
                var known: [Job?] = []
                let group = Array(left.prefix(50))
                asked += try await bench.journal.runs(of: "SELECT") {
                    known = try await bench.journal.jobs(group) { $0.file.state != .pending }
                }
                questions += 1
                left = left.dropFirst(known.count { $0?.file.state == .delivered })
            }
            // The last question finds no file that has not ended.
            #expect(questions == count / 20 && asked == 2 * (count + questions - 1))
        }

        @Test func `what is known of files that are handed in is asked once for each`() async throws {
            for count in [10, 40] {
                let files = (0..<count).map { (path: FilePath("tmp/\($0)"), destinations: ["r2"]) }
                let asked = try await bench.journal.runs(of: "SELECT") { _ = try await bench.journal.lastSent(files) }
                // Here, and in the history.
                #expect(asked == 2 * count)
            }
        }
    }
#endif

/// The questions that loops ask must not read tables from end to end, however long the history is.
@Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct IndexTests {
    @Test(arguments: [
        (
            "SELECT next_at, id FROM delivery INDEXED BY delivery_ready WHERE destination = ? AND lane = ? AND priority = ?"
                + " AND state = 'ready' AND next_at <= ? AND owner IS NULL ORDER BY next_at, id LIMIT 1",
            "delivery_ready (destination=? AND lane=? AND priority=? AND next_at<?)"
        ),
        ("SELECT id FROM batch WHERE root = ? AND unit = ? AND route = ? AND closed_at IS NULL", "batch_open"),
        ("SELECT * FROM batch WHERE root = ? AND closed_at IS NULL", "batch_open"),
        (
            "SELECT 1 FROM file INDEXED BY file_open_in_batch WHERE batch_id = ? AND finished_at IS NULL AND ifnull(role, '') <> ? LIMIT 1",
            "file_open_in_batch"
        ),
        (
            "SELECT 1 FROM file INDEXED BY file_open_in_batch WHERE batch_id = ? AND finished_at IS NULL LIMIT 1",
            "file_open_in_batch"
        ),
        ("SELECT 1 FROM batch WHERE id = ? AND closed_at IS NOT NULL AND ended_at IS NULL", "INTEGER PRIMARY KEY"),
        ("SELECT state, count(*) AS n FROM file WHERE batch_id = ?", "file_by_batch"),
        ("SELECT * FROM delivery WHERE after_id = ? AND state IN ('ready', 'parked')", "delivery_after"),
        (
            "UPDATE delivery INDEXED BY delivery_by_file SET next_at = ?"
                + " WHERE file_id IN (SELECT id FROM file WHERE batch_id = ?) AND state IN ('ready', 'parked')"
                + " AND next_at = ? AND after_id IS NULL", "file_by_batch"
        ),
        (
            "SELECT count(*) FROM delivery WHERE destination = ? AND lane = ? AND state = 'claimed'",
            "delivery_claimed"
        ),
        ("SELECT 1 FROM delivery WHERE destination = ? AND key = ?", "delivery_by_key"),
        (
            "SELECT id FROM delivery WHERE state = 'ready' AND waits > 0 AND code IS NULL ORDER BY id LIMIT ?",
            "delivery_waiting"
        ),
        (
            "UPDATE delivery SET next_at = ? WHERE closes = (SELECT batch_id FROM file WHERE id = ?) AND destination = ?",
            "delivery_closing"
        ),
        ("SELECT * FROM delivery WHERE file_id = ? ORDER BY id", "delivery_by_file"),
        ("SELECT id FROM delivery WHERE after_id = ? AND state IN ('ready', 'parked')", "delivery_after"),
        (
            "SELECT id FROM delivery WHERE destination = ? AND state = 'ready' AND expires_at BETWEEN 0 AND ?"
                + " AND (waits = 0 OR code IS NOT NULL)",
            "delivery_expiring (destination=? AND expires_at>? AND expires_at<?)"
        ),
        (
            "SELECT DISTINCT destination FROM delivery WHERE state = 'ready' AND expires_at IS NOT NULL",
            "delivery_expiring"
        ),
        (
            "SELECT expires_at FROM delivery WHERE destination = ? AND state = 'ready' AND expires_at >= 0"
                + " AND (waits = 0 OR code IS NOT NULL) ORDER BY expires_at LIMIT 1",
            "delivery_expiring (destination=?"
        ),
        ("UPDATE delivery SET owner = NULL WHERE owner IS NOT NULL AND state <> 'claimed'", "delivery_owned"),
        ("UPDATE delivery SET state = 'ready' WHERE state = 'parked' AND destination IN (?)", "delivery_parked"),
        ("UPDATE delivery SET state = 'ready' WHERE state = 'claimed'", "delivery_claimed"),
        ("SELECT * FROM file WHERE root = ? AND path = ? AND volume IS NULL ORDER BY id DESC LIMIT 1", "file_by_path"),
        ("SELECT * FROM file WHERE volume = ? AND path = ? ORDER BY id DESC LIMIT 1", "file_by_volume"),
        ("SELECT 1 FROM file WHERE volume = ? AND finished_at IS NULL LIMIT 1", "file_open_of_volume"),
        (
            "SELECT * FROM file WHERE finished_at IS NULL AND state <> 'pending' AND finish_at <= ?"
                + " ORDER BY finish_at, id LIMIT ?", "file_unfinished"
        ),
        ("SELECT min(finish_at) FROM file WHERE finished_at IS NULL AND state <> 'pending'", "file_unfinished"),
        ("SELECT admitted_at FROM file WHERE state = 'pending' ORDER BY id LIMIT 1", "file_by_state"),
        (
            "SELECT destination FROM delivery WHERE state = 'ready' AND waits > 0 AND code IS NULL AND next_at < 1",
            "delivery_waiting"
        ),
        (
            "UPDATE delivery SET next_at = 1 WHERE id IN (SELECT id FROM delivery INDEXED BY delivery_retrying"
                + " WHERE destination = ? AND state = 'ready' AND code IS NOT NULL AND next_at > 1 AND next_at < 9"
                + " LIMIT 256)", "delivery_retrying"
        ),
        ("SELECT files, bytes FROM tally WHERE state = 'pending'", "PRIMARY KEY"),
        ("SELECT min(id) FROM file INDEXED BY file_by_state WHERE state = 'failed' AND id > ?", "file_by_state"),
        (
            "SELECT id FROM file INDEXED BY file_by_state WHERE state IN ('failed', 'expired') AND id BETWEEN ? AND ?",
            "state=? AND id"
        ),
        (
            "SELECT id FROM file INDEXED BY file_by_batch WHERE batch_id = ? AND id BETWEEN ? AND ?",
            "batch_id=? AND rowid"
        ),
        (
            "SELECT id, state FROM history_as_file WHERE place = (SELECT id FROM history_place WHERE name = ?) AND path = ?"
                + " ORDER BY id DESC LIMIT 1", "history_by_path (place=? AND path=?)"
        ),
        (
            "SELECT 1 FROM history_delivery WHERE destination = (SELECT id FROM history_word WHERE word = ?) AND key = ?",
            "history_by_key (destination=? AND key=?)"
        ),
        ("SELECT max(id) FROM history_as_file AS file WHERE id < ?", "INTEGER PRIMARY KEY (rowid<?)"),
        ("SELECT id FROM history_as_file AS file WHERE batch_id = ? AND id > ? ORDER BY id", "history_by_batch"),
        ("SELECT id FROM history_as_delivery AS delivery WHERE file_id = ? ORDER BY id", "history_delivery_by_file"),
        (
            "SELECT id, admitted_at, finished_at FROM file INDEXED BY file_by_state WHERE state = 'delivered' AND id > ?"
                + " ORDER BY id LIMIT 25", "file_by_state (state=? AND id>?)"
        ),
        ("SELECT DISTINCT delivery_id FROM checkpoint ORDER BY delivery_id DESC LIMIT ?", "checkpoint"),
    ])
    func `a question of a loop has its index`(question: String, index: String) throws {
        let bench = try Bench()
        bench.journal.close()
        let plan = try SQLiteShell.run(bench.journal.path, "EXPLAIN QUERY PLAN \(question)")
        #expect(plan.contains(index), "\(plan)")
        #expect(!plan.contains("TEMP B-TREE"), "\(plan)")
    }
}
