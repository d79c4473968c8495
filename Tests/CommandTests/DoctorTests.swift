import Foundation
import InletCore
import InletDashboard
import InletLinux
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

@testable import inlet

/// `inlet doctor`: what is wrong, and the likeliest causes first.
@Suite(.serialized, .timeLimit(.minutes(15))) struct DoctorTests {
    /// The topics of the causes that it names, the likeliest first. Expects exit code 1 where there are any.
    private func topics(_ place: Place, launcher: [String] = []) async throws -> [String] {
        let ended = try await InletProcess.run(
            ["doctor", "--json", "--config", place.configuration.string], in: place.folder.path, launcher: launcher)
        let report = try ended.object()
        let causes = report["causes"] as? [[String: Any]] ?? []
        #expect(ended.ending == .code(causes.isEmpty ? 0 : 1), "\(ended)")
        #expect(report["exit_code"] as? Int == (causes.isEmpty ? 0 : 1), "\(ended)")
        return causes.compactMap { $0["topic"] as? String }
    }

    @Test func `beside an agent that works it finds nothing wrong, and says what it looked at`() async throws {
        try await withSpiral { place, _ in
            let agent = try await place.run()
            let said = try await place.inlet(
                "doctor", code: 0, says: "Nothing is wrong", "✓ version: inlet \(Inlet.version)",
                "✓ agent: running since",
                "✓ machine: Linux", "✓ clock: ", "✓ configuration: \(place.configuration) is correct",
                "✓ state_dir: on ", "✓ journal: ", "✓ inotify: ", "✓ open files: ", "✓ memory: ",
                "✓ watch \(place.drop): on ", "✓ destination store: 127.0.0.1 is an address",
                "✓ destination store: the server's clock agrees within",
                "✓ destination store: 127.0.0.1 is reached without TLS", "· files: none has failed")
            #expect(!said.output.contains("Most likely"), "\(said.output)")
            let topics = try await topics(place)
            #expect(topics.isEmpty)
            #expect(try await agent.stop() == .code(0))
        }
    }

    @Test func `without an agent it says so, reads the journal, and leaves it to the next agent`() async throws {
        let place = try Place(route: ["validate: { extensions: [txt] }"])
        let agent = try await place.run()
        try place.put("a.exe", bytes(10))
        try await agent.line("file.rejected")
        #expect(try await agent.stop() == .code(0))
        let said = try await place.inlet(
            "doctor", code: 1, says: "! agent: no agent runs", "and sound", "! files: 1 file rejected",
            "Most likely:\n1. agent: no agent runs")
        #expect(!said.output.contains("✗"), "\(said.output)")
        let next = try await place.run()
        #expect(try await next.stop() == .code(0))
    }

    @Test func `a watched folder that is missing is a cause`() async throws {
        let place = try Place()
        try FileManager.default.removeItem(atPath: place.drop.string)
        let topics = try await topics(place)
        #expect(topics == ["agent", "folder"])
    }

    @Test(.enabled(if: Nobody.isAvailable, "needs root and setpriv"))
    func `a watched folder that the user may not read is a cause`() async throws {
        let place = try Place()
        try Nobody.own(place.folder.path)
        try Tool.run("/bin/chown", "root:root", place.drop.string)
        try Tool.run("/bin/chmod", "700", place.drop.string)
        let topics = try await topics(place, launcher: Nobody.launcher)
        #expect(topics == ["agent", "access"])
    }

    @Test(.enabled(if: LowLimit.isAvailable, "needs user namespaces (unshare -Ur)"))
    func `a full limit of inotify is a cause`() async throws {
        let topics = try await topics(try Place(), launcher: LowLimit.launcher("max_inotify_instances", 0))
        #expect(topics == ["agent", "limits"])
    }

    @Test func `a destination that does not answer is a cause`() async throws {
        let place = try Place(.spiral(try FreePort.any()))
        let topics = try await topics(place)
        #expect(topics == ["agent", "network"])
    }

    @Test func `a name without an address is a cause`() async throws {
        let place = try Place(destination: "type: r2, api: \"https://no-such-name.invalid\", api_key: k-1234")
        let topics = try await topics(place)
        #expect(topics == ["agent", "names"])
    }

    @Test func `a wrong key is a cause, and is in no line`() async throws {
        try await withSpiral { place, _ in
            try place.configure(replacing: ConfigText.apiKey, with: "another-key-5512")
            let topics = try await topics(place)
            #expect(topics == ["agent", "credentials"])
            let said = try await place.inlet("doctor", code: 1, says: "    → update the credentials of 'store'")
            #expect(!(said.output + said.errors).contains("another-key-5512"))
        }
    }

    @Test func `a clock that differs from the server's is a cause, and explains refused credentials`() async throws {
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer("401 Unauthorized", headers: "Date: Thu, 01 Jan 2015 00:00:00 GMT\r\n")
            }
        }
        let topics = try await topics(try Place(.spiral(Int(server.port))))
        #expect(topics == ["clock", "agent"])
    }

    @Test func `a clock that a signature bears explains nothing`() async throws {
        let format = DateFormatter()
        (format.locale, format.timeZone) = (Locale(identifier: "en_US_POSIX"), TimeZone(identifier: "GMT"))
        format.dateFormat = "EEE, dd MMM yyyy HH:mm:ss 'GMT'"
        let date = format.string(from: Date.now.addingTimeInterval(100))
        let server = try ScriptedServer { connection in
            while true {
                _ = try connection.readRequest()
                try connection.answer("401 Unauthorized", headers: "Date: \(date)\r\n")
            }
        }
        let topics = try await topics(try Place(.spiral(Int(server.port))))
        #expect(topics == ["agent", "credentials"])
    }

    @Test func `a certificate is due in its last weeks, and one that lives for days in its last quarter`() throws {
        let begins = try #require(WallTime(rfc3339: "2026-11-01T00:00:00Z"))
        func isDue(_ life: Int, after days: Int, isKnown: Bool = true) -> Bool {
            let (day, now) = (Duration.seconds(86_400), begins + .seconds(86_400 * days))
            return Findings.isDue(begins: isKnown ? begins : nil, ends: begins + day * life, at: now)
        }
        #expect(!isDue(90, after: 70) && isDue(90, after: 77))
        #expect(!isDue(8, after: 5) && isDue(8, after: 7))
        #expect(!isDue(90, after: 70, isKnown: false) && isDue(90, after: 77, isKnown: false))
    }

    @Test(.enabled(if: TLSFront.isAvailable, "needs openssl and python3"))
    func `a certificate is told with its issuer and its end, and one that nobody trusts is a cause`() async throws {
        try await withS3 { place, sandbox in
            let front = try await TLSFront(in: place, before: try await sandbox.port())
            try place.configure(replacing: "http://127.0.0.1:\(try await sandbox.port())", with: front.origin)
            // It ends in two days.
            try await place.inlet("doctor", code: 1, says: "TLSv1", "issued by CN", ", ends 2", "(in 1 day)")
            let topics = try await topics(place)
            #expect(topics == ["agent", "certificate"])
        }
    }

    @Test func `a wrong configuration is the only cause, and the rest is looked at all the same`() async throws {
        let place = try Place()
        try place.configure(replacing: "settle: 0s", with: "setle: 0s")
        let said = try await place.inlet(
            "doctor", code: 1, says: "✗ configuration: \(place.configuration):", "unknown key 'setle'", "✓ machine: ",
            "✓ inotify: ")
        let topics = try await topics(place)
        #expect(topics == ["configuration"], "\(said.output)")
    }

    @Test func `without a configuration it says how one is written`() async throws {
        let folder = try TemporaryDirectory()
        let said = try await InletProcess.run(
            ["doctor"], in: folder.path, code: 1, says: "✗ configuration: there is none", "inlet init")
        #expect(said.errors.isEmpty, "\(said.errors)")
        // It only looks.
        #expect(!FileManager.default.fileExists(atPath: folder.path.appending("xdg").string))
    }

    @Test func `a journal that is damaged is a cause, and stays as it is`() async throws {
        let place = try Place()
        let agent = try await place.run()
        #expect(try await agent.stop() == .code(0))
        let journal = place.state.appending("journal.sqlite")
        var content = try place.content(journal)
        content.replaceSubrange(4096..<8192, with: Data(repeating: 0xEE, count: 4096))
        try content.write(to: URL(fileURLWithPath: journal.string))
        let topics = try await topics(place)
        #expect(topics == ["state"])
        #expect(try place.content(journal) == content)
    }

    /// The examination of a place, with nothing looked at yet.
    private func examination(_ place: Place) async -> Examination {
        var options = ConfigOption()
        options.config = place.configuration.string
        return await Examination(options, Findings(silently: .program))
    }

    @Test func `a disk that hangs is a line of its own, is a cause, and its journal is left alone`() async throws {
        let place = try Place()
        let pipe = place.folder.path.appending("pipe")
        #expect(mkfifo(pipe.string, 0o600) == 0)
        var examination = await examination(place)
        await examination.look(.folders, "state_dir", within: .milliseconds(50)) { part in
            // The kernel waits for a writer.
            close(open(pipe.string, O_RDONLY))
            part.add(.fine, "journal", "never said")
        }
        #expect(examination.findings.all.map(\.check) == ["state_dir"] && examination.hasHung)
        #expect(!examination.isJournalSound && !examination.isWell)
        #expect(examination.report.causes.map(\.topic) == [.state])
        // Lets the thread that was left behind end.
        close(open(pipe.string, O_WRONLY))
    }

    @Test func `hints alone are told as such, and are no failure`() async throws {
        var examination = await examination(try Place())
        examination.findings.add(.warning, "names", "could be better")
        #expect(examination.isWell && examination.report.exit_code == 0 && examination.report.causes.isEmpty)
        #expect(examination.conclusion { text, _ in text } == "Nothing is wrong; 1 hint above.")
    }

    @Test func `it only looks: it makes no folder, and writes nothing to a watched one`() async throws {
        let place = try Place(route: ["on_success: archive"])
        let past = Date(timeIntervalSince1970: 1_600_000_000)
        try FileManager.default.setAttributes([.modificationDate: past], ofItemAtPath: place.drop.string)
        let wasThere = FileManager.default.fileExists(atPath: place.state.string)
        _ = try await topics(place)
        let attributes = try FileManager.default.attributesOfItem(atPath: place.drop.string)
        #expect(attributes[.modificationDate] as? Date == past)
        #expect(FileManager.default.fileExists(atPath: place.state.string) == wasThere)
    }

    @Test func `a part that takes too long is a line of its own`() async {
        let found = await Examination.answer(.network, "slow", within: .milliseconds(50)) { part in
            part.add(.fine, "never", "said")
            await Task.rest(for: .seconds(3600))
        }
        #expect(found.map(\.check) == ["slow"] && found.map(\.grade) == [.warning])
        #expect(found.first?.text.contains("no answer within 50ms") == true, "\(found)")
    }
}

/// `inlet support`: one file, without secrets.
@Suite(.serialized, .timeLimit(.minutes(15))) struct SupportTests {
    private static let apiKey = "api-canary-7f31c2"
    private static let webhook = "webhook-canary-55aa"
    private static let password = "pr0xy+canary-9x"
    private static let encoded = "pr0xy%2Bcanary-9x"

    /// Every form in which a text may hold it: those of `Canary`, and the login that it is a half of.
    private static let canaries =
        [apiKey, webhook, password, encoded, "me:\(password)"].map { Canary($0) }

    private static func place() throws -> Place {
        let port = try FreePort.any()
        return try Place(
            destination: "type: r2, api: \"http://127.0.0.1:\(port)\", api_key: \(apiKey), "
                + "proxy: \"http://me:\(encoded)@127.0.0.1:\(port)\"",
            top: ["notify: [{ name: hook, webhook: \"http://127.0.0.1:\(port)/hooks/\(webhook)\", on: [failed] }]"])
    }

    private static func file(_ said: Place.Finished) throws -> FilePath {
        let name = try #require(said.output.firstMatch(of: /^(.*?) is written\. Look through it/))
        return FilePath(String(name.1))
    }

    @Test func `none of several secrets is in the file, in no spelling, and all parts are`() async throws {
        let place = try Self.place()
        let agent = try await place.run()
        // Whatever somebody calls a file: the log and the queue repeat it.
        let word = Data("me:\(Self.password)".utf8).base64EncodedString()
        for name in [Self.apiKey, Self.webhook, Self.encoded, "x\(Self.password)x", word] {
            try place.put(FilePath("\(name).bin"), bytes(10))
        }
        try await agent.line("job.admitted", number: 5)
        try await agent.line("destination.down")
        // The environment's proxy is the same for all programs.
        let said = try await place.inlet(
            "support", environment: ["https_proxy": "http://me:\(Self.encoded)@h:1"], code: 0)
        let file = try Self.file(said)
        let content = try place.content(file)
        for canary in Self.canaries { #expect(canary.trace(in: content) == nil, "\(canary.text)") }
        let text = String(decoding: content, as: UTF8.self)
        for part in [
            "==== inlet doctor", "Most likely:", "==== inlet config show", "api_key: \"***\"",
            "==== inlet status --json", "\"running\" : true", "==== metrics", "inlet_files{",
            "==== the last 1000 log lines", "\"event\":\"job.admitted\"", "***.bin",
            "look through it before you send it",
        ] { #expect(text.contains(part), "\(part)") }
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `only its owner may read the file, and none that is there is replaced`() async throws {
        let place = try Place()
        let file = place.folder.path.appending("mine.txt")
        try await place.inlet("support", file.string, code: 0, says: "\(file) is written. Look through it")
        let mode = try FileManager.default.attributesOfItem(atPath: file.string)[.posixPermissions] as? Int
        #expect(mode == 0o600)
        try await place.inlet("support", "no/such/folder.txt", code: 1, errors: "no/such")
        try Data("precious".utf8).write(to: URL(fileURLWithPath: file.string))
        try await place.inlet("support", file.string, code: 1, errors: "is there already, and stays as it is")
        #expect(try place.content(file) == Data("precious".utf8))
    }

    @Test(.enabled(if: getuid() == 0, "needs root"))
    func `root's file is its folder's owner's`() async throws {
        let place = try Place()
        try place.folder.makeDirectory("home")
        let home = place.folder.path.appending("home")
        #expect(chown(home.string, 4321, 4321) == 0)
        try await place.inlet("support", "home/mine.txt", code: 0)
        let file = try FileManager.default.attributesOfItem(atPath: home.appending("mine.txt").string)
        #expect((file[.ownerAccountID] as? NSNumber)?.intValue == 4321)
    }

    @Test func `without an agent it has the journal's figures and the end of the log file`() async throws {
        let place = try Place()
        try place.configure(replacing: "level: debug", with: "level: debug, output: logs/inlet.log")
        try place.folder.makeDirectory("logs")
        let log = place.folder.path.pushing("logs/inlet.log")
        let agent = try place.start("run")
        try await agent.wait("it is ready") { (try? place.content(log))?.range(of: Data("agent.ready".utf8)) != nil }
        #expect(try await agent.stop() == .code(0))
        let text = String(
            decoding: try place.content(Self.file(try await place.inlet("support", code: 0))), as: UTF8.self)
        for part in ["\"running\" : false", "inlet_files{", "\"event\":\"agent.ready\""] {
            #expect(text.contains(part), "\(part)")
        }
    }
}

/// `inlet` alone.
@Suite struct NextStepTests {
    private func said(_ folder: FilePath, _ configuration: FilePath? = nil) async throws -> String {
        let environment = configuration.map { ["INLET_CONFIG": $0.string] } ?? [:]
        let ended = try await InletProcess.run([], in: folder, environment: environment, code: 0)
        #expect(ended.errors.isEmpty && ended.output.split(separator: "\n").count <= 8, "\(ended)")
        return ended.output
    }

    @Test func `a newcomer is shown the demo and how a configuration is written`() async throws {
        let folder = try TemporaryDirectory()
        let text = try await said(folder.path)
        #expect(text.contains("inlet demo") && text.contains("inlet init"), "\(text)")
    }

    @Test func `with a configuration and no agent it is shown how to check and to start`() async throws {
        let place = try Place()
        let text = try await said(place.folder.path, place.configuration)
        #expect(text.contains("no agent runs") && text.contains("inlet check") && text.contains("inlet run"), "\(text)")
        try place.configure(replacing: "settle: 0s", with: "setle: 0s")
        let wrong = try await said(place.folder.path, place.configuration)
        #expect(wrong.contains("unknown key 'setle'") && wrong.contains("inlet check"), "\(wrong)")
    }

    @Test func `beside an agent it says how that is, and what needs somebody`() async throws {
        let (place, agent) = try await Place.running()
        let well = try await said(place.folder.path, place.configuration)
        #expect(well.hasPrefix("Inlet is running. ") && well.contains("inlet status"), "\(well)")
        // There is no page to open.
        #expect(!well.contains("inlet open"), "\(well)")
        try await place.inlet("pause", "store", code: 0)
        let held = try await said(place.folder.path, place.configuration)
        #expect(held.contains("'inlet resume store' ends the pause"), "\(held)")
        #expect(try await agent.stop() == .code(0))
    }
}
