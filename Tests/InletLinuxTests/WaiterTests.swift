import InletLinux
import InletTestSupport
import Synchronization
import Testing

/// Waiting for one's turn, and for being told something.
@Suite(.timeLimit(.minutes(15))) struct WaiterTests {
    @Test func `a wait ends once, with what came first`() async {
        let waiter = Waiter<Int>()
        #expect(waiter.resume(with: 1) && !waiter.resume(with: 2))
        #expect(await waiter.wait() == 1)
        let later = Waiter<Int>()
        async let told = later.wait()
        #expect(later.resume(with: 3) && !later.resume(with: 4))
        #expect(await told == 3)
    }

    @Test func `who is cancelled is told nothing, and what was for it is left for another`() async {
        let waiter = Waiter<Int>()
        await withTaskGroup(of: Int?.self) { group in
            group.addTask { await waiter.wait() }
            group.cancelAll()
            #expect(await group.next() == .some(nil))
        }
        var isMade = false
        #expect(
            !waiter.resume(
                with: {
                    isMade = true; return 1
                }()) && !isMade)
    }

    @Test func `who is taken goes on when that is called, and no sooner`() async {
        let (waiter, line) = (Waiter<Int>(), Line())
        await withTaskGroup(of: Void.self) { group in
            group.addTask(executorPreference: ImmediateExecutor.shared) {
                let told = await waiter.wait()
                line.seen.withLock { $0.append(told ?? 0) }
            }
            let goOn = waiter.take(1)
            #expect(line.seen.withLock { $0 }.isEmpty)
            #expect(waiter.take(2) == nil && !waiter.resume(with: 3))
            goOn?()
            #expect(line.seen.withLock { $0 } == [1])
        }
    }

    // MARK: - Turns

    private final class Line: Sendable {
        let seen = Mutex<[Int]>([])
        let isOpen = Mutex(false)
    }

    @Test func `one at a time works on a name, in order, and others on theirs`() async throws {
        let turns = KeyedMutex()
        let line = Line()
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask {
                await turns.holding("a") {
                    #expect((try? await eventually("the others are there") { line.isOpen.withLock { $0 } }) != nil)
                    line.seen.withLock { $0.append(1) }
                }
            }
            try await eventually("the first works") { turns.isTaken("a") }
            for number in 2...4 {
                group.addTask { await turns.holding("a") { line.seen.withLock { $0.append(number) } } }
                try await eventually("\(number) waits") { turns.waiting(for: "a") == number - 1 }
            }
            await turns.holding("b") { line.seen.withLock { $0.append(0) } }
            line.isOpen.withLock { $0 = true }
            try await group.waitForAll()
        }
        #expect(line.seen.withLock { $0 } == [0, 1, 2, 3, 4])
        #expect(!turns.isTaken("a") && !turns.isTaken("b"))
    }

    @Test func `who is cancelled leaves the line`() async {
        let turns = KeyedMutex()
        await turns.holding("a") {
            await withTaskGroup(of: Bool.self) { group in
                group.addTask { await turns.holding("a") {} == nil }
                #expect((try? await eventually("it waits") { turns.waiting(for: "a") == 1 }) != nil)
                group.cancelAll()
                #expect(await group.next() == true)
            }
            #expect(turns.waiting(for: "a") == 0)
        }
        await turns.holding("b") {}
        #expect(await turns.holding("a") { true } == true)
    }

    @Test func `the next one has its turn even where the system gives it no thread`() async {
        let turns = KeyedMutex()
        await withTaskGroup(of: Bool.self) { group in
            await turns.holding("a") {
                for _ in 0..<2 {
                    group.addTask(executorPreference: ImmediateExecutor.shared) {
                        await turns.holding("a") { turns.isTaken("a") } == true
                    }
                }
                #expect(turns.waiting(for: "a") == 2)
            }
            for await isTaken in group { #expect(isTaken) }
        }
        #expect(!turns.isTaken("a"))
    }
}
