internal import InletCore

/// Whose turn it is among deliveries that are due: by priority, then by how long they have waited.
struct Turn: Comparable {
    private let rank: Int
    private let nextAt: WallTime
    private let id: Int64

    init(_ delivery: DeliveryRow) { (rank, nextAt, id) = (delivery.priority.rank, delivery.nextAt, delivery.id) }

    static func < (left: Turn, right: Turn) -> Bool {
        (left.rank, left.nextAt, left.id) < (right.rank, right.nextAt, right.id)
    }
}

extension DeliveryRow {
    var turn: Turn { Turn(self) }
}
