import Foundation
import InletCore
import InletTestSupport
import Synchronization
import Testing

@testable import InletLinux

struct BlockingPoolTests {
    private func threads(named name: String) throws -> Int {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/self/task").count { task in
            (try? String(contentsOfFile: "/proc/self/task/\(task)/comm", encoding: .utf8)) == name + "\n"
        }
    }

    @Test func `errors keep their type and values come back`() async throws {
        struct Failed: Error, Equatable { let code: Int }
        let pool = BlockingPool(name: "values", threads: 2)
        #expect(await pool.run { 42 } == 42)
        do throws(Failed) {
            try await pool.run { () throws(Failed) in throw Failed(code: 7) }
            Issue.record("did not throw")
        } catch {
            #expect(error.code == 7)
        }
        pool.shutdown()
    }

    @Test func `N jobs block at the same time, on threads of the pool, and no more than N start`() async throws {
        let pool = BlockingPool(name: "inlet-four", threads: 4)
        #expect(try threads(named: "inlet-four") == 0, "threads start with the first work")
        let inside = Shared(0)
        let gate = DispatchSemaphore(value: 0)
        try await withThrowingTaskGroup(of: String.self) { group in
            for _ in 0..<12 {
                group.addTask {
                    await pool.run {
                        inside.state.withLock { $0 += 1 }
                        _ = gate.wait(timeout: .now() + 180)
                        return threadName()
                    }
                }
            }
            try await eventually("four are inside") { inside.state.withLock { $0 } == 4 }
            #expect(try threads(named: "inlet-four") == 4)
            for _ in 0..<12 { gate.signal() }
            for try await name in group { #expect(name == "inlet-four") }
        }
        #expect(inside.state.withLock { $0 } == 12)
        pool.shutdown()
        try await eventually("the threads end") { try threads(named: "inlet-four") == 0 }
    }

    @Test func `one thread takes jobs in the order they came`() async {
        let pool = BlockingPool(name: "order", threads: 1)
        let order = Shared<[Int]>([])
        await withTaskGroup(of: Void.self) { group in
            for number in 0..<2000 {
                group.addTask(executorPreference: pool) { order.state.withLock { $0.append(number) } }
            }
        }
        #expect(order.state.withLock { $0 } == Array(0..<2000))
        pool.shutdown()
    }

    @Test func `a loop that prefers the pool comes back to its thread after every await`() async {
        let pool = BlockingPool(name: "home", threads: 1)
        await withTaskExecutorPreference(pool) {
            for _ in 0..<100 {
                #expect(threadName() == "home")
                await Task.yield()
            }
        }
        #expect(threadName() != "home")
        pool.shutdown()
    }

    @Test func `shutdown from one of its own threads does not hang, and later work is still done`() async throws {
        let pool = BlockingPool(name: "inlet-last", threads: 2)
        await pool.run { pool.shutdown() }
        #expect(await pool.run { 1 } == 1)
        try await eventually("the threads end") { try threads(named: "inlet-last") == 0 }
    }

    @Test func `threads without work end, and begin anew with it`() async throws {
        let pool = BlockingPool(name: "inlet-rest", threads: 2, idle: .milliseconds(50))
        for _ in 0..<3 {
            #expect(await pool.run { threadName() } == "inlet-rest")
            try await eventually("the threads end") { try threads(named: "inlet-rest") == 0 }
        }
    }

    @Test func `what hangs behind one key holds up no other, and each has its own few threads`() async throws {
        let pool = BlockingPool(name: "inlet-branch", threads: 2)
        let gate = DispatchSemaphore(value: 0)
        try await withThrowingTaskGroup(of: Void.self) { group in
            for _ in 0..<6 {
                group.addTask { await pool.branch(1).run { _ = gate.wait(timeout: .now() + 180) } }
            }
            try await eventually("two hang") { try threads(named: "inlet-branch") == 2 }
            #expect(await pool.branch(2).run { 2 } == 2)
            #expect(await pool.run { 3 } == 3)
            for _ in 0..<6 { gate.signal() }
            try await group.waitForAll()
        }
        #expect(pool.branch(1) === pool.branch(1) && pool.branch(1) !== pool.branch(2))
        // Those that nobody has used for long are let go of.
        for key in 0..<100 { _ = pool.branch(UInt64(key)) }
        try await eventually("the first have ended") { try threads(named: "inlet-branch") <= 1 }
    }

    @Test func `a pool that nobody holds ends its threads`() async throws {
        for _ in 0..<20 { #expect(await BlockingPool(name: "inlet-gone", threads: 1).run { 1 } == 1) }
        try await eventually("the threads end") { try threads(named: "inlet-gone") == 0 }
    }
}

/// A value that several tasks change.
private final class Shared<Value: Sendable>: Sendable {
    let state: Mutex<Value>

    init(_ value: Value) { state = Mutex(value) }
}

/// The kernel's name of the calling thread.
private func threadName() -> String {
    let name = try? String(contentsOfFile: "/proc/thread-self/comm", encoding: .utf8)
    return name?.trimmingCharacters(in: .newlines) ?? ""
}

@Suite struct AlarmClockTests {
    @Test func `alarms ring at their times, in the order of these, and not when they are taken back`() async throws {
        let rung = Rung()
        // All are set before the first is due.
        let start = ContinuousClock.now.advanced(by: .seconds(1))
        let clock = TimerThread.shared
        for number in [3, 1, 2, 9, 0] {
            let alarm = try #require(
                clock.set(start.advanced(by: .milliseconds(20 * number))) { rung.add(number, at: .now) })
            if number == 9 { clock.remove(alarm) }
        }
        try await eventually("all have rung") { rung.numbers.count == 4 }
        #expect(rung.numbers == [0, 1, 2, 3])
        for (number, time) in rung.all { #expect(start.duration(to: time) >= .milliseconds(20 * number)) }
    }

    @Test func `one that is set while a later one waits is not kept waiting`() async throws {
        let rung = Rung()
        let later = try #require(TimerThread.shared.set(.now.advanced(by: .seconds(3600))) { rung.add(1, at: .now) })
        _ = TimerThread.shared.set(.now.advanced(by: .milliseconds(5))) { rung.add(2, at: .now) }
        _ = TimerThread.shared.set(.now.advanced(by: .seconds(-5))) { rung.add(3, at: .now) }
        try await eventually("both have rung") { rung.numbers.count == 2 }
        TimerThread.shared.remove(later)
        #expect(Set(rung.numbers) == [2, 3])
    }

    /// Which alarms have rung, and when.
    private final class Rung: Sendable {
        private let state = Mutex<[(Int, ContinuousClock.Instant)]>([])

        var all: [(Int, ContinuousClock.Instant)] { state.withLock { $0 } }
        var numbers: [Int] { all.map(\.0) }

        func add(_ number: Int, at time: ContinuousClock.Instant) { state.withLock { $0.append((number, time)) } }
    }
}
