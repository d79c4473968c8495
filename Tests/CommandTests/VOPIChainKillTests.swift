import Foundation
import InletCore
import InletJournal
import InletJournalSupport
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The built command is killed in each step of the way to a product's pictures, while that step is under way.
@Suite(.serialized, .timeLimit(.minutes(15))) struct VOPIChainKillTests {
    struct Step: Sendable, CustomTestStringConvertible {
        typealias Condition = @Sendable (Place, VOPISandbox) -> Bool

        enum Moment: Sendable {
            /// A request has met the fault, and the condition holds.
            case request(VOPIFault, at: VOPIOperation, Condition)
            /// The command kills itself there.
            case failpoint(String)
        }

        let testDescription: String
        let moment: Moment
        var size = 300_000
        /// Upload URLs that were given in the end: another where the first never came to be noted.
        var presigns = 1
        /// Times that the whole video arrived: twice where its arrival never came to be noted.
        var puts = 1
        /// Whether the server says with its links what there is of the product; otherwise it is asked once all pictures are
        /// there.
        var listsMetadata = true

        /// Killed while it waits for the answer to such a request.
        init(
            _ name: String, _ action: FaultAction, at operation: VOPIOperation, times: Int? = 1,
            when isUnderWay: @escaping Condition = { _, _ in true }
        ) {
            testDescription = name
            moment = .request(VOPIFault(action, at: operation, times: times), at: operation, isUnderWay)
        }

        init(_ name: String, dyingAt failpoint: String) {
            testDescription = name
            moment = .failpoint(failpoint)
        }

        func with(_ change: (inout Step) -> Void) -> Step {
            var step = self
            change(&step)
            return step
        }

        static let all: [Step] = [
            Step("the place is asked for", .withholdAnswer, at: .presign) { $1.tally.presigns == 1 }
                .with { $0.presigns = 2 },
            Step("the place is known, and not noted", dyingAt: "noting:1").with { $0.presigns = 2 },
            Step("a part of the video is there", .slowRead(bytesPerSecond: 1 << 20), at: .upload) {
                $1.traffic.bytesReceived > 1 << 16
            }.with { $0.size = 8 << 20 },
            Step("all of the video is there", .withholdAnswer, at: .upload) { $1.tally.puts == 1 }.with { $0.puts = 2 },
            Step("its arrival is known, and not noted", dyingAt: "noting:2").with { $0.puts = 2 },
            Step("it is noted that a job is asked for, and none is", dyingAt: "uploadCreated:3"),
            Step("the job is made, and nobody knows", .withholdAnswer, at: .createJob) { $1.jobs().count == 1 },
            Step("the job is known, and not noted", dyingAt: "noting:4"),
            Step("the job runs", .stall, at: .job),
            Step("the pictures are asked for", .stall, at: .downloadURLs),
            Step("pictures come", .truncateAnswer(afterBytes: 100), at: .download, times: nil) { place, sandbox in
                fetched(place, sandbox).contains { $0.key.hasSuffix(".inlet-part") && !$0.value.isEmpty }
            },
            Step("all pictures but one are there", .stall, at: .download) { place, sandbox in
                let pictures = sandbox.jobs().first.map { sandbox.pictures(of: $0.id).count } ?? 0
                return fetched(place, sandbox).keys.count { !$0.contains(".inlet-") } == pictures - 1
            },
            Step("all pictures are there, and no product.json", .stall, at: .metadata).with {
                $0.listsMetadata = false
            },
            Step("all is there, and the journal does not know", dyingAt: "afterComplete"),
        ]

        /// What is there of the one job.
        private static func fetched(_ place: Place, _ sandbox: VOPISandbox) -> [String: Data] {
            sandbox.jobs().first.map { place.results(of: $0.id) } ?? [:]
        }
    }

    @Test(arguments: Step.all)
    func `killed in any step, a restart ends it: one upload, one job, all pictures, one receipt`(_ step: Step)
        async throws
    {
        try await withVOPI(VOPIRules(pace: .polls(steps: 8), listsMetadata: step.listsMetadata)) { place, sandbox in
            try await kill(in: step, place, sandbox)
            try await finish(place)
            let tally = sandbox.tally
            #expect(tally.presigns == step.presigns && tally.puts == step.puts, "\(tally)")
            #expect(tally.jobs == 1 && tally.charges == 1 && tally.cancels == 0, "\(tally)")
            #expect(sandbox.videos().map(\.size) == [Int64(step.size)])
            let job = try #require(sandbox.jobs().first?.id)
            let (files, made) = (place.results(of: job), try sandbox.made(of: job))
            #expect(Set(files.values).isSuperset(of: made) && made.count > 1)
            #expect(files["product.json"] != nil && files.count == made.count + 1, "\(files.keys)")
            #expect(!files.keys.contains { $0.contains(".inlet-") }, "\(files.keys)")
            let receipts = try await place.inlet("receipts").objects()
            #expect(receipts.compactMap { $0["state"] as? String } == ["delivered"])
        }
    }

    private func kill(in step: Step, _ place: Place, _ sandbox: VOPISandbox) async throws {
        try place.put("kettle.mp4", bytes(step.size))
        switch step.moment {
        case .failpoint(let name):
            let agent = try place.start("run", environment: ["INLET_FAILPOINT": name])
            #expect(try await agent.ending() == .signal(SIGKILL))
        case .request(let fault, let operation, let isUnderWay):
            sandbox.faults.add(fault)
            let agent = try await place.run()
            try await agent.wait(step.testDescription) {
                sandbox.faults.injected(at: operation) > 0 && isUnderWay(place, sandbox)
            }
            try await agent.kill()
            sandbox.faults.clear()
        }
    }

    /// Starts the command, and again whenever it waits for a job of which it does not know whether it is there: those are
    /// half minutes, which pass here while it is off.
    private func finish(_ place: Place) async throws {
        for _ in 1...4 {
            try await letTimePass(place)
            let agent = try await place.run()
            var hasEnded = false
            try await agent.wait("the end, or a look for the job") {
                hasEnded = !agent.lines("job.finished").isEmpty
                return hasEnded
                    || !agent.lines("job.waiting") { $0["reason"]?.contains("looking for the job") ?? false }.isEmpty
            }
            guard !hasEnded else {
                #expect(try await agent.stop() == .code(0))
                return
            }
            try await agent.kill()
        }
        Issue.record("it still looks for the job")
    }

    /// Makes it two minutes ago that a job was asked for.
    private func letTimePass(_ place: Place) async throws {
        let journal = try Journal(path: place.state.appending("journal.sqlite"), now: .now)
        defer { journal.close() }
        _ = try await journal.recover(destinations: ["store"], at: .now)
        let room = ClaimCapacity(destination: "store", limits: [.small: 1, .big: 1])
        for lane in Lane.allCases {
            _ = try await journal.withClaim(
                lane, rooms: [room], clock: { .now + .seconds(3600) }
            ) { claim in
                var notes = claim.checkpoint
                if let note = notes["creating"] {
                    notes["creating"] = try Self.aged(note)
                    try await journal.checkpoint(claim.delivery.id, notes, replacing: true)
                }
                return (.again(at: .now, countsAttempt: false, code: nil, reason: nil), true)
            }
        }
    }

    private static func aged(_ note: [UInt8]) throws -> [UInt8] {
        var object = try JSONSerialization.jsonObject(with: Data(note)) as? [String: Any] ?? [:]
        for name in ["sentAt", "lookAt"] {
            object[name] = try #require(object[name] as? NSNumber).int64Value - 120_000
        }
        return Array(try JSONSerialization.data(withJSONObject: object))
    }
}

/// The built command is killed while it writes to a Roboscope server; after restarts each thing is there once.
@Suite(.serialized, .timeLimit(.minutes(15))) struct RoboscopeKillTests {
    @Test func `an import that is killed five times brings each marker once, and ends its folder's session once`()
        async throws
    {
        try await withRoboscope(route: "unit: folder") { place, sandbox, _ in
            try place.putMarkers(3000)
            try place.put("atrium/a.mp4", bytes(50_000))
            var imported = 0
            for _ in 1...5 {
                let before = sandbox.faults.injected(at: .bulkMarkers)
                // Three requests of a hundred markers each, and then one whose answer never comes.
                sandbox.faults.add(RoboscopeFault(.delay(.zero), at: .bulkMarkers, times: 3))
                sandbox.faults.add(RoboscopeFault(.stall, at: .bulkMarkers, times: nil))
                let agent = try await place.run()
                try await agent.wait("more markers") { sandbox.faults.injected(at: .bulkMarkers) > before + 3 }
                try await agent.kill()
                sandbox.faults.clear()
                #expect(sandbox.markers().count > imported)
                imported = sandbox.markers().count
            }
            let agent = try await place.run()
            try await agent.wait("the end") { sandbox.sessions().first?.status == "done" }
            #expect(try await agent.stop() == .code(0))
            sandbox.expectMarkers(3000)
            #expect(sandbox.sessions().count == 1 && sandbox.spaces().map(\.key) == ["atrium"])
            #expect(sandbox.sessions().first?.meta?["ingest_files"]?.number == 2)
        }
    }

    @Test(arguments: [RoboscopeOperation.createSpace, .updateSpace, .createSession, .bulkMarkers, .updateSession])
    func `killed before it hears that a step is done, it does none twice`(_ step: RoboscopeOperation) async throws {
        try await withRoboscope(route: "unit: folder") { place, sandbox, _ in
            try place.put("atrium/model.glb", bytes(50_000))
            try place.putMarkers(150)
            sandbox.faults.add(RoboscopeFault(.withholdAnswer, at: step, times: 1))
            let agent = try await place.run()
            try await agent.wait(step.rawValue) { sandbox.faults.injected(at: step) > 0 }
            try await agent.kill()
            let next = try await place.run()
            try await next.wait("the end") { sandbox.sessions().first?.status == "done" }
            #expect(try await next.stop() == .code(0))
            #expect(sandbox.sessions().count == 1 && sandbox.spaces().map(\.key) == ["atrium"])
            #expect(sandbox.spaces().first?.modelGLBURL?.hasSuffix("/model.glb") == true)
            sandbox.expectMarkers(150)
        }
    }

    @Test func `queue retry sends no marker again that the server has taken and does not list`() async throws {
        try await withRoboscope { place, sandbox, _ in
            let empty = FaultReply(200, type: "application/json", body: "[]")
            sandbox.faults.add(RoboscopeFault(.reply(empty), at: .listMarkers, times: nil))
            try place.putMarkers(250)
            let agent = try await place.run()
            for round in 1...2 {
                try await agent.line("job.failed", number: round)
                #expect(sandbox.markers().count == 100 && sandbox.counts()["bulkMarkers"] == 1)
                try await agent.wait("the file has failed") {
                    try await place.inlet("queue", "list", "--state", "failed", "--json").objects().count == 1
                }
                if round == 2 { sandbox.faults.clear() }
                try await place.inlet("queue", "retry", "--all-failed", code: 0)
            }
            try await agent.line("job.finished") { $0["state"] == "delivered" }
            sandbox.expectMarkers(250)
            #expect(try await agent.stop() == .code(0))
        }
    }
}
