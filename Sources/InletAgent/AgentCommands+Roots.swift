internal import InletCore
internal import InletJournal
internal import InletLinux
package import SystemPackage

extension AgentCommands {
    /// Takes a watched folder as it is now, although it is not what was watched before.
    ///
    /// - Returns: false when there is no folder at `root`.
    package func resume(root: FilePath, by: String) async throws -> Bool {
        // One of another machine may take its time, or not answer.
        let pool = BlockingPool(name: "mark", threads: 1)
        defer { pool.shutdown() }
        let found = try await pool.run { () throws in
            var mark = try RootCaution.mark(of: root)
            mark?.wasEmptied = RootCaution.isEmpty(root) ? true : nil
            return mark
        }
        guard let mark = found else { return false }
        try await journal.setMark(mark, of: root, at: .now)
        live?.log.emit(.watchResumed(root: root, by: by))
        live?.roots.nudge(root)
        return true
    }
}
