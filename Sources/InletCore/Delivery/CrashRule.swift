/// What becomes of a delivery during which the process ended without a word: it may be what ends it.
package enum CrashRule {
    /// With so many, and no bytes that have arrived in between, it is left alone. Many, because an innocent one may be under way
    /// each time: `kill -9` once a second meets a short delivery ten times in a row in a few thousand.
    package static let most = 20
    private static let longest: Int64 = 60_000

    /// How long the delivery `id` waits after its crash number `crashes`: not at all at first; from the third on up to 1, 2,
    /// 4 … 60 s. Those that were under way together come back at different times, so that an innocent one is delivered before
    /// the other ends the process again.
    package static func delay(after crashes: Int, of id: Int64) -> Duration {
        guard crashes >= 3 else { return .zero }
        let span = min(longest, 1000 << Int64(min(crashes - 3, 10)))
        var mixed = UInt64(bitPattern: id) &* 0x9E37_79B9_7F4A_7C15 &+ UInt64(crashes) &* 0xBF58_476D_1CE4_E5B9
        mixed = (mixed ^ (mixed >> 29)) &* 0x94D0_49BB_1331_11EB
        return .milliseconds(span / 2 + Int64((mixed >> 32) % UInt64(span / 2 + 1)))
    }
}
