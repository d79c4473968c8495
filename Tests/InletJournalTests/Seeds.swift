/// The seeds that the random tests of this module run with.
enum Seeds {
    /// Replayed at every run. When a random test fails it names its seed and the commands that are left after shrinking:
    /// add the seed here, with the fix.
    static let stored: [UInt64] = [1, 2, 3, 5]

    /// One more that nobody has seen yet.
    static let all = stored + [UInt64.random(in: 1_000...UInt64.max)]
}
