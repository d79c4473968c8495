import InletDashboard
import SystemPackage

extension Sending {
    /// Files that are handed in at once: what admits them then shares the journal's syncs.
    private static let abreast = 16

    /// Hands the files in, one that is named twice once.
    ///
    /// - Returns: the answers, in the order of the files.
    func handIn(_ paths: [FilePath]) async throws -> [CommandReport] {
        var seen: Set<FilePath> = []
        let paths = paths.filter { seen.insert($0).inserted }
        return try await withThrowingTaskGroup(of: (Int, CommandReport).self) { [control, to] group in
            var answers = [CommandReport?](repeating: nil, count: paths.count)
            for (number, path) in paths.enumerated() {
                if number >= Self.abreast, let (ended, answer) = try await group.next() { answers[ended] = answer }
                group.addTask { (number, try await control.send(path, to: to)) }
            }
            for try await (ended, answer) in group { answers[ended] = answer }
            return answers.compactMap { $0 }
        }
    }
}
