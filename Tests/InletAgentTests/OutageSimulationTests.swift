import InletCore
import InletTestSupport
import Testing

@Suite struct OutageSimulationTests {
    private static let day: Int64 = 86_400

    /// A server that comes and goes, then is away for a day, comes and goes, is away for a week, and is then there for good.
    private func outages(_ random: inout SeededGenerator) -> [Range<Int64>] {
        var outages: [Range<Int64>] = []
        var time: Int64 = 0
        for long in [Self.day, 7 * Self.day] {
            for _ in 0..<3 {
                time += Int64.random(in: 60...400, using: &random)
                let length = Int64.random(in: 200...3000, using: &random)
                outages.append(time..<time + length)
                time += length
            }
            time += Int64.random(in: 60...400, using: &random)
            outages.append(time..<time + long)
            time += long
        }
        return outages
    }

    @Test(arguments: 1...3 as ClosedRange<UInt64>)
    func `after a day and a week of outage every file is delivered once, and no minute had two probes`(
        _ seed: UInt64
    ) async throws {
        let files = 1000
        var random = SeededGenerator(seed: seed)
        let outages = outages(&random)
        let restarts = outages.map { ($0.lowerBound + $0.upperBound) / 2 } + outages.map { $0.upperBound + 30 }
        var simulation = try await OutageSimulation(
            outages: outages, restarts: restarts.sorted(), files: files, seed: seed)
        defer { simulation.close() }
        try await simulation.run(until: 20 * Self.day)
        let (states, attempts) = try await simulation.result()
        #expect(states == [.delivered: files])
        #expect(attempts == [1])
        #expect(simulation.deliveries.count == files && simulation.deliveries.values.allSatisfy { $0 == 1 })
        #expect(simulation.failures > 0)
        #expect(simulation.mostProbesAMinute == 1)
        // One a minute in the day and in the week, and not much more.
        let minutes = outages.reduce(0) { $0 + $1.count } / 60
        #expect(simulation.probeCount > minutes - 100 && simulation.probeCount <= minutes + 100)
    }
}
