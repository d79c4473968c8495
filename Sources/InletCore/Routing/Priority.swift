/// `priority:` of a route: what goes first where several files wait for one destination.
package enum Priority: String, Sendable, CaseIterable, Codable {
    case low
    case normal
    case high

    /// As the journal keeps it; the smallest goes first.
    package var rank: Int {
        switch self {
        case .high: 0
        case .normal: 1
        case .low: 2
        }
    }

    /// Those of a rank that nobody knows are as all the others.
    package init(rank: Int) { self = Self.allCases.first { $0.rank == rank } ?? .normal }

    /// In the order in which they go.
    package static let ranked = allCases.sorted { $0.rank < $1.rank }
}
