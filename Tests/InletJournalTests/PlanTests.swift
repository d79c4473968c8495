#if DEBUG
    import Foundation
    import InletCore
    import InletJournal
    import InletJournalSupport
    import SystemPackage
    import Testing

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
            for name in ["a", "b", "c", "d"] {
                _ = try await bench.admit(name, to: ["r2", "disk"], expire: .seconds(60))
            }
            _ = try await bench.admit("small", lane: .small)
            var held = FileAdmission.test("unit/x")
            held.unit = "unit"
            _ = try await bench.journal.admit(held, at: Bench.start)
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
            let wish = ClaimWish(lane: .big, room: .test(), most: 1)
            _ = try await bench.journal.exchange([], for: wish, at: Bench.start)
            try await expectNoWalk(bench) { journal in
                _ = try await journal.recover(destinations: ["r2"], boot: 1, at: Bench.start)
                _ = try await journal.recover(destinations: ["r2", "disk"], boot: 1, at: Bench.start)
                _ = try await (journal.paused(), journal.uptimes(), journal.queueCounts())
                _ = try await journal.closeUnits(exceptOf: [WatchSettings(path: "/in")], uptimes: [:], at: Bench.start)
                _ = try await journal.begunDeliveries(limit: 100)
                _ = try await journal.waitingFiles(limit: 100)
                _ = try await journal.setSinks([], at: Bench.start)
            }
        }

        @Test func `claims, of whatever priority`() async throws {
            let bench = try await filled()
            try await expectNoWalk(bench) { journal in
                for lane in Lane.allCases {
                    for room in [ClaimRoom.test(), .test("disk")] {
                        let wish = ClaimWish(lane: lane, room: room, most: 9)
                        let claims = try await journal.exchange([], for: wish, at: Bench.start).claims
                        let ended = claims.map { EndedClaim($0, .test(.delivered)) }
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
                let room = ClaimRoom(destination: "r2", limits: [.small: 9], isForBegunOnly: true)
                _ = try await journal.nextDue(.small, rooms: [room])
                let wish = ClaimWish(lane: .small, room: room, most: 9)
                let claims = try await journal.exchange([], for: wish, at: Bench.start).claims
                #expect(claims.count == 1)
            }
        }

        /// The outbox is bounded, and what is read of it is an index.
        @Test func `status`() async throws {
            let bench = try await filled()
            try await expectNoWalk(bench, except: "outbox") { journal in
                _ = try await (journal.totals(), journal.queueCounts(), journal.paused(), journal.oldestPending())
                _ = try await (journal.waiting(limit: 100), journal.outboxBacklog())
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
                _ = try await (journal.unfinished(at: now, limit: 9), journal.nextFinish())
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
#endif
