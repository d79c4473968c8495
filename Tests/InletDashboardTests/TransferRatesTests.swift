import Testing

@testable import InletDashboard

/// Bytes per second from what an agent says of its transfers.
@Suite struct TransferRatesTests {
    private func isNear(_ value: Double?, _ other: Double) -> Bool { value.map { abs($0 - other) < 0.5 } ?? false }

    @Test func `one look says nothing, two say how fast it goes`() throws {
        var rates = TransferRates()
        let transfer = SampleStatus.transfer(sent: 100)
        rates.look([transfer], delivered: 0, files: 0, at: 0)
        #expect(rates.total == nil && rates.rate(of: transfer) == nil)
        rates.look([SampleStatus.transfer(sent: 300)], delivered: 0, files: 0, at: 2)
        #expect(isNear(rates.total, 100) && isNear(rates.rate(of: transfer), 100))
        // Too close to the look before: nothing is learned.
        rates.look([SampleStatus.transfer(sent: 900)], delivered: 0, files: 0, at: 2.01)
        #expect(isNear(rates.total, 100))
    }

    @Test func `what a transfer had sent before it was seen is not counted, nor what an attempt loses`() {
        var rates = TransferRates()
        rates.look([], delivered: 0, files: 0, at: 0)
        rates.look([SampleStatus.transfer(sent: 1 << 40, of: 1 << 41)], delivered: 0, files: 0, at: 1)
        #expect(rates.total == 0)
        rates.look([SampleStatus.transfer(sent: 0, of: 1 << 41)], delivered: 0, files: 0, at: 2)
        #expect(rates.total == 0)
    }

    @Test func `files that came and went between two looks are counted, and no byte twice`() {
        var rates = TransferRates()
        rates.look([SampleStatus.transfer(sent: 400)], delivered: 5000, files: 5, at: 0)
        // That one has arrived (600 were left), and so have two of 100 that were never seen.
        rates.look([], delivered: 6200, files: 8, at: 1)
        #expect(isNear(rates.total, 800) && isNear(rates.files, 3))
    }

    @Test func `a change shows little by little`() {
        var rates = TransferRates()
        var sent: Int64 = 0
        for second in 0...10 {
            rates.look([SampleStatus.transfer(sent: sent, of: 1 << 30)], delivered: 0, files: 0, at: Double(second))
            sent += 1000
        }
        #expect(isNear(rates.total, 1000))
        rates.look([SampleStatus.transfer(sent: sent - 1000, of: 1 << 30)], delivered: 0, files: 0, at: 11)
        let afterPause = rates.total ?? 0
        #expect(afterPause > 700 && afterPause < 900)
        for second in 12...60 {
            rates.look(
                [SampleStatus.transfer(sent: sent - 1000, of: 1 << 30)], delivered: 0, files: 0, at: Double(second))
        }
        #expect(isNear(rates.total, 0))
    }

    @Test(arguments: [
        (Int64(1000), Double?.some(100), Duration?.some(.seconds(10))), (1001, 100, .seconds(11)), (0, 100, .zero),
        (-5, 100, .zero), (1000, nil, nil), (1000, 0, nil), (Int64.max, 1, nil),
    ])
    func `the time left is whole seconds, or unknown`(_ bytes: Int64, _ rate: Double?, _ time: Duration?) {
        #expect(TransferRates.time(for: bytes, at: rate) == time)
    }
}
