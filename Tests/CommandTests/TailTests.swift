import Foundation
import InletTestSupport
import SystemPackage
import Testing

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
        #expect(!tail.output.contains("is not quiet yet") && !tail.output.contains("{"))
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
            + "20:00:09 ! the queue is full (3 files, 2 KiB): new files stay in their folders\n"
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
