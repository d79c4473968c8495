import Foundation
import InletCore
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The agent between bad lines and bad servers: many files at once, a tenth of all requests goes wrong, and every file is
/// delivered once, whole. What goes wrong comes from the seed.
///
/// VOPI is not here: it waits half a minute by the clock for a job whose answer was lost; `VOPIKillTests` moves the clock.
@Suite(.timeLimit(.minutes(15))) struct ChaosTests {
    private static let seeds: [UInt64] =
        ProcessInfo.processInfo.environment["INLET_CHAOS_SEED"].flatMap { UInt64($0) }.map { [$0] }
        ?? Load.of([20_261_122, 7, 4242])

    @Test(arguments: seeds)
    func `every file arrives once, whatever the lines and the servers do`(_ seed: UInt64) async throws {
        let said: Comment = "chaos seed \(seed)"
        print("chaos seed \(seed)")
        try await withChaos(seed) { stage in
            let files = stage.files()
            for (name, content) in files { try stage.place.put(name, content) }
            let agent = try await stage.place.run()
            do {
                try await agent.wait("the end of every file", within: .seconds(300)) {
                    guard try stage.arrived() >= files.count else { return false }
                    return try await stage.place.balance()["delivered"] == files.count
                }
            } catch let error as InletProcess.Unexpected {
                throw agent.unexpected("chaos seed \(seed): \(stage.injected) injected; \(error)")
            }
            #expect(try await agent.stop() == .code(0), said)
            #expect(stage.lineFaults > 0 && stage.serverFaults > 0, said)
            #expect(stage.injected >= files.count / 10, said)
            try stage.check(files, said)
            let receipts = try await stage.place.inlet("receipts", "--limit", "1000").objects()
            #expect(receipts.count == files.count, said)
            #expect(Set(receipts.compactMap { $0["path"] as? String }).count == files.count, said)
            let balance = try await stage.place.balance()
            #expect(balance["delivered"] == files.count && balance.values.reduce(0, +) == files.count, said)
        }
    }
}

/// An agent's place, and four servers, each behind a line of its own.
struct ChaosStage: Sendable {
    static let password = "gig-canary-9114"
    static let token = "space-token-9114"

    let seed: UInt64
    let place: Place
    let spiral: SpiralSandbox
    let bucket: S3Sandbox
    let films: GigHiveSandbox
    let spaces: RoboscopeSandbox
    let lines: [ChaosProxy]

    var lineFaults: Int { lines.reduce(0) { $0 + $1.injected } }

    var serverFaults: Int {
        spiral.faults.injected + bucket.faults.injected + films.faults.injected + spaces.faults.injected
    }

    var injected: Int { lineFaults + serverFaults }

    /// Of every kind some empty, some small and some of two parts, where the server takes them.
    func files() -> [FilePath: Data] {
        var files: [FilePath: Data] = [:]
        var random = SeededGenerator(seed: seed)
        func add(_ folder: String, _ count: Int, _ ending: String, _ sizes: [Int]) {
            for number in 0..<count {
                let content = bytes(sizes[number % sizes.count] + number, seed: random.next())
                files[FilePath("\(folder)/\(folder)\(number).\(ending)")] = content
            }
        }
        add("r2", 16, "bin", [0, 900, 40_000, 70_000, 300_000, 20_000, 5000, (5 << 20) + 1])
        add("s3", 16, "bin", [0, 900, 40_000, 70_000, 300_000, 20_000, 5000, (5 << 20) + 1])
        add("form", 12, "mp4", [1000, 60_000, 250_000])
        add("tus", 12, "mp4", [1000, 60_000, (5 << 20) + 1, 250_000])
        add("copy", 10, "bin", [0, 1000, 100_000])
        add("models", 8, "glb", [2000, 90_000])
        return files
    }

    /// Files that are somewhere, finished or not.
    func arrived() throws -> Int {
        let copies = try FileManager.default.subpathsOfDirectory(atPath: place.library.string)
        let registered = spaces.spaces().count { $0.modelGLBURL != nil }
        return copies.count { $0.hasSuffix(".bin") } + spiral.objects().count { !$0.key.hasPrefix("models/") }
            + bucket.objects().count + films.assets().count + registered
    }

    /// That each file is where it belongs, and nothing else is there.
    func check(_ files: [FilePath: Data], _ said: Comment) throws {
        func these(_ folders: String...) -> [String: Data] {
            let chosen = files.filter { file in folders.contains { file.key.string.hasPrefix($0 + "/") } }
            return Dictionary(uniqueKeysWithValues: chosen.map { ($0.key.string, $0.value) })
        }
        func contents(_ objects: [StoredObject]) throws -> [String: Data] {
            try Dictionary(uniqueKeysWithValues: objects.map { ($0.key, try place.content($0.path)) })
        }
        #expect(try contents(spiral.objects()) == these("r2", "models"), said)
        #expect(try contents(bucket.objects()) == these("s3"), said)
        let assets = films.assets()
        #expect(assets.allSatisfy { $0.entries.count == 1 }, said)
        let sent = these("form", "tus")
        #expect(assets.count == sent.count, said)
        #expect(try Set(assets.map { try place.content($0.path) }) == Set(sent.values), said)
        let names = try FileManager.default.subpathsOfDirectory(atPath: place.library.string)
        let copies = try names.filter { $0.contains(".") }.map { ($0, try place.content(place.library.appending($0))) }
        #expect(Dictionary(uniqueKeysWithValues: copies) == these("copy"), said)
        let registered = spaces.spaces()
        #expect(Set(registered.map(\.key)).count == registered.count, said)
        let urls = registered.compactMap { $0.modelGLBURL.map { FilePath($0).lastComponent?.string ?? $0 } }
        #expect(urls.sorted() == these("models").keys.map { String($0.dropFirst("models/".count)) }.sorted(), said)
    }

    func configure() throws {
        let origins = lines.map { "http://127.0.0.1:\($0.port)" }
        let routes = [("r2", "store"), ("s3", "bucket"), ("form", "forms"), ("tus", "films"), ("copy", "library")]
        let retry = "retry: { attempts: 30, backoff: 100ms, max_backoff: 500ms }"
        let plain = routes.map { folder, destination in
            let fields =
                [
                    "form", "tus",
                ].contains(folder) ? ", with: { org_name: Band, event_date: \"2026-11-21\" }" : ""
            return "  - { name: \(folder), match: { path: \"\(folder)/**\" }, to: \(destination), "
                + "key: \"{dir}/{name}\", \(retry)\(fields) }"
        }
        try place.configure(
            text: """
                state_dir: state
                log: { level: info }
                destinations:
                  store: { type: r2, api: "\(origins[0])", public_url: "\(origins[0])/public", part_size: 5MiB,
                           api_key: "\(ConfigText.apiKey)" }
                  bucket: { type: s3, endpoint: "\(origins[1])", region: us-east-1, bucket: sandbox, part_size: 5MiB,
                            multipart_threshold: 5MiB, access_key: AKIDEXAMPLE, secret_key: "\(ConfigText.apiKey)",
                            verify: md5 }
                  forms: { type: gighive, url: "\(origins[2])", user: uploader, password: "\(Self.password)",
                           transport: multipart }
                  films: { type: gighive, url: "\(origins[2])", user: uploader, password: "\(Self.password)",
                           transport: tus, chunk_size: 5MiB }
                  library: { type: folder, path: library }
                  spaces: { type: roboscope, url: "\(origins[3])/api/v1", storage: store, token: \(Self.token) }
                watch:
                  - { path: drop, settle: 0s }
                routes:
                \(plain.joined(separator: "\n"))
                  - { name: models, match: { path: "models/**" }, to: spaces, key: "{dir}/{name}", \(retry),
                      with: { space: "{stem}" } }

                """)
    }
}

/// Requests that go wrong: those that pass by themselves as often as the seed will, those that pause a destination a few
/// times, so that the run ends soon.
private func trouble<Operation: SandboxOperation>(_: Operation.Type, _ seed: UInt64) -> FaultPlan<Operation> {
    let often: [FaultAction] = [.status(500), .status(429), .html, .garbage, .truncateAnswer(afterBytes: 7)]
    let seldom: [FaultAction] = [
        .status(503), .loseAnswer, .reset(afterBytes: 500), .wrongLength(by: 9), .wrongLength(by: -2),
        .wrongETag(.random), .missingETag, .replyAfterWork(FaultReply(502, body: "bad gateway")),
    ]
    return FaultPlan(
        often.map { OperationFault($0, times: 6, probability: 0.02) }
            + seldom.map { OperationFault($0, times: 1, probability: 0.03) }, seed: seed)
}

/// Runs `body` on a stage of its own.
private func withChaos(_ seed: UInt64, _ body: @Sendable @escaping (ChaosStage) async throws -> Void) async throws {
    let place = try Place()
    let folder = place.folder.path
    let password = Secret(ChaosStage.password)
    let spiral = try SpiralSandbox(
        directory: folder.appending("store"), apiKey: Secret(ConfigText.apiKey),
        faults: trouble(SpiralOperation.self, seed))
    let bucket = try S3Sandbox(
        directory: folder.appending("bucket"),
        account: .init(accessKey: "AKIDEXAMPLE", secretKey: Secret(ConfigText.apiKey), region: "us-east-1"),
        faults: trouble(S3Operation.self, seed &+ 1))
    let films = try GigHiveSandbox(
        directory: folder.appending("films"),
        passwords: ["admin": password, "uploader": password, "viewer": password],
        rules: GigHiveRules(hookWait: .zero), faults: trouble(GigHiveOperation.self, seed &+ 2))
    let spaces = RoboscopeSandbox(
        token: Secret(ChaosStage.token), faults: trouble(RoboscopeOperation.self, seed &+ 3))
    // One seat for all: four of several tests could wait for each other.
    try await whileServing({
        try await withThrowingTaskGroup(of: Void.self) { group in
            group.addTask { try await spiral.run() }
            group.addTask { try await bucket.run() }
            group.addTask { try await films.run() }
            group.addTask { try await spaces.run() }
            try await group.waitForAll()
        }
    }) {
        var lines: [ChaosProxy] = []
        for port in [try await spiral.port(), try await bucket.port(), try await films.port(), try await spaces.port()]
        {
            let plan = LinePlan(seed: seed &+ UInt64(lines.count), share: 0.5, span: 60_000, most: 4)
            lines.append(try ChaosProxy(to: port, plan: plan))
        }
        let stage = ChaosStage(
            seed: seed, place: place, spiral: spiral, bucket: bucket, films: films, spaces: spaces, lines: lines)
        try stage.configure()
        try await body(stage)
    }
}

/// What goes wrong at the other end, or under the agent's feet, and how each case ends.
@Suite(.serialized) struct ServerFaultTests {
    @Test(arguments: [true, false])
    func `a source is open while it is sent, and closed once it has arrived or failed`(_ arrives: Bool) async throws {
        try await withSpiral { place, sandbox in
            let refusal = FaultReply(400, type: "application/json", body: #"{"error":"not this one"}"#)
            if !arrives { sandbox.faults.add(Fault(.reply(refusal), at: .complete, times: nil)) }
            let gate = RequestGate()
            sandbox.faults.add(Fault(.hold(gate), at: .part, times: nil))
            let agent = try await place.run()
            try place.put("a.bin", bytes(6 << 20))
            let source = place.drop.appending("a.bin")
            try await agent.wait("its source is open") { try agent.hasOpen(source) }
            gate.open()
            try await agent.line("job.finished") { $0["state"] == (arrives ? "delivered" : "failed") }
            try await agent.wait("its source is closed") { try !agent.hasOpen(source) }
            #expect(place.exists(source) && sandbox.objects().count == (arrives ? 1 : 0))
        }
    }

    @Test(.enabled(if: Nobody.isAvailable), arguments: ["a file in its place", "a folder of somebody else"])
    func `an archive folder that cannot be used leaves the source, and says so`(_ obstacle: String) async throws {
        let place = try Place(route: ["on_success: archive"])
        let archive = place.drop.appending(".inlet").appending("done")
        if obstacle == "a file in its place" {
            try place.folder.write(bytes(1), to: "drop/.inlet")
        } else {
            try place.folder.makeDirectory("drop/.inlet/done")
        }
        try Nobody.own(place.folder.path)
        if obstacle != "a file in its place" { #expect(chown(archive.string, 0, 0) == 0) }
        let agent = try await place.run(launcher: Nobody.launcher)
        try place.put("a.txt", bytes(10))
        try Nobody.own(place.drop.appending("a.txt"))
        let failed = try await agent.line("job.disposition_failed")
        #expect(failed["reason"]?.contains(".inlet") ?? false, "\(failed)")
        #expect(try await agent.stop() == .code(0))
        let names = try FileManager.default.contentsOfDirectory(atPath: place.drop.string)
        #expect(names.sorted() == [".inlet", "a.txt"], "the source has its own name while it waits: \(names)")
        #expect(try place.content(place.library.appending("a.txt")) == bytes(10))
    }

    @Test(.enabled(if: Nobody.isAvailable))
    func `a file that its user may not read yet waits and is said while others go on, and is sent once he may`()
        async throws
    {
        let place = try Place()
        try Nobody.own(place.folder.path)
        let agent = try await place.run(launcher: Nobody.launcher)
        try place.put("private.txt", bytes(10))
        let source = place.drop.appending("private.txt")
        try FileManager.default.setAttributes([.posixPermissions: 0o600], ofItemAtPath: source.string)
        try await place.deliver("public.txt", bytes(20), by: agent)
        try await agent.wait("status says so") {
            let said = try await place.inlet("status").output
            return said.contains("may not be read by Inlet") && said.contains("private.txt")
        }
        #expect(!place.exists(place.library.appending("private.txt")))
        try FileManager.default.setAttributes([.posixPermissions: 0o644], ofItemAtPath: source.string)
        // An attempt at the moment of the chmod finds another file than was admitted, which is then taken anew.
        try await agent.line("job.finished") { $0.isAbout("private.txt") && $0["state"] == "delivered" }
        try await agent.wait("its source is closed") { try !agent.hasOpen(source) }
    }
}

extension InletProcess {
    /// Whether one of its descriptors is of this file.
    func hasOpen(_ file: FilePath) throws -> Bool {
        try FileManager.default.contentsOfDirectory(atPath: "/proc/\(id)/fd").contains { number in
            // One may be closed since it was listed.
            (try? FileManager.default.destinationOfSymbolicLink(atPath: "/proc/\(id)/fd/\(number)")) == file.string
        }
    }
}

/// A user without rights, for tests that root runs.
enum Nobody {
    static let launcher = ["/usr/bin/setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"]

    static var isAvailable: Bool { getuid() == 0 && FileManager.default.isExecutableFile(atPath: launcher[0]) }

    /// Gives it to that user, with all that is in it.
    static func own(_ path: FilePath) throws {
        let inside = FileManager.default.enumerator(atPath: path.string)?.compactMap { $0 as? String } ?? []
        for each in [path.string] + inside.map({ path.string + "/" + $0 }) where lchown(each, 65534, 65534) != 0 {
            throw Errno(rawValue: errno)
        }
    }
}
