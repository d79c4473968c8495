import InletTestSupport
import Testing

@testable import InletAgent

/// What is done every so often.
@Suite struct SchedulerTests {
    private struct Job: ScheduledJob {
        let begun = Count()
        let done = Count()
        /// Of one that never ends by itself.
        var cancelled: Count?

        func begin() -> Duration {
            begun.add()
            return .zero
        }

        func perform() async -> Duration {
            done.add()
            guard let cancelled else { return .milliseconds(1) }
            await StopFlag().wait()
            cancelled.add()
            return .zero
        }
    }

    @Test func `a job begins once, and is done again and again until the end`() async throws {
        let job = Job()
        try await whileRunning([Scheduler([.ping: job, .backup: nil])]) {
            try await eventually("it is done three times") { job.done.value >= 3 }
        }
        #expect(job.begun.value == 1)
    }

    @Test func `a job that takes another's place ends what that is at, and no other job's`() async throws {
        let (other, old, new) = (Job(cancelled: Count()), Job(cancelled: Count()), Job())
        let scheduler = Scheduler([.history: other, .ping: old])
        try await whileRunning([scheduler]) {
            try await eventually("both are at work") { old.done.value == 1 && other.done.value == 1 }
            scheduler.replace(.ping, by: new)
            try await eventually("the new one is done") { new.done.value >= 2 }
            #expect(old.cancelled?.value == 1 && other.cancelled?.value == 0)
            scheduler.replace(.ping, by: nil)
            scheduler.replace(.history, by: new)
            try await eventually("the new one has begun in the other's place") { new.begun.value == 2 }
            #expect(other.cancelled?.value == 1)
        }
        #expect(old.begun.value == 1 && other.begun.value == 1)
    }
}
