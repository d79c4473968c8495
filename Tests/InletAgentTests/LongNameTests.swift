import Foundation
import Glibc
import InletAgent
import InletCore
import InletJournal
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import InletPipelines

/// Names of 255 bytes, which leave no room for what others have added to theirs.
@Suite struct LongNameTests {
    private static let ascii = Array((String(repeating: "n", count: 251) + ".mov").utf8)
    private static let letters = Array((String(repeating: "é", count: 124) + "日.mov").utf8)
    private static let noText = [UInt8](repeating: 0xFF, count: 251) + Array(".mov".utf8)
    static let all = [ascii, letters, noText]
    /// Others that are the same in all bytes that a shortened name keeps.
    private static func twin(of name: [UInt8]) -> [UInt8] {
        var twin = name
        if name == letters { twin.replaceSubrange(248..<251, with: "本".utf8) }
        if name != letters { twin.replaceSubrange(249..<251, with: "zz".utf8) }
        return twin
    }

    /// Drops a file, and waits until so many are finished.
    private func put(_ name: [UInt8], _ content: String, in stage: Stage, finished number: Int) async throws {
        try DurableFile.write(Array(content.utf8), to: stage.root.pushing(FilePath(bytes: name)), mode: 0o644)
        try await finished(number, stage)
    }

    private func finished(_ count: Int, _ stage: Stage) async throws {
        try await eventually("\(count) files are finished") {
            try await stage.journal.receipts(limit: 99).count == count
        }
    }

    private func entries(_ folder: FilePath) throws -> [FilePath.Component] {
        var stream = try Folder(folder).list()
        var names: [FilePath.Component] = []
        while let entry = try stream.next() { names.append(entry.name) }
        return names
    }

    @Test(arguments: all) func `files are archived, again and again, and none over another`(_ name: [UInt8])
        async throws
    {
        var scene = try Scene()
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            let names = [name, Self.twin(of: name), name, Self.twin(of: name), name]
            for (number, name) in names.enumerated() {
                try await put(name, "content \(number)", in: stage, finished: number + 1)
            }
            let archive = stage.root.pushing(".inlet/done")
            let found = try entries(archive)
            #expect(try Set(found.map { try text(archive.appending($0)) }) == Set((0..<5).map { "content \($0)" }))
            #expect(found.allSatisfy { $0.bytes.count <= 255 && $0.bytes.suffix(4).elementsEqual(".mov".utf8) })
            #expect(try text(archive.pushing(FilePath(bytes: name))) == "content 0")
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .delivered })
            #expect(scene.here.record.stored.count == 5)
        }
    }

    @Test(arguments: all) func `files are quarantined, each with a reason of its own`(_ name: [UInt8]) async throws {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.here.always(.fail(.hopeless))
        try await scene.run { stage in
            for (number, name) in [name, Self.twin(of: name), name].enumerated() {
                try await put(name, "content \(number)", in: stage, finished: number + 1)
            }
            let place = stage.root.pushing(".inlet/failed")
            let found = try entries(place)
            let reasons = found.filter { $0.bytes.suffix(5).elementsEqual(".json".utf8) }
            #expect(found.count == 6 && reasons.count == 3)
            let told = try reasons.map { try text(place.appending($0)) }
            for file in found where !reasons.contains(file) {
                let disposition = "\"quarantined: \(place.appending(file).display)\"".replacing("\\", with: "\\\\")
                #expect(told.count { $0.contains(disposition) } == 1, "\(file)")
            }
        }
    }

    @Test
    func `a file that has the name of a reason stays, and a reason is replaced by the next one for the same name`()
        async throws
    {
        var scene = try Scene()
        scene.route.onFailure = .quarantine
        scene.here.always(.fail(.hopeless))
        try scene.drop(".inlet/failed/a.bin.reason.json", "theirs")
        try await scene.run { stage in
            let place = stage.root.pushing(".inlet/failed")
            for round in 1...2 {
                try scene.drop("a.bin", "content \(round)")
                try await finished(round, stage)
                #expect(try names(in: place) == ["a.bin", "a.bin.reason.json", "a.bin.reason_2.json"])
                try remove(place.appending("a.bin"))
            }
            #expect(try text(place.appending("a.bin.reason.json")) == "theirs")
            let newest = try #require(try await stage.jobs().map(\.file.id).max())
            #expect(try text(place.appending("a.bin.reason_2.json")).hasPrefix("{\"job\":\(newest),"))
        }
    }

    @Test(arguments: all) func `files are delivered to a folder`(_ name: [UInt8]) async throws {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations = [.folder("here", library)]
        // What is no text takes three bytes for each one in a key, and a number.
        scene.route.key = try KeyTemplate(name == Self.noText ? "{sha256:16}.{ext}" : "{name}")
        scene.route.onSuccess = .archive
        try await scene.run { stage in
            for number in 1...2 {
                try await put(name, "content \(number)", in: stage, finished: number)
            }
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .delivered })
            let found = try entries(library)
            #expect(try Set(found.map { try text(library.appending($0)) }) == ["content 1", "content 2"])
        }
    }

    @Test(arguments: all) func `files whose sidecars, markers and receipts have no room beside them go on`(
        _ name: [UInt8]
    ) async throws {
        var scene = try Scene()
        scene.route.sidecars = SidecarRule(metadata: true, extensions: ["xmp"], wait: .zero)
        scene.route.receipts = .sidecar
        try await scene.run { stage in
            try await put(name, "content", in: stage, finished: 1)
            #expect(try await stage.jobs().map(\.file.state) == [.delivered])
            try await eventually("it is said") { stage.events.count("receipt.elsewhere") == 1 }
            let receipts = scene.directory.path.pushing("state/receipts")
            #expect(try entries(receipts).count == 1)
        }
    }

    @Test func `a template that makes a longer name has it shortened`() async throws {
        var scene = try Scene()
        let library = try scene.directory.makeDirectory("library")
        scene.destinations = [.folder("here", library)]
        scene.route.key = try KeyTemplate("{epoch_ms}_{name}")
        try await scene.run { stage in
            for (number, name) in [Self.ascii, Self.twin(of: Self.ascii)].enumerated() {
                try await put(name, "content \(number)", in: stage, finished: number + 1)
            }
            #expect(try await stage.jobs().allSatisfy { $0.file.state == .delivered })
            let found = try entries(library)
            #expect(found.count == 2 && found.allSatisfy { $0.string.hasSuffix(".mov") && $0.bytes.count == 255 })
        }
    }
}

/// The kernel's own file systems, which have files of no use to anybody else.
@Suite struct PseudoFileTests {
    private func ignored(_ stage: Stage) -> [FilePath: String] {
        stage.events.all.reduce(into: [:]) { all, event in
            if case .fileIgnored(let path, let reason) = event { all[path] = reason }
        }
    }

    @Test func `a watched folder of proc is refused with its reason, and others go on`() async throws {
        var scene = try Scene()
        let root = FilePath("/proc/\(ProcessInfo.processInfo.processIdentifier)/net")
        scene.watch.append(WatchSettings(path: root, settle: .zero, rescan: nil))
        try await scene.run { stage in
            try await stage.process("a")
            var reason: String?
            try await eventually("it is said") {
                for case .watchLost(root, let text) in stage.events.all { reason = text }
                return reason != nil
            }
            #expect(reason?.contains("on proc") == true && reason?.contains("watch another folder") == true)
            #expect(try await stage.jobs().count == 1)
        }
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `mounts of proc below a watched folder are passed over and said once, those of folders are watched`()
        async throws
    {
        var scene = try Scene()
        scene.route.key = try KeyTemplate("{dir}/{name}")
        let elsewhere = try scene.directory.makeDirectory("elsewhere")
        try scene.directory.write([1], to: "elsewhere/sub/a")
        let mounts = [
            try TestMount(folder: "/proc/sys/kernel", at: scene.directory.makeDirectory("drop/kernel")),
            try TestMount(folder: elsewhere, at: scene.directory.makeDirectory("drop/bound")),
        ]
        defer { for mount in mounts { mount.unmount() } }
        let place = scene.root.appending("kernel")
        try await scene.run { [scene] stage in
            try await stage.finished("bound/sub/a")
            try await eventually("it is said") { ignored(stage)[place] != nil }
            #expect(ignored(stage)[place]?.contains("on proc") == true)
            try scene.directory.write([2], to: "elsewhere/b")
            try await stage.finished("bound/b")
            try await stage.process("last")
            #expect(stage.events.count("file.ignored") == 1 && stage.events.count("file.error") == 0)
            #expect(try await stage.jobs().count == 3)
        }
    }

    @Test(.enabled(if: TestMount.isAllowed, "needs the right to mount"))
    func `a file of proc that lies in a watched folder is not delivered as an empty one`() async throws {
        var scene = try Scene()
        scene.watch[0].settleEmpty = .zero
        let mount = try TestMount(folder: "/proc/version", at: scene.drop("version", ""))
        defer { mount.unmount() }
        try await scene.run { [scene] stage in
            try await stage.process("empty", "")
            let path = stage.root.appending("version")
            try await eventually("it is said") { ignored(stage)[path] != nil }
            #expect(ignored(stage)[path]?.contains("more bytes than its size") == true)
            #expect(Set(scene.here.record.stored.keys) == ["empty"])
        }
    }
}

/// Files that somebody keeps open for ever, in a root with few places.
@Suite struct StuckFileTests {
    /// Mapped for writing and closed: busy, and nothing tells when that is over.
    private func map(_ path: FilePath) throws -> UInt {
        let descriptor = try FileDescriptor.open(path, .readWrite, options: .closeOnExec)
        defer { try? descriptor.close() }
        let page = try #require(mmap(nil, 4096, PROT_READ | PROT_WRITE, CInt(MAP_SHARED), descriptor.rawValue, 0))
        return UInt(bitPattern: page)
    }

    @Test(arguments: [0, 3])
    func `they keep no others out, and none of them is forgotten`(stuck: Int) async throws {
        var scene = try Scene()
        scene.places = Settler.Places(settling: 4, stuck: stuck, folders: 1)
        scene.route.key = try KeyTemplate("{dir}/{name}")
        let names = (0..<12).map { FilePath("held/\($0)") }
        let pages = try names.map { name in
            try map(scene.drop(name, String(repeating: "x", count: 4096)))
        }
        try await scene.run { stage in
            for number in 0..<8 { try await stage.process(FilePath("free/\(number)")) }
            #expect(try await stage.jobs().allSatisfy { $0.file.path.starts(with: "free") })
            for page in pages { munmap(UnsafeMutableRawPointer(bitPattern: page), 4096) }
            for name in names { try await stage.finished(name) }
        }
    }

    /// A process of its own: what else runs here must not make it pause for as long as a file settles.
    @Test func `one that goes on growing is not sent, and is sent whole when it ends`() async throws {
        var scene = try Scene()
        scene.places = Settler.Places(settling: 2, stuck: 1, folders: 1)
        scene.watch[0].settle = .seconds(5)
        let path = try scene.drop("growing")
        let writer = Process()
        writer.executableURL = URL(fileURLWithPath: "/bin/sh")
        // Nobody holds it: only its size tells.
        writer.arguments = ["-c", "while echo more >>\"$1\"; do sleep 0.05; done", "sh", path.string]
        try writer.run()
        defer { if writer.isRunning { writer.terminate() } }
        Leash.hold(writer.processIdentifier)
        try await scene.run { stage in
            let names = (0..<6).map { FilePath("whole\($0)") }
            for name in names { try scene.drop(name) }
            for name in names { try await stage.finished(name) }
            #expect(try await stage.jobs().allSatisfy { $0.file.path != "growing" })
            writer.terminate()
            writer.waitUntilExit()
            let size = try DurableFile.read(path, limit: 1 << 20).count
            #expect(try await stage.finished("growing").file.identity.size == size)
            #expect(try await stage.jobs().count == 7)
        }
    }

    @Test func `a file that waits for what is on its way keeps no others out`() async throws {
        var scene = try Scene()
        scene.places = Settler.Places(settling: 2, stuck: 1, folders: 1)
        let gate = Gate()
        let names = (0..<6).map { FilePath("old\($0)") }
        for name in names { scene.here.script(name.string, .hold(gate, .deliver)) }
        scene.workers = 8
        try await scene.run { stage in
            for name in names { try scene.drop(name) }
            try await eventually("they are on their way") { scene.here.record.running == names.count }
            for name in names { try scene.drop(name, "another content") }
            for number in 0..<4 { try await stage.process(FilePath("new\(number)")) }
            gate.open()
            for name in names {
                try await stage.job(name, "sent as it is now") { job in
                    job.file.identity.size == 15 && job.file.state == .delivered
                }
            }
        }
    }
}

/// Answers that concern a whole destination end none of its files.
@Suite(.timeLimit(.minutes(15))) struct StrangerTests {
    private static let page = "<!DOCTYPE html><html><title>Not Found</title><body>nginx</body></html>"

    /// Delivers to an API of which something else answers until it has done so so often. - Returns: the agent's events.
    private func deliver(
        _ count: Int, while action: FaultAction, times: Int, _ body: @escaping @Sendable (Stage) async throws -> Void
    ) async throws {
        let directory = try TemporaryDirectory()
        let factory = PipelineFactory(pool: BlockingPool(name: "strangers", threads: 4), userAgent: "inlet-tests/1")
        defer { factory.shutdown() }
        let sandbox = try SpiralSandbox(directory: directory.path.appending("server"), apiKey: Secret("key"))
        try await whileServing({ try await sandbox.run() }) {
            var scene = try Scene(in: directory)
            let values: [String: ConfigValue] = [
                "api": .string("http://127.0.0.1:\(try await sandbox.port())"), "api_key": .secret(Secret("key")),
            ]
            let section = ConfigSection(
                values: values, positions: [:], position: SourcePosition(line: 1, column: 1))
            scene.destinations = [try factory.make(DestinationSettings(name: "here", type: "r2", values: section))]
            scene.pace = ProbePace(first: .milliseconds(20), interval: .milliseconds(100))
            sandbox.faults.add(Fault(action, times: nil))
            try await scene.run { stage in
                for number in 1...count { try scene.drop(FilePath("\(number)"), "content \(number)") }
                try await eventually("something else has answered \(times) times") { sandbox.faults.injected >= times }
                try await eventually("it is down") { stage.events.count("destination.down") > 0 }
                try await body(stage)
                #expect(stage.events.count("job.failed") == 0)
                sandbox.faults.clear()
                for number in 1...count { try await stage.finished(FilePath("\(number)")) }
                #expect(stage.events.count("job.failed") == 0)
                let jobs = try await stage.jobs()
                #expect(jobs.allSatisfy { $0.file.state == .delivered && $0.deliveries[0].attempts <= 3 })
            }
            #expect(sandbox.objects().count == count)
            // First, so that no connection of ours outlives its server.
            factory.shutdown()
        }
    }

    @Test(arguments: [
        FaultAction.reply(FaultReply(404, type: "text/html", body: page)), .redirect(to: "https://elsewhere.example/"),
        .html, .reply(FaultReply(400, type: "text/html", body: "<html>400 Bad Request</html>")),
    ]) func `twenty files wait while something else answers in the service's place`(_ action: FaultAction) async throws
    {
        try await deliver(20, while: action, times: 12) { stage in
            let status = stage.agent.control.live?.destinations.first
            // The step, with its address: whichever of the files' was answered last.
            let steps = ["asking for an upload URL at http", "creating the upload at http"]
            let said = status?.lastError ?? ""
            #expect(steps.contains { said.contains($0) }, "\(said)")
        }
    }

    @Test func `a lone file outlives a server that fails for longer than its attempts`() async throws {
        try await deliver(1, while: .status(500), times: 8) { _ in }
    }

    // MARK: - In the service's own words

    private static let refusal = DeliveryError(.giveUp, .badRequest, "no", heard: StepFailure(400, .refusal))
    private static let tooLarge = DeliveryError(.giveUp, .tooLarge, "too large", heard: StepFailure(413, .object))

    @Test func `a lone file that is refused fails when it is refused again while a probe is good`() async throws {
        let scene = try Scene()
        scene.here.script("a", .fail(Self.refusal), .fail(Self.refusal))
        try await scene.run { stage in
            let job = try await stage.process("a", as: .failed)
            #expect(job.deliveries[0].attempts == 1 && job.deliveries[0].code == .badRequest)
            #expect(stage.events.count("destination.down") == 0)
        }
        #expect(scene.here.record.calls == ["a", "probe", "a"])
    }

    @Test func `two files that are refused alike are an outage, and are delivered when it is over`() async throws {
        var scene = try Scene()
        scene.pace = ProbePace(first: .milliseconds(20), interval: .milliseconds(100))
        for name in ["a", "b"] { scene.here.script(name, .fail(Self.refusal)) }
        scene.here.failProbes(.outage)
        try await scene.run { stage in
            try scene.drop("a")
            try scene.drop("b")
            try await eventually("it is down") { stage.events.count("destination.down") == 1 }
            try await stage.finished("a")
            try await stage.finished("b")
            #expect(stage.events.count("job.failed") == 0)
        }
    }

    @Test func `a refusal about the file itself ends it at once, and nobody else waits`() async throws {
        let scene = try Scene()
        for name in ["a", "b"] { scene.here.script(name, .fail(Self.tooLarge)) }
        try await scene.run { stage in
            for name in ["a", "b", "c"] as [FilePath] { try scene.drop(name) }
            try await stage.finished("a", .failed)
            try await stage.finished("b", .failed)
            try await stage.finished("c")
            #expect(stage.events.count("destination.down") == 0)
        }
        #expect(!scene.here.record.calls.contains("probe"))
    }
}
