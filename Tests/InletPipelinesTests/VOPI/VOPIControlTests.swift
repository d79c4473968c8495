import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// What a person sees of a delivery, and what it takes to end one.
@Suite(.timeLimit(.minutes(8))) struct VOPIControlTests {
    @Test(arguments: [VOPIOperation.upload, .job, .download])
    func `cancelling ends any step at once, and its job is cancelled after it`(_ operation: VOPIOperation) async throws
    {
        try await withVOPI(VOPIRules(pace: operation == .download ? .polls(steps: 7) : .manual)) { place in
            // Never released.
            place.misbehave(.stall, at: operation, times: nil)
            let (path, order) = try place.file(1_000_000)
            let notes = Notes()
            let ended = Switch()
            let task = Task {
                defer { ended.turnOn() }
                return try await place.attempt(path, order, notes.attempt())
            }
            try await eventually("the step is under way") { place.count(operation) > 0 }
            task.cancel()
            // Far below what would end it otherwise: 30 s for a look, no byte moving for a minute elsewhere.
            try await eventually("it ends") { ended.isOn }
            guard case .failure(let error) = try await task.value else {
                Issue.record("was not cancelled")
                return
            }
            #expect(error.verdict == .cancelled)
            for _ in 1...2 { try await place.pipeline.abandon(order, checkpoint: notes.entries) }
            let tally = place.sandbox.tally
            #expect(tally.jobs == (operation == .upload ? 0 : 1))
            // What has ended is paid for, and only what broken downloads left goes.
            #expect(tally.cancels == (operation == .job ? 1 : 0))
            if operation == .job { #expect(place.sandbox.jobs().map(\.status) == ["cancelled"]) }
            if operation == .download {
                #expect(try place.files(of: try #require(place.sandbox.jobs().first).id).isEmpty)
            }
        }
    }

    @Test func `an upload that stands still is named, and its place is kept for the next attempt`() async throws {
        try await withVOPI(settings: ["no_progress": .duration(.seconds(1))]) { place in
            // As often as a body is sent in one attempt.
            place.misbehave(.stall, at: .upload, times: 5)
            let (path, order) = try place.file(100_000, "turntable.mp4")
            let notes = Notes()
            let error = try await place.failure(path, order, notes)
            #expect(error?.code == .stalled)
            #expect(error?.verdict == .outage(after: nil))
            #expect(error?.reason.contains("turntable.mp4") == true && error?.reason.contains("no byte moved") == true)
            #expect(notes.entries["upload"] != nil && notes.entries["sent"] == nil)
            _ = try await place.deliver(path, order, notes)
            let tally = place.sandbox.tally
            #expect((tally.presigns, tally.puts, tally.jobs) == (1, 1, 1))
        }
    }

    /// Runs an attempt, and adds what can be seen of its progress.
    private func watched(
        _ place: VOPIPlace, _ path: FilePath, _ order: DeliveryOrder, _ notes: Notes, _ seen: Listing<StepProgress>
    ) async throws -> DeliveryOutcome {
        let attempt = notes.attempt()
        // As the agent does between two looks.
        if let last = seen.all.last { attempt.report(last) }
        let ended = Switch()
        let task = Task {
            defer { ended.turnOn() }
            return try await place.attempt(path, order, attempt).get()
        }
        try await eventually("the attempt ends", within: .seconds(60)) {
            if let step = attempt.progress { seen.add(step) }
            return ended.isOn
        }
        if let step = attempt.progress { seen.add(step) }
        return try await task.value
    }

    @Test func `progress is 0 to 70 while it sends, to 95 while it is processed, to 100 while it fetches`() async throws
    {
        try await withVOPI(VOPIRules(pace: .manual, progress: .full, frames: 12)) { place in
            let (path, order) = try place.file(24_000_000)
            place.misbehave(.slowRead(bytesPerSecond: 8_000_000), at: .upload)
            place.misbehave(.delay(.milliseconds(50)), at: .download, times: nil)
            let (notes, seen) = (Notes(), Listing<StepProgress>())
            var outcome = try await watched(place, path, order, notes, seen)
            for _ in 1...40 {
                guard case .waiting(let until, _) = outcome else { break }
                place.clock.advance(to: until)
                place.sandbox.advance(steps: 1)
                outcome = try await watched(place, path, order, notes, seen)
            }
            guard case .delivered = outcome else {
                Issue.record("not delivered")
                return
            }
            let percents = seen.all.map(\.percent)
            #expect(percents == percents.sorted())
            let sending = seen.all.filter { $0.step == "uploading" }.map(\.percent)
            #expect(sending.contains { $0 > 0 } && sending.allSatisfy { (0...70).contains($0) })
            let processing = seen.all.filter { $0.step.hasPrefix("processing: ") }
            #expect(processing.allSatisfy { (70...95).contains($0.percent) })
            #expect(processing.contains { $0.step.contains("scoring") && $0.percent > 70 })
            #expect(Set(processing.map(\.step)).count >= 4)
            let fetching = seen.all.filter { $0.step.hasPrefix("fetch") }
            #expect(fetching.allSatisfy { (95...100).contains($0.percent) })
            #expect(fetching.contains { $0.step.hasPrefix("fetched ") && $0.percent > 95 && $0.percent < 100 })
            #expect(seen.all.last == StepProgress(percent: 100, step: "fetched"))
        }
    }
}
