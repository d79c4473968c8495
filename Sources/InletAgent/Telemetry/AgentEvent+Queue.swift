internal import InletCore
internal import InletJournal

/// Lines about the queue as a whole, and about files that belong together.
extension AgentEvent {
    static func expired(_ file: FileRow, _ destination: String) -> AgentEvent {
        .jobExpired(job: file.id, path: file.fullPath, route: file.route ?? "", destinations: [destination])
    }
}

extension Batch {
    /// Files that are where they belong.
    var arrived: Int { counts.reduce(0) { $1.key.isWhereItBelongs ? $0 + $1.value : $0 } }
}
