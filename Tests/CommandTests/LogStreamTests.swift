import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// The log as programs and people read it: on a pipe or in a file, and on a terminal.
@Suite(.serialized) struct LogStreamTests {
    // MARK: - JSON to the last line

    /// The lines of `text`; fails for one that is no JSON object.
    private func lines(_ text: String) throws -> [[String: Any]] {
        try text.split(separator: "\n").map { line in
            let object = try? JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            return try #require(object, "\(line)")
        }
    }

    @Test(arguments: ["watch: [\n", "state_dir: state\n", "destinations:\n  store: { type: folder, pth: a }\n"])
    func `a start with a wrong configuration writes JSON only, and says why`(_ text: String) async throws {
        let place = try Place()
        try place.configure(text: text)
        let lines = try lines(try await place.inlet("run", code: 78).errors)
        #expect(lines.last?["event"] as? String == "agent.failed")
        #expect(lines.dropLast().allSatisfy { $0["event"] as? String == "config.refused" })
        let text = try await place.inlet("run", "--log-format", "text", code: 78).errors
        #expect(!text.hasPrefix("{"))
    }

    @Test(arguments: [["--log-format", "json"], ["--log-format=json"]])
    func `a command line that asks for JSON, and is wrong, gets a line too`(_ format: [String]) async throws {
        let lines = try lines(try await Place().inlet(["run"] + format + ["--nope"], code: 64).errors)
        #expect(lines.count == 1 && lines[0]["event"] as? String == "agent.failed")
        #expect((lines[0]["reason"] as? String)?.contains("--nope") == true)
    }

    @Test func `errors of a start that cannot take its state directory are lines too`() async throws {
        let (place, agent) = try await Place.running()
        let lines = try lines(try await place.inlet("run", code: 75).errors)
        #expect(lines.last?["event"] as? String == "agent.failed")
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `reloads, refused and taken, and a crash leave JSON only`() async throws {
        let (place, agent) = try await Place.running(environment: ["INLET_FAILPOINT": "afterComplete"])
        let good = String(decoding: try place.content(place.configuration), as: UTF8.self)
        try place.configure(text: good.replacing("to: store", with: "to: stroe"))
        try await place.inlet("reload", code: 78)
        try place.configure(text: good.replacing("log: {", with: "workers: 7\nlog: {"))
        try await place.inlet("reload", code: 0)
        try place.put("a.bin", bytes(1000))
        #expect(try await agent.ending() == .signal(SIGKILL))
        let events = try lines(agent.errors).compactMap { $0["event"] as? String }
        #expect(events.contains("config.refused") && events.contains("config.reloaded"))
    }

    // MARK: - The schema

    @Test func `10,000 lines of an agent fit the schema of the log`() async throws {
        let port = try FreePort.any()
        let receiver = NoticeReceiver()
        let server = try ScriptedServer { try receiver.serve($0) }
        let place = try Place()
        try place.folder.makeDirectory("library2")
        try place.configure(text: Self.configuration(port: port, hook: server.port))
        for number in 1...4000 {
            let folder = place.drop.appending("d\(number)").string
            try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
            try FileManager.default.createSymbolicLink(atPath: folder + "/link.x", withDestinationPath: "/nowhere")
            if number <= 800 { try bytes(100 + number).write(to: URL(fileURLWithPath: folder + "/file.bin")) }
        }
        let agent = try await place.run()
        try place.put("clips/a.mov", bytes(50_000))
        try place.put("huge.bin", bytes(11_000))
        try await agent.line("destination.down")
        try await withSandbox(place.folder.path.appending("store"), port: port) { sandbox, _ in
            try await agent.line("job.delivered") { $0.isAbout("a.mov") }
            sandbox.faults.add(Fault(.reply(.tooLarge), at: .presign, times: nil))
            try place.put("clips/b.mov", bytes(60_000))
            try await agent.line("job.failed") { $0.isAbout("b.mov") }
            sandbox.faults.clear()
            try await agent.line("job.finished", number: 800, within: .seconds(300)) {
                $0["state"] == "delivered" && !$0.isAbout("a.mov")
            }
            try await place.inlet("pause", "store", code: 0)
            try await place.inlet("reload", code: 0)
            #expect(try await agent.stop() == .code(0))
        }
        let schema = try LogSchema(
            try await InletProcess.run(["logs", "schema"], in: place.folder.path, code: 0).output)
        let lines = try lines(agent.errors)
        #expect(lines.count >= 10_000, "\(lines.count)")
        let faults = lines.compactMap { schema.fault(of: $0) }
        #expect(faults.isEmpty, "\(faults.prefix(5))")
        let events = Set(lines.compactMap { $0["event"] as? String })
        #expect(events.count >= 18, "\(events)")
    }

    private static func configuration(port: Int, hook: UInt16) -> String {
        """
        state_dir: state
        log: { level: debug }
        destinations:
          store: { type: r2, api: "http://127.0.0.1:\(port)", dialect: v1, api_key: "\(ConfigText.apiKey)" }
          one: { type: folder, path: library }
          two: { type: folder, path: library2 }
        watch:
          - { path: drop, settle: 0s, settle_empty: 0s }
        notify:
          - { name: ops, webhook: "http://127.0.0.1:\(hook)/" }
        routes:
          - { name: clips, match: { extensions: [mov] }, to: store, key: "{dir}/{name}" }
          - name: files
            to: [one, two]
            key: "{dir}/{name}"
            validate: { max_size: 10KiB }

        """
    }

    // MARK: - A terminal

    /// The agent with standard error on a terminal, until it is ready.
    private func shown(_ options: String..., environment: [String: String] = [:]) async throws -> String {
        let place = try Place()
        let seen = try DrawnText(columns: 100, rows: 30)
        let launcher = ["/bin/sh", "-c", #"exec "$@" 2>&1"#, "sh"]
        let agent = try InletProcess(
            ["run", "--config", place.configuration.string] + options, in: place.folder.path,
            environment: ["TERM": "xterm"].merging(environment) { $1 }, launcher: launcher, terminal: seen.terminal)
        try await seen.wait("ready", agent)
        #expect(try await agent.stop() == .code(0))
        return seen.all + seen.terminal.drawn()
    }

    @Test func `on a terminal the log is coloured sentences in columns`() async throws {
        let text = try await shown()
        #expect(
            text.contains(#/\u{1B}\[2m\d\d:\d\d:\d\d\u{1B}\[0m /#)
                && text.contains("\u{1B}[32minfo   \u{1B}[0m  ready: "))
        #expect(!text.contains("{\"ts\""))
    }

    @Test(arguments: [["NO_COLOR": "1"], ["TERM": "dumb"]])
    func `a terminal without colours gets the same sentences`(_ environment: [String: String]) async throws {
        let text = try await shown(environment: environment)
        #expect(text.contains(#/\d\d:\d\d:\d\d info {5}ready: /#) && !text.contains("\u{1B}"))
    }

    @Test func `--log-format wins over the configuration, on a terminal and on a pipe`() async throws {
        #expect(try await shown("--log-format", "json").contains("{\"ts\""))
        let place = try Place()
        try place.configure(replacing: "level: debug", with: "level: debug, format: json")
        let agent = try place.start("run", "--log-format", "text")
        try await agent.wait("it is ready") { agent.errors.contains(" info agent.ready roots=1 destinations=1") }
        // A reload keeps what the command line says.
        agent.signal(SIGHUP)
        try await agent.wait("it has read it again") { agent.errors.contains(" config.reloaded ") }
        #expect(try await agent.stop() == .code(0))
        #expect(!agent.errors.contains("{\"ts\""))
        try await place.inlet("run", "--log-format", "xml", code: 64, errors: "auto", "json", "text")
    }
}

/// What the log's JSON schema asks of each line, as far as that schema goes.
private struct LogSchema {
    private let common: Set<String>
    private var events: [String: [String: Any]] = [:]

    init(_ text: String) throws {
        let schema = try #require(try JSONSerialization.jsonObject(with: Data(text.utf8)) as? [String: Any])
        common = Set(try #require(schema["required"] as? [String]))
        for rule in try #require(schema["allOf"] as? [[String: Any]]) {
            let properties = (rule["if"] as? [String: Any])?["properties"] as? [String: [String: Any]]
            let names = try #require(properties?["event"]?["enum"] as? [String])
            for name in names { events[name] = try #require(rule["then"] as? [String: Any]) }
        }
    }

    /// What is wrong with a line; nil when nothing is.
    func fault(of line: [String: Any]) -> String? {
        guard common.isSubset(of: line.keys), let event = line["event"] as? String else { return "\(line)" }
        guard let time = line["ts"] as? String, time.wholeMatch(of: /\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/) != nil
        else { return "ts: \(line)" }
        guard let rule = events[event], let properties = rule["properties"] as? [String: Any],
            let required = rule["required"] as? [String]
        else { return "no rule for \(event)" }
        if let missing = required.first(where: { line[$0] == nil }) { return "\(event) lacks \(missing)" }
        for (name, value) in line {
            if name.wholeMatch(of: /[a-z][a-z0-9]*(_[a-z0-9]+)*/) == nil { return "\(event): \(name)" }
            guard let schema = properties[name] else { return "\(event) has \(name)" }
            if let schema = schema as? [String: Any], !Self.fits(value, schema) { return "\(event) \(name): \(value)" }
        }
        return nil
    }

    private static func fits(_ value: Any, _ schema: [String: Any]) -> Bool {
        if let words = schema["enum"] as? [String] { return (value as? String).map(words.contains) ?? false }
        switch schema["type"] as? String {
        case "string": return value is String
        case "array": return value is [String]
        // Flags and numbers are one class in Foundation, and differ in how they are encoded.
        case "boolean": return (value as? NSNumber).map(isFlag) ?? false
        case "integer":
            return (value as? NSNumber).map { !isFlag($0) && Double($0.int64Value) == $0.doubleValue } ?? false
        default: return false
        }
    }

    private static func isFlag(_ number: NSNumber) -> Bool { String(cString: number.objCType) == "c" }
}
