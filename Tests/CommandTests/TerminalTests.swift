import Foundation
import InletTestSupport
import SystemPackage
import Testing

/// `inlet status --watch` at a real terminal, and where there is none.
@Suite(.serialized) struct TerminalTests {
    private func watch(_ place: Place, _ terminal: PseudoTerminal, _ environment: [String: String] = [:]) throws
        -> InletProcess
    {
        try InletProcess(
            ["status", "--watch", "--interval", "100ms", "--config", place.configuration.string],
            in: place.folder.path, environment: ["TERM": "xterm"].merging(environment) { $1 }, terminal: terminal)
    }

    @Test func `the picture follows the agent through a stop and a start, and q leaves it as it was`() async throws {
        let place = try Place()
        let agent = try await place.run()
        let terminal = try PseudoTerminal(columns: 100, rows: 30)
        let seen = DrawnText(terminal)
        let watch = try watch(place, terminal)
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
        try terminal.press("q")
        // Read until then: a program waits for a terminal that takes no more.
        try await seen.wait("\u{1B}[?1049l", watch)
        #expect(try await watch.ending() == .code(0))
        #expect(watch.errors.isEmpty, "\(watch.errors)")
    }

    @Test func `the picture fits a terminal that changes, without colours where none are wanted`() async throws {
        let place = try Place()
        let terminal = try PseudoTerminal(columns: 100, rows: 30)
        let seen = DrawnText(terminal)
        // No agent runs: the journal is read once, and its lock is left to one that is to start.
        let watch = try watch(place, terminal, ["NO_COLOR": "1"])
        try await seen.wait("no agent runs", watch)
        #expect(!seen.all.contains("\u{1B}[32m") && !seen.all.contains("\u{1B}[1m"))
        try terminal.resize(columns: 30, rows: 3)
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
        let terminal = try PseudoTerminal(columns: 100, rows: 30)
        let seen = DrawnText(terminal)
        let watch = try watch(place, terminal)
        for _ in 0..<2 {
            try await seen.wait("no agent runs", watch)
            #expect(try !terminal.echoes() && !terminal.readsLines())
            seen.forget()
            watch.signal(SIGTSTP)
            try await seen.wait("\u{1B}[?1049l", watch)
            try await watch.wait("it is stopped") { watch.isStopped }
            #expect(try terminal.echoes() && terminal.readsLines())
            #expect(seen.all.contains("\u{1B}[?25h"), "the cursor is hidden")
            seen.forget()
            watch.signal(SIGCONT)
            try await seen.wait("\u{1B}[?1049h", watch)
        }
        try await seen.wait("no agent runs", watch)
        try terminal.press("q")
        try await seen.wait("\u{1B}[?1049l", watch)
        #expect(try await watch.ending() == .code(0), "\(watch.errors)")
        #expect(try terminal.echoes() && terminal.readsLines())
    }

    @Test func `without a terminal it is a block each time, or one object a line`() async throws {
        let place = try Place()
        let agent = try await place.run()
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
        let terminal = try PseudoTerminal(columns: 80, rows: 24)
        let seen = DrawnText(terminal)
        let dumb = try watch(place, terminal, ["TERM": "dumb"])
        try await seen.wait("no agent runs", dumb)
        dumb.signal(SIGINT)
        #expect(try await dumb.ending() == .signal(SIGINT))
        #expect(!seen.all.contains("\u{1B}"))
        seen.forget()
        let files = try (0..<2).map { try place.folder.write(bytes(1000, seed: UInt64($0)), to: FilePath("\($0).bin")) }
        let send = try InletProcess(
            ["send", "--config", place.configuration.string] + files.map(\.string), in: place.folder.path,
            environment: ["TERM": "xterm"], terminal: terminal)
        #expect(try await send.ending() == .code(0), "\(send.errors)")
        try await seen.wait("2 files, 2 KiB in ", send)
        #expect(seen.all.contains("0.bin →") && seen.all.contains("1.bin →"))
    }
}
