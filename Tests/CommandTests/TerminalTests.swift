import Foundation
import InletSandbox
import InletTestSupport
import SystemPackage
import Testing

/// `inlet status --watch` at a real terminal, and where there is none.
@Suite(.serialized) struct TerminalTests {
    private func watch(_ place: Place, _ seen: DrawnText, _ environment: [String: String] = [:]) throws
        -> InletProcess
    {
        try InletProcess(
            ["status", "--watch", "--interval", "100ms", "--config", place.configuration.string],
            in: place.folder.path, environment: ["TERM": "xterm"].merging(environment) { $1 }, terminal: seen.terminal)
    }

    @Test func `the picture follows the agent through a stop and a start, and q leaves it as it was`() async throws {
        let (place, agent) = try await Place.running()
        let seen = try DrawnText(columns: 100, rows: 30)
        let watch = try watch(place, seen)
        try await seen.wait("All is well", watch)
        #expect(seen.all.hasPrefix("\u{1B}[?1049h") && seen.all.contains("\u{1B}[32m"))
        #expect(try await agent.stop() == .code(0))
        try await seen.wait("The agent stopped at", watch)
        try await seen.wait("no agent runs", watch)
        let second = try await place.run()
        try await seen.wait("was started again", watch)
        try place.put("a.bin", bytes(10))
        try await second.line("job.finished")
        #expect(watch.isRunning)
        try seen.terminal.press("q")
        // Read until then: a program waits for a terminal that takes no more.
        try await seen.wait("\u{1B}[?1049l", watch)
        #expect(try await watch.ending() == .code(0))
        #expect(watch.errors.isEmpty, "\(watch.errors)")
    }

    @Test func `the picture fits a terminal that changes, without colours where none are wanted`() async throws {
        let place = try Place()
        let seen = try DrawnText(columns: 100, rows: 30)
        // No agent runs: the journal is read once, and its lock is left to one that is to start.
        let watch = try watch(place, seen, ["NO_COLOR": "1"])
        try await seen.wait("no agent runs", watch)
        #expect(!seen.all.contains("\u{1B}[32m") && !seen.all.contains("\u{1B}[1m"))
        try seen.terminal.resize(columns: 30, rows: 3)
        seen.forget()
        watch.signal(SIGWINCH)
        try await watch.wait("a picture of three lines") {
            _ = try? await seen.wait("\u{1B}[H", watch)
            let picture = seen.picture
            return picture.count == 3 && picture.allSatisfy { $0.count <= 30 + "\u{1B}[K\r".count }
        }
        let agent = try await place.run()
        #expect(try await agent.stop() == .code(0))
        watch.signal(SIGTERM)
        try await seen.wait("\u{1B}[?1049l", watch)
        #expect(try await watch.ending() == .code(0))
    }

    @Test func `Ctrl-Z leaves the terminal as it was until the picture goes on`() async throws {
        let place = try Place()
        let seen = try DrawnText(columns: 100, rows: 30)
        let watch = try watch(place, seen)
        for _ in 0..<2 {
            try await seen.wait("no agent runs", watch)
            #expect(try !seen.terminal.echoes() && !seen.terminal.readsLines())
            seen.forget()
            watch.signal(SIGTSTP)
            try await seen.wait("\u{1B}[?1049l", watch)
            try await watch.wait("it is stopped") { watch.isStopped }
            #expect(try seen.terminal.echoes() && seen.terminal.readsLines())
            #expect(seen.all.contains("\u{1B}[?25h"), "the cursor is hidden")
            seen.forget()
            watch.signal(SIGCONT)
            try await seen.wait("\u{1B}[?1049h", watch)
        }
        try await seen.wait("no agent runs", watch)
        try seen.terminal.press("q")
        try await seen.wait("\u{1B}[?1049l", watch)
        #expect(try await watch.ending() == .code(0), "\(watch.errors)")
        #expect(try seen.terminal.echoes() && seen.terminal.readsLines())
    }

    @Test func `without a terminal it is a block each time, or one object a line`() async throws {
        let (place, agent) = try await Place.running()
        let plain = try place.start("status", "--watch", "--interval", "100ms")
        try await plain.wait("three blocks") {
            plain.output.components(separatedBy: "All is well").count > 3
        }
        plain.signal(SIGINT)
        #expect(try await plain.ending() == .signal(SIGINT))
        #expect(plain.output.contains("\n\n") && !plain.output.contains("\u{1B}"))
        let json = try place.start("status", "--watch", "--json", "--interval", "100ms")
        try await json.wait("two lines") { json.output.split(separator: "\n").count > 2 }
        try await agent.stop()
        try await json.wait("it says that none runs") { json.output.contains(#""running":false"#) }
        json.signal(SIGTERM)
        _ = try await json.ending()
        for line in json.output.split(separator: "\n").dropLast() {
            let object = try JSONSerialization.jsonObject(with: Data(line.utf8)) as? [String: Any]
            #expect((object?["health"] as? [String: Any])?["sentence"] is String, "\(line)")
        }
    }

    @Test func `a dumb terminal gets blocks, and send draws its line on one that is not`() async throws {
        let place = try Place()
        let seen = try DrawnText(columns: 80, rows: 24)
        let dumb = try watch(place, seen, ["TERM": "dumb"])
        try await seen.wait("no agent runs", dumb)
        dumb.signal(SIGINT)
        #expect(try await dumb.ending() == .signal(SIGINT))
        #expect(!seen.all.contains("\u{1B}"))
        seen.forget()
        let files = try (0..<2).map { try place.folder.write(bytes(1000, seed: UInt64($0)), to: FilePath("\($0).bin")) }
        let send = try InletProcess(
            ["send", "--config", place.configuration.string] + files.map(\.string), in: place.folder.path,
            environment: ["TERM": "xterm"], terminal: seen.terminal)
        #expect(try await send.ending() == .code(0), "\(send.errors)")
        try await seen.wait("2 files, 2 KiB in ", send)
        #expect(seen.all.contains("0.bin →") && seen.all.contains("1.bin →"))
    }
}

/// `inlet tail` on what real agents write.
@Suite struct TailTests {
    private static func line(_ event: String, _ more: String = "", level: String = "info", second: Int = 7) -> String {
        #"{"ts":"2026-11-22T20:00:0\#(second).000Z","level":"\#(level)","event":"\#(event)"\#(more)}"# + "\n"
    }

    @Test func `an agent's log file is told in words, across its rotation`() async throws {
        let place = try Place()
        try place.configure(replacing: "log: { level: debug }", with: "log: { level: debug, output: inlet.log }")
        let log = place.folder.path.appending("inlet.log")
        let agent = try place.start("run")
        try await agent.wait("it is ready") {
            (try? place.content(log)).map { $0.contains("agent.ready".utf8) } ?? false
        }
        let tail = try place.start("tail", "-n", "50")
        try await tail.wait("the start is told") { tail.output.contains("✓ ready: 1 watched folders, 1 destinations") }
        try place.put("film.mov", bytes(10))
        try await tail.wait("the delivery is told") { tail.output.contains("film.mov → store as film.mov, 10 bytes") }
        #expect(!tail.output.contains("is still changing") && !tail.output.contains("{"))
        try FileManager.default.moveItem(atPath: log.string, toPath: log.string + ".1")
        try place.folder.write(Self.line("destination.up", #","destination":"other""#).utf8, to: "inlet.log")
        try await tail.wait("the new file is read") { tail.output.contains("✓ other is up") }
        tail.signal(SIGINT)
        #expect(try await tail.ending() == .signal(SIGINT))
        #expect(!tail.output.contains("\u{1B}"))
        try await agent.stop()
    }

    @Test func `of a file the last lines that are wanted are shown, and strange ones as they are`() async throws {
        let place = try Place()
        let lines =
            Self.line("agent.stopping") + Self.line("queue.recovered", level: "warning", second: 8)
            + "no log line \u{1B}[2J\n"
            + Self.line("queue.full", #","files":3,"bytes":2048"#, level: "warning", second: 9)
        let file = try place.folder.write(lines.utf8, to: "some.log")
        let tail = try place.start("tail", "--file", file.string, "-n", "2", "--level", "warning")
        let wanted =
            "no log line \\x1B[2J\n— 2026-11-22 —\n"
            + "20:00:09 ! queue full (3 files, 2 KiB); new files stay in their folders\n"
        try await tail.wait("both are shown") { tail.output == wanted }
        tail.signal(SIGTERM)
        _ = try await tail.ending()
        try await place.inlet(
            "tail", "--file", place.folder.path.appending("none.log").string, code: 1, errors: "none.log")
    }

    @Test func `when nobody reads any more it ends and says nothing`() async throws {
        let place = try Place()
        // More than a pipe holds.
        let lines = String(repeating: Self.line("agent.stopping"), count: 10_000)
        let file = try place.folder.write(lines.utf8, to: "some.log")
        for ignores in ["", "trap '' PIPE; "] {
            let tail = try await InletProcess.run(
                ["tail", "-n", "10000", "--file", file.string], in: place.folder.path,
                launcher: [
                    // A shell cannot give back a signal that whoever started it ignores, as curl does for moments.
                    "/usr/bin/env", "--default-signal=PIPE", "/bin/bash", "-c",
                    ignores + "\"$0\" \"$@\" | head -n 1; echo ${PIPESTATUS[0]}",
                ], code: 0)
            // 141: by SIGPIPE, as other programs end.
            #expect(tail.output == "— 2026-11-22 —\n\(ignores.isEmpty ? 141 : 0)\n", "\(tail.output)")
            #expect(tail.errors.isEmpty, "\(tail.errors)")
        }
    }

    @Test func `standard input is read to its end`() async throws {
        let place = try Place()
        try place.folder.write((Self.line("agent.stopping") + "rest").utf8, to: "input")
        let tail = try await InletProcess.run(
            ["tail", "-"], in: place.folder.path, launcher: ["/bin/sh", "-c", "exec \"$0\" \"$@\" <input"], code: 0)
        #expect(tail.output == "— 2026-11-22 —\n20:00:07   stopping\nrest\n")
    }

    @Test func `a running agent is asked when there is no file, and the next one too`() async throws {
        let place = try Place()
        try await place.inlet("tail", code: 75, errors: "no agent is running")
        let agent = try await place.run()
        let tail = try place.start("tail")
        try place.put("one.bin", bytes(10))
        try await tail.wait("the delivery is told") { tail.output.contains("one.bin → store as") }
        try await agent.stop()
        try await tail.wait("it says that it waits") { tail.errors.contains("waiting for it") }
        let second = try await place.run()
        try place.put("two.bin", bytes(20))
        try await second.line("job.finished")
        try await tail.wait("the next delivery is told") { tail.output.contains("two.bin → store as") }
        let told = tail.output.components(separatedBy: "one.bin → store as").count - 1
        #expect(told == 1, "\(tail.output)")
        tail.signal(SIGINT)
        _ = try await tail.ending()
    }
}

/// `inlet log`, and what `check` says of proxies.
@Suite(.serialized) struct LogCommandTests {
    @Test func `a running agent changes its level, says who wanted it, and forgets it when it starts again`()
        async throws
    {
        let place = try Place(.spiral(try FreePort.any()))
        let agent = try await place.run()
        try await agent.line("agent.ready")
        #expect(try await place.inlet("logs", "level").output == "debug\n")
        let set = try await place.inlet("logs", "level", "error", code: 0)
        #expect(set.output == "log level: error, until the next start or reload (the configuration says debug)\n")
        let told = try await agent.line("log.level")
        #expect(told["to"] == "error" && told["by"]?.hasPrefix("uid ") == true)
        try place.put("quiet.bin", bytes(10))
        try await eventually("it is in the queue") {
            try await place.inlet("queue", "list", "--json").output.contains("quiet.bin")
        }
        #expect(agent.lines("job.admitted").isEmpty)
        try await place.inlet("logs", "level", "verbose", code: 64, errors: "debug, info, warning, error")
        #expect(try await agent.stop() == .code(0))
        try await place.inlet("logs", "level", code: 75)
    }

    @Test func `a reader of standard error that stands still holds up neither files nor the end`() async throws {
        let place = try Place()
        // A pipe that is full, and that nobody reads; the agent itself keeps its other end open.
        let script = #"mkfifo full && exec 3<>full && head -c 65536 /dev/zero >&3 && exec "$@" 2>full"#
        let agent = try place.start("run", launcher: ["/bin/sh", "-c", script, "sh"])
        try place.put("a.bin", bytes(10))
        let file = place.library.appending("a.bin").string
        try await agent.wait("the file is delivered") { FileManager.default.fileExists(atPath: file) }
        #expect(try await agent.stop() == .code(0))
    }

    @Test func `the schema of the log is JSON`() async throws {
        let place = try Place()
        let schema = try await InletProcess.run(["logs", "schema"], in: place.folder.path, code: 0)
        let object = try JSONSerialization.jsonObject(with: Data(schema.output.utf8)) as? [String: Any]
        #expect(object?["title"] as? String == "Inlet log line")
    }

    @Test func `check says which proxy a destination is reached through, and why`() async throws {
        let proxy = try ForwardProxy(to: 1, refusal: "403 Forbidden")
        let place = try Place()
        try place.configure(
            text: """
                state_dir: state
                proxy: { url: "\(proxy.address)", no_proxy: near.invalid }
                destinations:
                  far: { type: r2, api: "https://far.invalid", api_key: x }
                  near: { type: r2, api: "https://near.invalid", api_key: x }
                """)
        let check = try await place.inlet(
            "check", code: 69, says: "it answered 403",
            "destination near: is reached directly ('near.invalid' of no_proxy)")
        #expect(
            check.output.contains(
                "destination far: cannot be reached through the proxy \(proxy.address) (by 'proxy' of the configuration)"
            ))
    }
}
