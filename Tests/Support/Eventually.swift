/// Thrown when what a test waited for did not come about in time.
package struct NotInTime: Error, CustomStringConvertible {
    package let description: String
}

/// Waits until `condition` holds, and fails after `bound`; for effects that have no event of their own to await.
package func eventually(
    _ what: String, within bound: Duration = .seconds(120), _ condition: () async throws -> Bool
) async throws {
    let clock = ContinuousClock()
    let start = clock.now
    let (end, last) = (start.advanced(by: bound), start.advanced(by: bound * 3))
    var looks = 0
    // On a machine that is starved a minute may hold a look or two, and what is waited for had no chance either.
    while clock.now < end || looks < 1_000 && clock.now < last {
        if try await condition() { return }
        looks += 1
        try await clock.sleep(for: .milliseconds(5))
    }
    throw NotInTime(description: "not within \(bound): \(what)")
}
