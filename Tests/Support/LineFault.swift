internal import InletCore

/// What the line between a client and a server does to one connection.
package enum LineFault: Sendable, Hashable {
    package enum Way: Sendable, Hashable, CaseIterable {
        /// From the client to the server.
        case request
        case answer
    }

    /// RST in the place of a conversation; the server is not told.
    case refuse
    /// RST to both ends once so many bytes went this way.
    case reset(Way, after: Int)
    /// The end of the connection, in good order, once so many bytes went this way.
    case cut(Way, after: Int)
    /// Once so many bytes went this way no more do, until the client leaves or the proxy lets go.
    case stall(Way, after: Int)
    /// One bit of this byte changes on this way.
    case flip(Way, at: Int)
    /// Pieces of so many bytes, a millisecond apart.
    case slow(piece: Int)
    /// Bytes of no protocol in the place of the server's: what a client that wants TLS meets at a wrong port.
    case noise
}

/// Which connections meet a fault, and which fault; two plans of one seed say the same for the same order of connections.
package struct LinePlan: Sendable {
    package let seed: UInt64
    /// How many connections may meet one; nil = any number.
    private var left: Int
    private let share: Double
    private let span: Int
    private var random: SeededGenerator

    /// - Parameters:
    ///   - share: How likely a connection meets a fault.
    ///   - span: A fault that waits for bytes comes within so many.
    ///   - most: Faults from then on are none.
    package init(seed: UInt64, share: Double, span: Int, most: Int) {
        self.seed = seed
        self.share = share
        self.span = max(1, span)
        left = most
        random = SeededGenerator(seed: seed)
    }

    /// Nothing happens but what a test asks for.
    package static var none: LinePlan { LinePlan(seed: 0, share: 0, span: 1, most: 0) }

    /// What the next connection meets; nil = nothing.
    package mutating func next() -> LineFault? {
        guard left > 0, Double.random(in: 0..<1, using: &random) < share else { return nil }
        left -= 1
        let after = Int.random(in: 0..<span, using: &random)
        let way = LineFault.Way.allCases.randomElement(using: &random) ?? .request
        switch Int.random(in: 0..<8, using: &random) {
        case 0: return .refuse
        case 1: return .noise
        case 2: return .slow(piece: 4096 + after % 28_672)
        case 3, 4: return .cut(way, after: after)
        default: return .reset(way, after: after)
        }
    }
}
