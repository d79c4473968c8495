import InletCore
import InletLinux
import InletTestSupport
import Testing

@testable import InletAgent

@Suite struct WakeSignalTests {
    @Test func `what is raised while nobody waits is kept, once`() async {
        let signal = WakeSignal()
        signal.raise()
        signal.raise()
        await signal.wait(until: nil)
        let start = ContinuousClock.now
        await signal.wait(until: start.advanced(by: .milliseconds(30)))
        #expect(start.duration(to: .now) >= .milliseconds(30))
    }

    @Test func `a signal of several loops is kept for each`() async {
        let signal = WakeSignal(loops: 3)
        signal.raiseAll()
        for _ in 0..<3 { await signal.wait(until: nil) }
        let start = ContinuousClock.now
        await signal.wait(until: start.advanced(by: .milliseconds(30)))
        #expect(start.duration(to: .now) >= .milliseconds(30))
    }

    @Test func `raised once it wakes one of those that wait`() async throws {
        let signal = WakeSignal(loops: 2)
        let woken = Count()
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask {
                    await signal.wait(until: nil)
                    woken.add()
                }
            }
            signal.raise()
            try await eventually("one is awake") { woken.value == 1 }
            signal.raise()
            try await group.waitForAll()
        }
        #expect(woken.value == 2)
    }

    @Test func `a cancelled task does not wait, and takes nothing from others`() async {
        let signal = WakeSignal(loops: 2)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await signal.wait(until: nil) }
            group.cancelAll()
        }
        signal.raise()
        await signal.wait(until: nil)
    }

    @Test func `a deadline in the past returns at once`() async {
        await WakeSignal().wait(until: .now.advanced(by: .seconds(-1)))
    }

    @Test func `whoever is raised goes on even where the system gives it no thread`() async {
        let (signal, woken) = (WakeSignal(loops: 2), Count())
        await withTaskGroup(of: Void.self) { group in
            for _ in 0..<2 {
                group.addTask(executorPreference: ImmediateExecutor.shared) {
                    await signal.wait(until: nil)
                    woken.add()
                }
            }
            signal.raiseAll()
            #expect(woken.value == 2)
        }
    }

    @Test func `a wait that was ended keeps nothing until its deadline`() async {
        let signal = WakeSignal()
        for _ in 0..<1000 {
            signal.raise()
            await signal.wait(until: .now.advanced(by: .seconds(3600)))
        }
        for _ in 0..<1000 {
            await withTaskGroup(of: Void.self) { group in
                group.addTask { await signal.wait(until: .now.advanced(by: .seconds(3600))) }
                signal.raise()
                await group.waitForAll()
            }
        }
        // Other tests' loops wait, too.
        #expect(TimerThread.shared.count < 1000)
    }

    @Test(arguments: [1, 7, 42] as [UInt64])
    func `work that is announced is never slept through`(_ seed: UInt64) async throws {
        let signal = WakeSignal(loops: 8)
        let waiting = Count()
        let done = Count()
        let total = 4000
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<8 {
                group.addTask {
                    var random = SeededGenerator(seed: seed &+ UInt64(number))
                    while done.value < total {
                        if waiting.take() {
                            if done.add() == total { signal.raiseAll() }
                        } else if Int.random(in: 0..<8, using: &random) == 0 {
                            await signal.wait(until: .now.advanced(by: .seconds(60)))
                        } else {
                            await signal.wait(until: nil)
                        }
                    }
                    // Passed on, so that every loop sees the end.
                    signal.raise()
                }
            }
            group.addTask {
                var random = SeededGenerator(seed: seed)
                for _ in 0..<total {
                    waiting.add()
                    signal.raise()
                    if Int.random(in: 0..<4, using: &random) == 0 { await Task.yield() }
                }
            }
        }
        #expect(done.value == total)
    }

    @Test func `a stop flag is seen by who waits, and by who comes later`() async {
        let flag = StopFlag()
        #expect(!flag.isSet)
        await withTaskGroup(of: Void.self) { group in
            group.addTask { await flag.wait() }
            flag.set()
        }
        #expect(flag.isSet)
        await flag.wait()
    }
}
