import InletCore
import Testing

struct WorkerReliefTests {
    private static let start = ContinuousClock.now

    private func at(_ seconds: Int) -> ContinuousClock.Instant { Self.start.advanced(by: .seconds(seconds)) }

    /// At second 40 with 4 workers: each that is at work, with the second in which its last byte went.
    @Test(
        arguments: [
            ([], 0), ([0, 0, 0], 0), ([0, 0, 0, 0], 4), ([35, 35, 35, 35], 0), ([35, 0, 35, 35], 1),
            ([10, 11, 9, 35], 2),
        ] as [([Int], Int)])
    func `there are as many stand-ins as workers that hang, when none is free`(lastBytes: [Int], standIns: Int) {
        var relief = WorkerRelief(workers: 4, patience: .seconds(30))
        for number in lastBytes.indices { relief.begin(Int64(number), byStandIn: false, at: at(0)) }
        for (number, second) in lastBytes.enumerated().sorted(by: { $0.element < $1.element }) where second > 0 {
            relief.note([Int64(number): 7], at: at(second))
        }
        #expect(relief.isFull == (lastBytes.count == 4))
        #expect(relief.standIns(at: at(40)) == standIns)
        #expect((relief.nextLook(at: at(40)) == nil) == (lastBytes.count < 4))
    }

    @Test func `stand-ins that hang are stood in for, to a bound`() {
        var relief = WorkerRelief(workers: 1, patience: .seconds(30))
        relief.begin(0, byStandIn: false, at: at(0))
        for number in 1...100 {
            #expect(relief.standIns(at: at(number * 30)) == min(number, WorkerRelief.most))
            relief.begin(Int64(number), byStandIn: true, at: at(number * 30))
        }
        relief.end(0)
        #expect(!relief.isFull && relief.standIns(at: at(9000)) == 0 && relief.nextLook(at: at(9000)) == nil)
    }

    @Test func `it is looked when the next may hang, and not at once again`() {
        var relief = WorkerRelief(workers: 2, patience: .seconds(30))
        relief.begin(0, byStandIn: false, at: at(0))
        relief.begin(1, byStandIn: false, at: at(10))
        #expect(relief.nextLook(at: at(10)) == at(30))
        #expect(relief.nextLook(at: at(30)) == at(40))
        #expect(relief.nextLook(at: at(50)) == at(80))
        // One that goes on is no longer stood in for.
        #expect(relief.standIns(at: at(50)) == 2)
        relief.note([0: 1, 1: 0], at: at(50))
        #expect(relief.standIns(at: at(50)) == 1)
    }
}
