import InletCore
import InletTestSupport
import InletTransfer
import Testing

@testable import InletPipelines

/// The chain without a server: what comes next, and what a look at the job comes to.
struct VOPIChainTests {
    private static let start = WallTime(milliseconds: 1_700_000_000_000)
    private static let limits = VOPIChain.Limits(poll: .seconds(3), soft: .seconds(3600), hard: .seconds(21_600))
    private static let upload = VOPIRecord.Upload(
        url: "https://store.example/up?sig=1", publicURL: "https://store.example/up",
        expires: start.milliseconds + 3_600_000, contentType: "video/mp4")

    private func chain(_ change: (inout VOPIRecord) -> Void = { _ in }) -> VOPIChain {
        var record = VOPIRecord()
        change(&record)
        return VOPIChain(record: record, limits: Self.limits)
    }

    private func job(_ json: String) throws -> VOPIJob {
        let value = try #require(VOPIValue(Array(json.utf8)))
        return try #require(VOPIJob(value))
    }

    /// Looks at the job every few minutes. - Returns: what the last look came to.
    private func watched(
        _ chain: inout VOPIChain, _ job: VOPIJob, until end: WallTime
    ) throws -> VOPIChain.Verdict {
        var now = Self.start
        while now < end {
            _ = chain.polled(job, now: now)
            now = min(now + .seconds(240), end)
        }
        return chain.polled(job, now: end)
    }

    private func does(not what: String, sourceLocation: SourceLocation = #_sourceLocation) {
        Issue.record("does not \(what)", sourceLocation: sourceLocation)
    }

    private func running() -> VOPIChain {
        chain {
            $0.upload = Self.upload
            $0.sent = VOPIRecord.Sent(md5: "00", etag: nil, isProved: false)
            $0.job = VOPIRecord.Job(id: "j", since: Self.start.milliseconds, isAdopted: false)
        }
    }

    @Test func `each step follows from what is noted`() {
        let now = Self.start
        #expect(chain().next(size: 1, now: now) == .presign)
        var step = chain { $0.upload = Self.upload }
        #expect(step.next(size: 1, now: now) == .put(Self.upload))
        #expect(step.next(size: 1, now: now + .seconds(3580)) == .presign)
        // 5 GiB need more than the hour that is left.
        #expect(step.next(size: 5 << 30, now: now) == .presign)
        step.record.sent = VOPIRecord.Sent(md5: "00", etag: nil, isProved: true)
        #expect(step.next(size: 1, now: now + .seconds(9999)) == .create(Self.upload))
        step.creates(now: now)
        #expect(step.record.mayBeVisible)
        let until = now + .seconds(30)
        guard case .wait(until, _) = step.next(size: 1, now: now) else { return does(not: "wait") }
        #expect(step.next(size: 1, now: until) == .look(Self.upload))
        step.created("j", now: now)
        #expect(
            step.next(size: 1, now: now) == .poll(VOPIRecord.Job(id: "j", since: now.milliseconds, isAdopted: false)))
        step.record.job?.isFetching = true
        guard case .fetch = step.next(size: 1, now: now) else { return does(not: "fetch") }
    }

    @Test func `a record reads as it was written, and what is damaged reads as less`() {
        var step = running()
        step.record.trouble = VOPIRecord.FailureState(failures: [1, 2], since: 3, missing: 1, cancelledAt: 4)
        step.record.results = VOPIManifest(
            entries: [VOPIManifest.Entry(path: "frames/a.png", object: "https://x/a", frame: "a")], expected: 1)
        (step.record.dead, step.record.restarts, step.record.asked) = (["k"], 1, 2)
        step.record.surplus = ["s"]
        step.record.job?.seen = 5
        step.record.mayBeVisible = true
        #expect(VOPIRecord(step.record.entries) == step.record)
        #expect(VOPIRecord([:]) == VOPIRecord())
        for name in step.record.entries.keys {
            var entries = step.record.entries
            entries[name] = Array("{".utf8)
            #expect(VOPIRecord(entries) != VOPIRecord() || name == "upload")
        }
    }

    @Test func `looking finds the oldest that is not dead, and gives up after two looks`() throws {
        let now = Self.start
        var step = chain { $0.upload = Self.upload }
        step.record.dead = ["gone"]
        step.creates(now: now)
        let url = Self.upload.publicURL
        func listed(_ id: String, _ minute: Int, _ status: String = "pending", _ video: String = url) throws -> VOPIJob
        {
            try job(
                #"{"id":"\#(id)","status":"\#(status)","videoUrl":"\#(video)","createdAt":"2023-11-14T22:1\#(minute):00.000Z"}"#
            )
        }
        step.found([try listed("other", 1, "pending", "https://store.example/upp")], now: now)
        #expect(step.record.job == nil && step.record.surplus == [])
        #expect(step.next(size: 1, now: now + .seconds(30)) == .look(Self.upload))
        var missed = step
        missed.found([], now: now + .seconds(30))
        #expect(missed.record.creating == nil)
        let jobs = [
            try listed("gone", 0), try listed("late", 4), try listed("first", 2), try listed("runs", 3, "scoring"),
            try listed("ended", 1, "cancelled"),
        ]
        step.found(jobs, now: now)
        #expect(step.record.surplus == ["late"])
        #expect(step.record.job == VOPIRecord.Job(id: "first", since: now.milliseconds, isAdopted: true))
        // What was noted is enough to go on with, and no other look could adopt what was cancelled.
        #expect(VOPIRecord(step.record.entries) == step.record)
        step.dropped("late")
        #expect(step.record.surplus == [] && step.record.dead == ["gone", "late"])
    }

    @Test func `a job is judged by its status, its age and its history`() throws {
        let now = Self.start
        let hours = { (count: Double) in now + .milliseconds(Int64(count * 3_600_000)) }
        var step = running()
        let pending = try job(#"{"id":"j","status":"pending","progress":{},"result":{},"error":"","updatedAt":""}"#)
        guard case .wait(_, nil) = step.polled(pending, now: now) else { return does(not: "wait") }
        let verdict4 = try watched(&step, pending, until: hours(5.9))
        #expect(verdict4 != .stuck)
        let verdict5 = step.polled(pending, now: hours(6))
        #expect(verdict5 == .stuck)
        step.isQueued(now: hours(6))
        let verdict6 = step.polled(pending, now: hours(6))
        #expect(verdict6 != .stuck)
        step.record.job?.isAdopted = true
        let verdict7 = step.polled(pending, now: hours(6))
        #expect(verdict7 == .stuck)
        let told = try job(#"{"id":"j","status":"generating","progress":{"step":"generating","percentage":81}}"#)
        step = running()
        let verdict8 = step.polled(told, now: now)
        #expect(verdict8 == .wait(saying: "processing: generating, 81 %", percent: 81))
        let strange = try job(#"{"id":"j","status":"dancing"}"#)
        guard case .wait = step.polled(strange, now: now) else { return does(not: "wait") }
        let done = try job(#"{"id":"j","status":"completed","error":"old","result":{}}"#)
        let verdict9 = step.polled(done, now: now)
        #expect(verdict9 == .fetch)
        #expect(step.record.job?.isFetching == true)
        let overwritten = try job(
            #"{"id":"j","status":"failed","error":"late","result":{"finalFrames":["https://x/a.png"]}}"#)
        step = running()
        let verdict10 = step.polled(overwritten, now: now)
        #expect(verdict10 == .fetch)
    }

    @Test func `time in which nobody could look counts for no limit`() throws {
        let pending = try job(#"{"id":"j","status":"pending"}"#)
        let week = Duration.seconds(7 * 86_400)
        var step = running()
        let before = try watched(&step, pending, until: Self.start + .seconds(3000))
        #expect(before != .stuck)
        // What was noted survives the process.
        step.record = VOPIRecord(step.record.entries)
        let back = Self.start + .seconds(3000) + week
        let after = step.polled(pending, now: back)
        #expect(after != .stuck)
        let age = back.milliseconds - (step.record.job?.since ?? 0)
        #expect((2_700_000...4_200_000).contains(age), "\(age)")
        // A `failed` job is not judged by a week in which it may have been tried again.
        let failed = try job(#"{"id":"j","status":"failed","error":"bad","updatedAt":"2023-11-14T22:13:01.000Z"}"#)
        step = running()
        let first = step.polled(failed, now: Self.start)
        let second = step.polled(failed, now: Self.start + week)
        for verdict in [first, second] {
            guard case .wait = verdict else { return does(not: "wait") }
        }
        // A clock that was set back makes nothing older.
        step = running()
        _ = step.polled(pending, now: Self.start + .seconds(500))
        _ = step.polled(pending, now: Self.start + .seconds(-7 * 86_400))
        let set = step.polled(pending, now: Self.start)
        #expect(set != .stuck)
    }

    @Test func `a failure counts when it comes three times, or stays`() throws {
        let now = Self.start
        func failed(_ second: Int) throws -> VOPIJob {
            try job(#"{"id":"j","status":"failed","error":"bad","updatedAt":"2023-11-14T22:13:0\#(second).000Z"}"#)
        }
        var step = running()
        for second in [1, 1, 2, 2, 2] {
            guard case .wait = step.polled(try failed(second), now: now) else { return does(not: "wait") }
        }
        var waited = step
        guard case .failed = step.polled(try failed(3), now: now) else { return does(not: "fail") }
        #expect(step.record.job == nil && step.record.sent != nil && step.record.dead == ["j"])
        for second in [500, 1000, 1500, 1799] {
            guard case .wait = waited.polled(try failed(2), now: now + .seconds(second)) else {
                return does(not: "wait")
            }
        }
        guard case .failed = waited.polled(try failed(2), now: now + .seconds(1800)) else { return does(not: "fail") }
    }

    @Test func `looks come every 3 s at first and every 30 s in the end, never before their time`() {
        var generator = SeededGenerator(seed: 9)
        let step = running()
        for _ in 1...2000 {
            let age = Int64.random(in: 0...100_000_000, using: &generator)
            let now = Self.start + .milliseconds(age)
            let wait = step.pause(since: Self.start.milliseconds, now: now, using: &generator) - now
            let least = min(max(Duration.seconds(3), .milliseconds(age / 20)), Duration.seconds(30))
            #expect(wait >= least && wait <= least + .milliseconds(least.milliseconds / 5))
        }
    }

    @Test func `URLs live long enough for the slowest uplink, within the server's bounds`() {
        #expect(VOPIChain.life(size: 0) == .seconds(3600))
        #expect(VOPIChain.life(size: 5 << 30) == .seconds(81_920))
        #expect(VOPIChain.life(size: 50 << 30) == .seconds(86_400))
    }
}

/// Notes outlive the build that wrote them: a video in the middle of its chain goes on there, and is not paid twice.
struct VOPINotesTests {
    private static let now = WallTime(milliseconds: 1_700_000_100_000)
    private static let limits = VOPIChain.Limits(poll: .seconds(3), soft: .seconds(3600), hard: .seconds(21_600))

    /// As the first build with this destination wrote them, one step of the chain after the other.
    private static let upload =
        #"{"contentType":"video/mp4","expires":1700003600000,"publicURL":"https://s.example/up","url":"https://s.example/up?sig=1"}"#
    private static let spent =
        #"{"contentType":"video/mp4","expires":1700003600000,"publicURL":"https://s.example/up","url":""}"#
    private static let sent =
        #"{"etag":"900150983cd24fb0d6963f7d28e17f72","isProved":true,"md5":"900150983cd24fb0d6963f7d28e17f72"}"#
    private static let steps: [(notes: [String: String], step: String)] = [
        ([:], "presign"),
        (["upload": upload], "put"),
        (["upload": spent, "sent": sent], "create"),
        (["upload": spent, "sent": sent, "asked": "1", "completing": "", "creating": creating], "look"),
        (["upload": spent, "sent": sent, "completing": "", "job": running], "poll"),
        (["upload": spent, "sent": sent, "job": adopted, "trouble": trouble, "dead": #"["k"]"#], "poll"),
        (["upload": spent, "sent": sent, "job": ended, "results": results, "restarts": "1"], "fetch"),
    ]
    private static let creating = #"{"lookAt":1700000030000,"looks":1,"sentAt":1700000000000}"#
    private static let running = #"{"id":"j","isAdopted":false,"isFetching":false,"since":1700000000000}"#
    private static let adopted = #"{"id":"j","isAdopted":true,"isFetching":false,"since":1700000000000}"#
    private static let ended =
        #"{"fetchingSince":1700000050000,"id":"j","isAdopted":false,"isFetching":true,"since":1700000000000,"stuckSince":1700000060000}"#
    private static let trouble = #"{"cancelledAt":4,"failures":[1,2],"missing":1,"since":3}"#
    private static let results =
        #"{"entries":[{"object":"https://s.example/a.png","path":"images/hero/white.png","variant":"hero","version":"white"},{"frame":"f1","object":"https://s.example/f.png","path":"frames/f1.png"}],"expected":2}"#

    private func chain(_ notes: [String: String]) -> VOPIChain {
        VOPIChain(record: VOPIRecord(notes.mapValues { Array($0.utf8) }), limits: Self.limits)
    }

    private func step(_ notes: [String: String]) -> String {
        switch chain(notes).next(size: 1, now: Self.now) {
        case .presign: "presign"
        case .put: "put"
        case .create: "create"
        case .look: "look"
        case .poll: "poll"
        case .fetch: "fetch"
        case .wait: "wait"
        }
    }

    @Test func `notes of an earlier build lead on from the step they were in`() {
        for (notes, wanted) in Self.steps { #expect(step(notes) == wanted, "\(notes.keys.sorted())") }
        let record = chain(Self.steps[6].notes).record
        #expect(
            record.sent
                == VOPIRecord.Sent(
                    md5: "900150983cd24fb0d6963f7d28e17f72", etag: "900150983cd24fb0d6963f7d28e17f72", isProved: true))
        #expect(record.job?.fetchingSince == 1_700_000_050_000 && record.job?.stuckSince == 1_700_000_060_000)
        #expect(record.results?.entries.map(\.path) == ["images/hero/white.png", "frames/f1.png"])
        #expect(record.results?.expected == 2 && record.restarts == 1)
        let watched = chain(Self.steps[5].notes).record
        #expect(watched.trouble == VOPIRecord.FailureState(failures: [1, 2], since: 3, missing: 1, cancelledAt: 4))
        #expect(watched.dead == ["k"] && watched.job?.isAdopted == true)
        let asked = chain(Self.steps[3].notes).record
        #expect(asked.creating == VOPIRecord.Creating(sentAt: 1_700_000_000_000, lookAt: 1_700_000_030_000, looks: 1))
        #expect(asked.asked == 1)
    }

    @Test func `members that a note does not have yet, or that a later build added, change nothing`() {
        for (notes, wanted) in Self.steps {
            let later = notes.mapValues { $0.hasPrefix("{") ? #"{"added":{"later":[1]},"# + $0.dropFirst() : $0 }
            #expect(step(later) == wanted, "\(notes.keys.sorted())")
            #expect(chain(later).record == chain(notes).record)
        }
        #expect(step(["upload": #"{"publicURL":"https://s.example/up"}"#, "sent": "{}"]) == "create")
        #expect(step(["upload": Self.spent, "sent": Self.sent, "creating": "{}"]) == "look")
        #expect(step(["upload": Self.spent, "sent": Self.sent, "job": #"{"id":"j"}"#]) == "poll")
        #expect(step(["upload": Self.spent, "sent": Self.sent, "job": #"{"id":"j","isFetching":true}"#]) == "fetch")
        // One member that is something else than it should be takes no other with it.
        let odd = #"{"id":"j","since":"x","isFetching":true,"seen":[]}"#
        #expect(step(["upload": Self.spent, "sent": Self.sent, "job": odd]) == "fetch")
        let place = #"{"publicURL":"https://s.example/up","expires":"x"}"#
        #expect(step(["upload": place, "sent": #"{"md5":7}"#]) == "create")
        #expect(chain(["trouble": #"{"missing":2}"#]).record.trouble == VOPIRecord.FailureState(missing: 2))
        #expect(chain(["results": #"{"expected":3}"#]).record.results == VOPIManifest(expected: 3))
    }

    @Test func `a job whose note cannot be read is looked for, and not made a second time`() {
        for broken in ["", "{", "[]", #"{"id":7}"#] {
            #expect(step(["upload": Self.spent, "sent": Self.sent, "job": broken]) == "look", "\(broken)")
            #expect(step(["upload": Self.spent, "sent": Self.sent, "creating": broken]) == "look", "\(broken)")
        }
    }
}
