internal import ServiceLifecycle
internal import Synchronization

/// Something that is done every so often, whatever else happens. It handles its own errors.
protocol ScheduledJob: Sendable {
    /// Called once, before anything else. - Returns: how long nothing is to be done.
    mutating func begin() async -> Duration
    /// Does it. - Returns: how long nothing is to be done after it.
    mutating func perform() async -> Duration
}

/// Does what is to be done every so often. A reload replaces a job: what the old one is at is cancelled, and the new one begins.
final class Scheduler: Service {
    enum Slot: Hashable, Sendable, CaseIterable {
        case backup
        case history
        case ping
        case keepAlive
    }

    private let jobs: Mutex<[Slot: any ScheduledJob]>
    private let replaced = Dictionary(uniqueKeysWithValues: Slot.allCases.map { ($0, WakeSignal()) })

    init(_ jobs: [Slot: (any ScheduledJob)?]) { self.jobs = Mutex(jobs.compactMapValues(\.self)) }

    /// - Parameter job: nil where nothing is to be done.
    func replace(_ slot: Slot, by job: (any ScheduledJob)?) {
        jobs.withLock { $0[slot] = job }
        replaced[slot]?.raise()
    }

    func run() async throws {
        await cancelWhenGracefulShutdown {
            await withDiscardingTaskGroup { group in
                for slot in Slot.allCases { group.addTask { await self.serve(slot) } }
            }
        }
    }

    private func serve(_ slot: Slot) async {
        while !Task.isCancelled {
            let job = jobs.withLock { $0[slot] }
            await withDiscardingTaskGroup { group in
                if let job { group.addTask { await Self.serve(job) } }
                await replaced[slot]?.wait(until: nil)
                group.cancelAll()
            }
        }
    }

    private static func serve(_ job: any ScheduledJob) async {
        var job = job
        var pause = await job.begin()
        while !Task.isCancelled {
            // Ends early only when the job is replaced, or the agent stops.
            do { try await Task.sleep(for: pause) } catch { return }
            pause = await job.perform()
        }
    }
}
