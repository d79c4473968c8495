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

    /// Every few minutes in the day, every half hour or so in the week.
    private func arrivals(_ outages: [Range<Int64>], _ random: inout SeededGenerator) -> [Int64] {
        outages.filter { $0.count >= Self.day }.flatMap { outage in
            let pauses: ClosedRange<Int64> = outage.count == Int(Self.day) ? 120...300 : 1200...3600
            var times: [Int64] = []
            // Later than anything that was under way when it began.
            var time = outage.lowerBound + 600
            while time < outage.upperBound {
                times.append(time)
                time += Int64.random(in: pauses, using: &random)
            }
            return times
        }
    }

    @Test(arguments: Load.of([1, 2, 3] as [UInt64]))
    func `after a day and a week of outage every file is delivered once, no minute had two probes, and others go on`(
        _ seed: UInt64
    ) async throws {
        let files = 1000
        var random = SeededGenerator(seed: seed)
        let outages = outages(&random)
        let arrivals = arrivals(outages, &random)
        let restarts = outages.map { ($0.lowerBound + $0.upperBound) / 2 } + outages.map { $0.upperBound + 30 }
        var simulation = try await OutageSimulation(
            outages: outages, restarts: restarts.sorted(), files: files, arrivals: arrivals, seed: seed)
        defer { simulation.close() }
        try await simulation.run(until: 20 * Self.day)
        let (states, attempts) = try await simulation.result()
        #expect(arrivals.count > 400)
        #expect(states == [.delivered: files + arrivals.count])
        #expect(attempts == [1])
        #expect(simulation.deliveries.count == files + 2 * arrivals.count)
        #expect(simulation.deliveries.values.allSatisfy { $0 == 1 })
        // The one that is there has each of its files at once, whatever the other does.
        #expect(simulation.waits.count == arrivals.count)
        #expect(simulation.waits.allSatisfy { $0 <= .seconds(60) }, "\(String(describing: simulation.waits.max()))")
        #expect(simulation.failures > 0)
        #expect(simulation.probes.most == 1)
        // One a minute in the day and in the week, and not much more.
        let minutes = outages.reduce(0) { $0 + $1.count } / 60
        #expect(simulation.probes.count > minutes - 100 && simulation.probes.count <= minutes + 100)
        // All that it hears of us: its eight connections fail once, then a try and a probe, then a probe a minute.
        #expect(simulation.contacts.most <= 10)
        #expect(simulation.contacts.count <= minutes + 10 * (outages.count + restarts.count))
    }
}
