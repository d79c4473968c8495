import Foundation
import InletCore
import InletLinux
import InletPipelines
import InletTestSupport
import Synchronization
import SystemPackage
import Testing

@testable import InletAgent
@testable import InletJournal

extension DeliveryError {
    static let gateway = DeliveryError(.outage(after: nil), .serverError, "the test's gateway says 502")
    static let shortage = DeliveryError(.outage(after: nil), .outOfResources, "no descriptors; raise LimitNOFILE")
    static let badDisk = DeliveryError(.outage(after: nil), .sourceUnreadable, "the device reports errors")
    static func busy(_ seconds: Int64) -> DeliveryError {
        DeliveryError(.retry(after: .seconds(seconds)), .throttled, "the test's server says 429")
    }
}

/// When deliveries began, and until when a destination asked for time.
private final class Moments: Sendable {
    private let state = Mutex<(began: [FilePath: WallTime], until: WallTime?)>(([:], nil))

    var began: [FilePath: WallTime] { state.withLock(\.began) }
    var slowedUntil: WallTime? { state.withLock(\.until) }

    func note(_ event: AgentEvent) {
        state.withLock { state in
            switch event {
            case .jobStarted(let ref, _, _, _, _, _):
                if let name = ref.path.lastComponent { state.began[FilePath(name.string)] = .now }
            case .destinationThrottled(_, _, let until): state.until = until
            default: break
            }
        }
    }
}

/// Whose fault it is, and who has to wait for it.
@Suite struct RuleTests {
    @Test func `one bad file ends failed, while the others are delivered and nobody is paused for it again`()
        async throws
    {
        var scene = try Scene()
        scene.route.retry.attempts = 2
        scene.here.script("bad", .fail(.gateway), .fail(.gateway), .fail(.gateway))
        try await scene.run { stage in
            let job = try await stage.process("bad", as: .failed)
            #expect(job.deliveries[0].attempts == 2 && job.deliveries[0].code == .serverError)
            try await eventually("both are said") {
                stage.events.count("destination.down") == 1 && stage.events.count("destination.up") == 1
            }
            try await stage.process("good")
            #expect(stage.events.count("destination.down") == 1)
        }
        #expect(scene.here.attempts(at: "bad") == 3, "the first one was the destination's")
    }

    @Test func `after an outage one delivery goes first, and the others when it has arrived`() async throws {
        let scene = try Scene()
        let gate = Gate()
        scene.here.script("a", .fail(.outage))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            scene.here.always(.hold(gate, .deliver))
            for number in 0..<20 { try scene.drop(FilePath("b\(number)")) }
            try await eventually("one is on its way") { scene.here.record.running == 1 }
            try await eventually("all are known") { try await stage.jobs().count == 21 }
            #expect(stage.agent.control.live?.destinations.map(\.state) == [.trial])
            #expect(scene.here.record.mostRunning == 1)
            gate.open()
            try await eventually("all have arrived") { scene.here.record.stored.count == 21 }
        }
        #expect(stageIsCounted(scene))
    }

    /// Nothing was sent twice, but for the one that found the outage.
    private func stageIsCounted(_ scene: Scene) -> Bool { scene.here.record.orders.count == 22 }

    @Test func `a server that asks for time is left alone by all files, and no attempt is counted`() async throws {
        var scene = try Scene()
        let moments = Moments()
        scene.onEvent = { moments.note($0) }
        scene.here.script("a", .fail(.busy(1)))
        try await scene.run { stage in
            try scene.drop("a")
            try await eventually("it is slowed") { stage.events.count("destination.throttled") == 1 }
            try await stage.process("b")
            #expect(try #require(moments.began["b"]) >= #require(moments.slowedUntil))
            #expect(try await stage.finished("a").deliveries[0].attempts == 1)
            #expect(stage.events.count("destination.down") == 0)
        }
        #expect(!scene.here.record.calls.contains("probe"))
    }

    @Test func `what this machine lacks is nobody's fault, is said once, and passes`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(.shortage), .fail(.shortage))
        scene.here.script("b", .fail(.shortage))
        try await scene.run { stage in
            for name in ["a", "b", "c"] as [FilePath] { try scene.drop(name) }
            #expect(try await stage.finished("c").deliveries[0].attempts == 1)
            #expect(try await stage.finished("b").deliveries[0].attempts == 1)
            #expect(try await stage.finished("a").deliveries[0].attempts == 1)
            #expect(stage.events.count("destination.down") == 0)
            #expect((1...3).contains(stage.events.count("agent.error")))
        }
        #expect(scene.here.attempts(at: "a") == 3 && !scene.here.record.calls.contains("probe"))
    }

    @Test(arguments: [(.sourceGone, .gone), (.sourceChanged, .superseded)] as [(DeliveryError.Verdict, DeliveryState)])
    func `a path is looked at anew when its file went or changed under way`(
        _ verdict: DeliveryError.Verdict, _ end: DeliveryState
    ) throws {
        let ref = AgentEvent.JobRef(job: 1, delivery: 2, path: "/a", route: "r", destination: "d")
        func outcome(_ error: DeliveryError) throws -> (ClaimOutcome, DeliveryReport) {
            var random = SeededGenerator(seed: 1)
            let (file, now) = (try fileRow(), WallTime(milliseconds: 0))
            let attempt = FailedAttempt(file: file.id, number: 1, policy: file.policy.retry, time: now)
            let decision = FailureClassifier.classify(error, attempt, using: &random) { _, _ in .none }
            return decision.outcome(ref, file, attempt: 1, at: now)
        }
        let (settlement, report) = try outcome(DeliveryError(verdict, .sourceGone, "why"))
        #expect(report.wantsLook?.path == "a")
        #expect(try outcome(.hopeless).1.wantsLook == nil)
        guard case .ended(let state, _, _) = settlement else { throw Unexpected(description: "it has not ended") }
        #expect(state == end)
    }

    private func fileRow() throws -> FileRow {
        FileRow(
            id: 1, root: "/in", path: "a",
            identity: FileIdentity(size: 1, modified: 0, changed: 0, inode: 1, device: 1),
            state: .pending, mediaType: "text/plain",
            policy: FilePolicy(onSuccess: .keep, onFailure: .keep, retry: RetryPolicy()),
            admittedAt: WallTime(milliseconds: 0), labels: [:], digests: [])
    }
}

/// Files that are taken, or left alone, for whose they are and how many names they have.
struct SourceRuleTests {
    private func reasons(_ stage: Stage) -> [String] {
        stage.events.all.compactMap { event in
            if case .fileIgnored(_, let reason) = event { reason } else { nil }
        }
    }

    @Test func `a file with several names is left alone and said once, until it has one`() async throws {
        var scene = try Scene()
        scene.watch[0].sources.hardLinks = .refuse
        let secret = try scene.directory.write(Array("secret".utf8), to: "secret")
        for name in ["one", "two"] as [FilePath] { try makeLink(scene.root.pushing(name), to: secret) }
        try await scene.run { stage in
            try await stage.process("plain")
            try await eventually("it is said") { !reasons(stage).isEmpty }
            #expect(reasons(stage).first?.hasPrefix("ignored 2 files") == true, "\(reasons(stage))")
            try await eventually("they are counted") { stage.rootStatus?.ignored == 2 }
            #expect(Set(scene.here.record.stored.keys) == ["plain"])
            // The folder of the names that stay is told nothing of these.
            try remove(secret)
            try remove(scene.root.appending("one"))
            let job = try await stage.finished("two")
            #expect(job.file.identity.size == 6 && reasons(stage).count == 1)
            try await eventually("none is left alone") { stage.rootStatus?.ignored == 0 }
        }
    }

    @Test func `a sidecar is asked for its names once more when it is opened`() async throws {
        let directory = try TemporaryDirectory()
        let pool = BlockingPool(name: "test", threads: 1)
        defer { pool.shutdown() }
        try directory.write(Array("title: Dawn\n".utf8), to: "clip.mp4.yaml")
        let path = RootedPath(directory.path, "clip.mp4.yaml")
        let rule = SourceRule(hardLinks: .refuse)
        #expect(try await SidecarFile.read(path, by: rule, on: pool) != Sidecar())
        try makeLink(directory.path.appending("other"), to: directory.path.appending("clip.mp4.yaml"))
        await #expect(throws: SystemError.self) { try await SidecarFile.read(path, by: rule, on: pool) }
        #expect(try await SidecarFile.read(path, by: SourceRule(), on: pool) != Sidecar())
    }

    @Test func `hard links are taken unless they are refused`() async throws {
        let scene = try Scene()
        let file = try scene.directory.write([1], to: "elsewhere")
        try makeLink(scene.root.appending("linked"), to: file)
        try await scene.run { stage in try await stage.finished("linked") }
    }

    @Test func `a file that gets another name before it is sent is not sent`() async throws {
        var scene = try Scene()
        scene.watch[0].sources.hardLinks = .refuse
        let gate = Gate()
        scene.here.script("a", .hold(gate, .fail(DeliveryError(.retry(after: nil), .serverError, "not now"))))
        try await scene.run { [scene] stage in
            let file = try scene.drop("a")
            try await eventually("it is being sent") { scene.here.attempts(at: "a") == 1 }
            let other = scene.directory.path.appending("other")
            try makeLink(other, to: file)
            gate.open()
            try await stage.finished("a", .superseded)
            #expect(scene.here.attempts(at: "a") == 1 && scene.here.record.stored.isEmpty)
            try remove(other)
            try await stage.finished("a")
            #expect(scene.here.record.stored.count == 1)
        }
    }

    @Test func `only files of the named owners are taken`() async throws {
        let user = ProcessSetup.userID
        var scene = try Scene()
        scene.watch[0].sources.owners = [user]
        let foreign = try scene.directory.makeDirectory("foreign")
        scene.watch.append(WatchSettings(path: foreign, settle: .zero, rescan: nil))
        scene.watch[1].sources.owners = [user + 1]
        try scene.directory.write([1], to: "foreign/theirs")
        try await scene.run { stage in
            try await stage.process("ours")
            try await eventually("it is said") { !reasons(stage).isEmpty }
            #expect(reasons(stage).first?.contains("1 file of user \(user)") == true, "\(reasons(stage))")
            #expect(try await stage.jobs().map(\.file.path) == ["ours"])
            // Only root can give files away.
            guard user == 0 else { return }
            try FileManager.default.setAttributes(
                [.ownerAccountID: NSNumber(value: user + 1)], ofItemAtPath: foreign.appending("theirs").string)
            try await stage.finished("theirs")
        }
    }

    @Test func `a sidecar that is left alone does not travel`() async throws {
        var scene = try Scene()
        scene.watch[0].sources.hardLinks = .refuse
        scene.route.match.extensions = ["mp4"]
        scene.route.sidecars.extensions = ["srt"]
        scene.route.sidecars.wait = .milliseconds(100)
        let secret = try scene.directory.write(Array("secret".utf8), to: "secret")
        try makeLink(scene.root.appending("film.srt"), to: secret)
        try await scene.run { [scene] stage in
            try await stage.process("film.mp4")
            try await eventually("it is said") { !reasons(stage).isEmpty }
            #expect(scene.here.record.stored.count == 1)
        }
    }

    @Test(
        arguments: [
            (SourceRule(), 1, 1, nil), (SourceRule(), 7, 9, nil),
            (SourceRule(owners: [7]), 7, 9, nil), (SourceRule(owners: [7]), 8, 1, .owner(8)),
            (SourceRule(owners: []), 0, 1, .owner(0)), (SourceRule(hardLinks: .refuse), 8, 1, nil),
            (SourceRule(hardLinks: .refuse), 8, 2, .links), (SourceRule(hardLinks: .refuse), 8, 0, nil),
            (SourceRule(owners: [7], hardLinks: .refuse), 8, 2, .owner(8)),
        ] as [(SourceRule, UInt32, UInt64, SourceRule.Refusal?)])
    func `the rule`(_ rule: SourceRule, owner: UInt32, links: UInt64, expected: SourceRule.Refusal?) {
        #expect(rule.refusal(owner: owner, links: links) == expected)
    }

    @Test func `each folder is said once, however many files come`() {
        var refused = RefusedFiles(fileLimit: 10, groupLimit: 2)
        for name in ["a/1", "a/2", "b/1", "c/1"] as [FilePath] { refused.note(name, .links) }
        let news = refused.takeNews()
        #expect(news.map(\.path) == ["a/1", "b/1"] && news.map(\.files) == [2, 1])
        #expect(news.allSatisfy { $0.refusal == .links })
        for number in 0..<100 { refused.note(FilePath("a/\(number)"), .links) }
        #expect(refused.takeNews().isEmpty && refused.total == 10 && refused.takeLinked().count == 2)
        refused.forget("a/1")
        #expect(refused.total == 9)
    }

    @Test(
        arguments: [
            (SourceRule(), false, 7, 0o700, true), (SourceRule(), false, 1000, 0o755, false),
            (SourceRule(), false, 1000, 0o775, true), (SourceRule(), false, 0, 0o1777, true),
            (SourceRule(), false, 0, 0o755, false), (SourceRule(), true, 7, 0o777, false),
            (SourceRule(), nil, 7, 0o777, false), (SourceRule(hardLinks: .refuse), false, 7, 0o777, false),
            (SourceRule(owners: [7]), false, 7, 0o777, false),
        ] as [(SourceRule, Bool?, UInt32, UInt32, Bool)])
    func `who may be harmed by links is warned`(
        _ rule: SourceRule, isProtected: Bool?, owner: UInt32, mode: UInt32, isWarned: Bool
    ) {
        let text = RootCheck.linkCaution(rule, isProtected: isProtected, folder: (owner, mode), user: 1000)
        #expect((text != nil) == isWarned)
    }

    @Test func `the kernel's protection is read`() throws {
        let directory = try TemporaryDirectory()
        for (text, expected) in [("0\n", false), ("1\n", true), ("", nil)] as [(String, Bool?)] {
            #expect(FileOwner.protectsLinks(try directory.write(Array(text.utf8), to: "value")) == expected)
        }
        #expect(FileOwner.protectsLinks(directory.path.appending("none")) == nil)
    }
}
