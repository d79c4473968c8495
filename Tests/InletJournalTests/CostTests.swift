#if DEBUG
    import InletCore
    import InletJournal
    import Testing

    /// Thousands of small files a second go through these statements: none is there without need.
    @Suite struct CostTests {
        private func kinds(_ bench: Bench, _ body: () async throws -> Void) async throws -> [String] {
            try await bench.journal.statements(of: body).map { statement in
                String(statement.prefix { $0 != " " })
            }.filter { ["SELECT", "INSERT", "UPDATE", "DELETE"].contains($0) }
        }

        @Test func `a plain file is admitted, claimed and settled in twelve statements`() async throws {
            let bench = try Bench()
            let rule: EndingRule = { _ in Ending(disposition: "kept", receipt: []) }
            let admitted = try await kinds(bench) { _ = try await bench.admit("a", lane: .small) }
            // What is known of its path here and in the history; the file; whose its key is; the delivery.
            #expect(admitted == ["SELECT", "SELECT", "INSERT", "SELECT", "INSERT"])
            var claims: [Claim] = []
            let claimed = try await kinds(bench) { claims = try await bench.claimAll(lane: .small, most: 1) }
            #expect(claimed == ["SELECT", "SELECT", "UPDATE"] && claims.count == 1)
            let ended = [EndedClaim(try #require(claims.first), .test(.delivered))]
            let wish = ClaimWish(lane: .small, rooms: [], most: 0, owner: "cost")
            let settled = try await kinds(bench) {
                _ = try await bench.journal.exchange(ended, for: wish, ending: rule, at: Bench.start)
            }
            #expect(settled == ["SELECT", "UPDATE", "UPDATE", "INSERT"])
            #expect(try await bench.job(1).file.finishedAt == Bench.start)
        }

        @Test func `of a file that scans see again one question is asked, and two where the history has it`()
            async throws
        {
            let bench = try Bench()
            _ = try await bench.bury("there")
            _ = try await bench.admit("here")
            for (name, questions) in [("here", 1), ("there", 2), ("nowhere", 2)] {
                let asked = try await kinds(bench) { _ = try await bench.journal.recall([.test(name)], tolerance: 0) }
                #expect(asked == Array(repeating: "SELECT", count: questions), "\(name)")
            }
        }
    }
#endif
