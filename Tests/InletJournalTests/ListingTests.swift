#if DEBUG
    import InletCore
    import InletJournalSupport
    import InletTestSupport
    import Testing

    @testable import InletJournal

    /// Lists of files, from a long history: each read of the journal is a short one, and others have their turn in between.
    @Suite(.seated, .enabled(if: SQLiteShell.isInstalled)) struct ListingTests {
        private static let count = 5 * Int(Journal.stretch)

        /// A history of so many files that nothing was sent of.
        private func bench() async throws -> Bench {
            let bench = try Bench()
            _ = try await bench.journal.admit(.refused("a"), at: Bench.start)
            try await bench.finishAll()
            guard try await bench.prune() == 1 else { throw Unexpected(what: "nothing went to the history") }
            let info = "pragma_table_info('history_file') WHERE name NOT IN ('id', 'path')"
            let names = try SQLiteShell.run(bench.journal.path, "SELECT name FROM \(info)")
            let columns = names.split(separator: "\n").joined(separator: ", ")
            try SQLiteShell.run(
                bench.journal.path,
                """
                WITH RECURSIVE c(n) AS (SELECT 1 UNION ALL SELECT n + 1 FROM c WHERE n < \(Self.count - 1))
                INSERT INTO history_file (id, path, \(columns))
                    SELECT id + n, CAST(path || n AS BLOB), \(columns) FROM c CROSS JOIN history_file WHERE id = 1
                """)
            return bench
        }

        /// - Returns: the jobs, and in how many reads they were found.
        private func list(_ bench: Bench, _ filter: FileFilter) async throws -> (jobs: [Job], reads: Int) {
            var jobs: [Job] = []
            let reads = try await bench.journal.runs(of: "BEGIN") { jobs = try await bench.journal.jobs(filter) }
            return (jobs, reads)
        }

        @Test func `a filter that hardly anything passes is asked of one stretch in each read`() async throws {
            let bench = try await bench()
            var filter = FileFilter(limit: 100)
            filter.path = try GlobPattern("a17")
            let found = try await list(bench, filter)
            #expect(found.jobs.map(\.file.id) == [18])
            // And one for what was found.
            #expect(found.reads == 6)
            filter.path = nil
            filter.labels = ["no": "such"]
            let none = try await list(bench, filter)
            #expect(none.jobs.isEmpty && none.reads == 5)
        }

        @Test func `of many that pass so many are read at once, newest first`() async throws {
            let bench = try await bench()
            let wanted = Int(Journal.stretch) + 2 * Journal.readAtOnce
            let found = try await list(bench, FileFilter(states: [.rejected], limit: wanted))
            #expect(found.jobs.map(\.file.id) == (0..<wanted).map { Int64(Self.count - $0) })
            let groups = wanted / Journal.readAtOnce
            #expect(found.reads == 2 + groups)
        }
    }
#endif
