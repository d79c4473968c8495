#if DEBUG
    import InletCore
    import InletJournal
    import SystemPackage
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
            let wish = ClaimWish.none(.small)
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

        /// As `inlet send` asks about the first of those that are left, until none is.
        @Test(arguments: [60, 240])
        func `following costs two statements a file that has ended, and two a question`(_ count: Int) async throws {
            let bench = try Bench()
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
            let bench = try Bench()
            for count in [10, 40] {
                let files = (0..<count).map { (path: FilePath("tmp/\($0)"), destinations: ["r2"]) }
                let asked = try await bench.journal.runs(of: "SELECT") { _ = try await bench.journal.lastSent(files) }
                // Here, and in the history.
                #expect(asked == 2 * count)
            }
        }
    }
#endif
