/// What this machine could not do for deliveries, and what has been said of that already.
package struct LocalFaults: Sendable {
    /// In a row, by delivery.
    private var counts: [Int64: Int] = [:]
    private var said: Set<ErrorCode> = []

    /// More deliveries than this begin anew.
    private static let most = 10_000

    package init() {}

    /// How often in a row it could not do its part for a delivery.
    package func count(of delivery: Int64) -> Int { counts[delivery, default: 0] }

    /// How long a delivery stays away with which that has happened so often before: 1, 2, 4 s … half a minute; a whole one for
    /// what may not be read, which its ctime tells when it may; five for a device that fails.
    package static func wait(after count: Int, _ code: ErrorCode) -> Duration {
        let most =
            switch code {
            case .sourceUnreadable: 300
            case .sourceForbidden: 60
            default: 30
            }
        return .seconds(min(most, 1 << min(count, 9)))
    }

    /// Takes note of one. - Returns: whether it is news: of each file that cannot be read, and once of what concerns all.
    package mutating func note(_ code: ErrorCode, of delivery: Int64) -> Bool {
        let count = count(of: delivery)
        if counts.count >= Self.most { counts = [:] }
        counts[delivery] = count + 1
        return switch code {
        // The journal's health says it.
        case .internalFault: false
        // A device that fails may fail for this file alone.
        case .sourceUnreadable, .sourceForbidden: count == 0
        default: said.insert(code).inserted
        }
    }

    /// A delivery came to an end that has nothing to do with this machine.
    package mutating func worked(_ delivery: Int64) {
        if counts.isEmpty { return }
        counts[delivery] = nil
        said = []
    }
}
