/// How many small files may be on their way to one store at once, where the configuration leaves that open.
///
/// Files a second are requests under way by seconds an answer, so a store whose answers come late needs many; one that
/// answers at once gains nothing from more. The delay is the shortest of a burst: others waited here, or for a
/// processor. A store that asks for less gets half, and more again as it answers.
package struct AnswerPace: Sendable, Equatable {
    package static let least = 32
    /// Each costs some 20 KiB.
    package static let most = 512
    /// So many small files a second are wanted: what a machine sends.
    private static let rate = 10_000.0
    private static let floor = 8
    /// Answers without a refusal after which one more may be under way.
    private static let patience = 16

    /// What the store's refusals have left.
    private var bound = Self.most
    private var wanted = Self.least
    private var answered = 0

    package init() {}

    package var limit: Int { min(wanted, bound) }

    /// So many answers came well, the quickest after `delay`.
    package mutating func answered(_ count: Int, after delay: Duration) {
        let needed = Int((delay / .seconds(1) * Self.rate).rounded(.up))
        let next = min(max(needed, Self.least), Self.most)
        // Upwards at once, downwards slowly: one quick answer does not tell.
        wanted = max(next, wanted - max(1, wanted / 16))
        answered += count
        if answered >= Self.patience {
            bound = min(Self.most, bound + answered / Self.patience)
            answered %= Self.patience
        }
    }

    /// The store asked for less.
    package mutating func refused() {
        bound = max(Self.floor, limit / 2)
        answered = 0
    }
}
