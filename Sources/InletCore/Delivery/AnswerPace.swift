/// How many small files may be on their way to one store at once, where the configuration leaves that open.
///
/// Files a second are requests under way by seconds an answer, so a store whose answers come late needs many; one that
/// answers at once gains nothing from more. The quickest of some thousand answers tells its delay: the others waited,
/// here or there, for a processor. A store that asks for less gets half, and more again as it answers.
package struct AnswerPace: Sendable, Equatable {
    package static let least = 32
    /// Each costs some 45 KiB.
    package static let most = 384
    /// So many small files a second are wanted. Two processors send fewer.
    private static let rate = 6_000.0
    /// Answers of which the quickest counts. A delay that grows is seen after twice as many.
    private static let window = 4096
    private static let floor = 8
    /// Answers without a refusal after which one more may be under way.
    private static let patience = 16

    /// The most that the store's refusals have left.
    private var bound = Self.most
    private var wanted = Self.least
    private var answered = 0
    /// The quickest answer of this window, and of the one before.
    private var quickest: Duration?
    private var quickestBefore: Duration?
    private var heard = 0
    /// Requests that were under way at the last refusal: their refusals are the same one.
    private var ofRefusal = 0

    package init() {}

    package var limit: Int { min(wanted, bound) }

    /// So many answers came well, the quickest after `delay`.
    package mutating func answered(_ count: Int, after delay: Duration) {
        ofRefusal = max(0, ofRefusal - count)
        let now = min(quickest ?? delay, delay)
        let needed = Int((min(now, quickestBefore ?? now) / .seconds(1) * Self.rate).rounded(.up))
        wanted = min(max(needed, Self.least), Self.most)
        quickest = now
        heard += count
        if heard >= Self.window { (quickest, quickestBefore, heard) = (nil, now, 0) }
        answered += count
        if answered >= Self.patience {
            bound = min(Self.most, bound + answered / Self.patience)
            answered %= Self.patience
        }
    }

    /// The store answered so many requests with SlowDown or 429. Refusals of requests that were under way together count
    /// once.
    package mutating func refused(_ count: Int = 1) {
        answered = 0
        guard ofRefusal == 0 else { return ofRefusal = max(0, ofRefusal - count) }
        ofRefusal = max(0, limit - count)
        bound = max(Self.floor, limit / 2)
    }
}
